"""P1, P2, P5, P7: workers and pool children die at bad moments."""

import os
import signal
import time

import pytest

from littleghost import Run
from tests.faults.fleet import Fleet, wait_until
from tests.faults.fleet_app import Worker

pytestmark = pytest.mark.faults


def leased(run: Run, kind: str) -> dict:
    """Wait until a task of a kind is leased, and give its header."""
    return wait_until(
        lambda: next(
            (
                task
                for task in run.refresh().record.tasks.values()
                if task["k"] == kind and task["s"] == "leased"
            ),
            None,
        ),
        f"a {kind} of {run!r} is leased",
    )


def started_text(run: Run) -> str:
    return wait_until(
        lambda: next((event.text for event in run.events() if event.text), None), "text comes"
    )


def tool_results(run: Run) -> list[tuple[str, str]]:
    assert run.result is not None
    return [
        (block.status, block.content)
        for message in run.result.messages
        if message.role == "tool"
        for block in message.content
    ]


def terminal_events(run: Run) -> list[str]:
    return [event.type for event in run.events() if event.is_terminal]


def test_a_turn_goes_on_elsewhere_when_its_worker_is_killed_mid_stream(fleet: Fleet) -> None:
    """The second attempt's text replaces the first's, and readers are told so."""
    first = fleet.start("turns")
    run = Worker.enqueue("say 60")
    started_text(run)
    first.kill()
    fleet.start("turns")

    run.wait(30)

    assert (run.outcome, run.response) == ("completed", "word " * 60)
    kinds = [event.inner_type for event in run.events()]
    assert kinds.count("model_start") == 2
    assert kinds.count("model_retry") == 1
    assert kinds.count("model_stop") == 1
    after_retry = kinds.index("model_retry")
    text = "".join(event.text for event in list(run.events())[after_retry:])
    assert text == "word " * 60
    assert terminal_events(run) == ["run_stop"]


@pytest.mark.parametrize("victim", ["child", "worker"])
def test_an_idempotent_call_is_repeated_when_its_process_dies(fleet: Fleet, victim: str) -> None:
    tools = fleet.start("tools", slots=1)
    fleet.start("turns")
    run = Worker.enqueue("repeatable 1 gate")
    wait_until(fleet.effects, "the call began")
    task = leased(run, "call")
    fleet.open_gate("gate") if victim == "nobody" else None
    if victim == "child":
        os.kill(int(task["c"]), signal.SIGKILL)
    else:
        tools.kill()
        fleet.start("tools")
    wait_until(lambda: len(fleet.effects()) == 2, "the call began again")
    fleet.open_gate("gate")

    run.wait(30)

    assert tool_results(run) == [("success", "did k0")]
    assert fleet.effects() == ["repeatable k0"] * 2


@pytest.mark.parametrize("victim", ["child", "worker"])
def test_another_call_is_not_repeated_and_the_model_is_told(fleet: Fleet, victim: str) -> None:
    tools = fleet.start("tools", slots=1)
    fleet.start("turns")
    run = Worker.enqueue("charge 1 gate")
    wait_until(fleet.effects, "the call began")
    task = leased(run, "call")
    if victim == "child":
        os.kill(int(task["c"]), signal.SIGKILL)
    else:
        tools.kill()
        fleet.start("tools")

    run.wait(30)

    [(status, content)] = tool_results(run)
    assert status == "error"
    assert "outcome of this call is unknown" in content
    assert len(fleet.effects()) == 1
    assert (run.outcome, run.response) == ("completed", "done")


def test_a_call_that_always_kills_its_process_fails_and_the_run_goes_on(fleet: Fleet) -> None:
    fleet.start("tools", slots=2)
    fleet.start("turns")
    run = Worker.ask("crash 1")

    [(status, content)] = tool_results(run)
    assert status == "error"
    assert "died 3 times" in content
    assert fleet.effects() == ["crash k0"] * 3
    assert run.response == "done"


def test_a_worker_that_was_frozen_changes_nothing_when_it_wakes(fleet: Fleet) -> None:
    """SIGSTOP for longer than a lease: another worker takes over, the late text is refused."""
    first = fleet.start("turns")
    run = Worker.enqueue("say 100")
    started_text(run)
    first.send(signal.SIGSTOP)
    fleet.start("turns")
    wait_until(
        lambda: any(event["a"] == 2 for event in run.refresh().record.tasks.values()),
        "the second attempt began",
    )
    first.send(signal.SIGCONT)

    run.wait(30)

    assert run.response == "word " * 100
    kinds = [event.inner_type for event in run.events()]
    assert kinds.count("model_stop") == 1
    assert terminal_events(run) == ["run_stop"]
    assert run.usage.output == len("word " * 100) // 4


class TestTerm:
    """SIGTERM with every slot busy."""

    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"drain_timeout_s": "0"}

    def test_turns_go_on_elsewhere_at_once(self, fleet: Fleet) -> None:
        first = fleet.start("turns", slots=8)
        runs = [Worker.enqueue("say 80") for _ in range(8)]
        for run in runs:
            started_text(run)
        second = fleet.start("turns", slots=8)
        first.send(signal.SIGTERM)
        first.process.wait(15)

        for run in runs:
            run.wait(30)
            assert (run.outcome, run.response) == ("completed", "word " * 80)
            assert terminal_events(run) == ["run_stop"]
        assert second.process.poll() is None

    def test_idempotent_calls_go_on_elsewhere_and_others_are_finished(self, fleet: Fleet) -> None:
        first = fleet.start("tools", slots=2)
        fleet.start("turns")
        repeatable = Worker.enqueue("repeatable 1 gate")
        charge = Worker.enqueue("charge 1 gate")
        wait_until(lambda: len(fleet.effects()) == 2, "both calls began")
        fleet.start("tools", slots=2)
        first.send(signal.SIGTERM)
        wait_until(
            lambda: fleet.effects().count("repeatable k0") == 2, "the idempotent call began again"
        )
        assert first.process.poll() is None
        fleet.open_gate("gate")

        repeatable.wait(30)
        charge.wait(30)
        first.process.wait(30)

        assert tool_results(repeatable) == [("success", "did k0")]
        assert tool_results(charge) == [("success", "charged k0")]
        assert sum(line.startswith("charge") for line in fleet.effects()) == 1


def test_a_caller_without_a_worker_hears_which_queue_nobody_serves(fleet: Fleet) -> None:
    from littleghost.errors import NoWorkerError

    started = time.monotonic()
    with pytest.raises(NoWorkerError, match=r"lg\.turns") as caught:
        Worker.ask("say 1")
    assert time.monotonic() - started < 5
    assert caught.value.queue == "lg.turns"
    fleet.start("turns")

    assert Run.get(caught.value.run_id).wait(30).response == "word "
