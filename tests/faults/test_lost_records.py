"""P1, P2, P6: Redis restarts, the broker forgets or repeats, and stops reach everything."""

import signal
import time
from collections import Counter
from datetime import timedelta

import pytest

from littleghost import Run
from tests.faults.fleet import Fleet, wait_until
from tests.faults.fleet_app import NapWorkflow, Worker
from tests.faults.test_worker_death import started_text, terminal_events, tool_results

pytestmark = pytest.mark.faults


def states(run: Run) -> list[str]:
    """Give the states of a run's tasks; one that only waits has nothing but a timer."""
    return [task["s"] for task in run.refresh().record.tasks.values()]


def test_runs_go_on_after_redis_was_killed_and_restarted(fleet: Fleet) -> None:
    fleet.start("turns")
    fleet.start("tools", slots=2)
    streaming = Worker.enqueue("say 100")
    calling = Worker.enqueue("charge 2 gate")
    started_text(streaming)
    wait_until(lambda: len(fleet.effects()) == 2, "both calls began")
    # What was written is on disk after a second at most (appendfsync everysec).
    fleet.redis.client().execute_command("CONFIG", "SET", "appendfsync", "always")
    fleet.redis.kill()
    fleet.redis.start()
    fleet.open_gate("gate")

    streaming.wait(60)
    calling.wait(60)

    assert (streaming.outcome, streaming.response) == ("completed", "word " * 100)
    assert tool_results(calling) == [("success", "charged k0"), ("success", "charged k1")]
    assert len(fleet.effects()) == 2
    after = Worker.ask("repeatable 2")
    assert after.response == "done"
    assert terminal_events(streaming) == ["run_stop"]


class TestPowerLoss:
    """Every worker and Redis die together; what Redis had confirmed is on disk."""

    @pytest.fixture
    def appendfsync(self) -> str:
        return "always"

    def test_sleeping_and_running_runs_go_on_when_all_is_back(self, fleet: Fleet) -> None:
        fleet.start("turns", slots=8)
        fleet.start("tools", slots=2)
        calling = [Worker.enqueue(f"{name} 1 gate") for name in ("charge", "repeatable")]
        wait_until(lambda: len(fleet.effects()) == 2, "both calls began")
        streaming = Worker.enqueue("say 200")
        started_text(streaming)
        # One should wake while everything is down, the other one when everything is back.
        naps = {seconds: NapWorkflow.enqueue(str(seconds)) for seconds in (8, 1)}
        for run in naps.values():
            wait_until(lambda run=run: states(run) == ["wait"], "the workflow sleeps")

        lived = fleet.power_off()
        assert not fleet.redis.answers()
        fleet.power_on(lived)
        fleet.open_gate("gate")

        for run in (*naps.values(), *calling, streaming):
            assert run.wait(30).outcome == "completed", run.error
            assert terminal_events(run) == ["run_stop"]
        assert streaming.response == "word " * 200
        assert streaming.usage.output == len("word " * 200) // 4
        draws = {line.split()[1] for line in fleet.effects() if line.startswith("draw")}
        assert {run.response for run in naps.values()} == {f"word {d} word word " for d in draws}
        for seconds, run in naps.items():
            assert run.result is not None
            assert [step.participant for step in run.result.steps] == ["before", "after"]
            assert run.duration_s is not None
            assert run.duration_s >= seconds
        charged, repeated = (tool_results(run) for run in calling)
        assert charged[0][0] == "error"
        assert "outcome of this call is unknown" in charged[0][1]
        assert repeated == [("success", "did k0")]
        kinds = Counter(line.split()[0] for line in fleet.effects())
        assert kinds == {"draw": 2, "charge": 1, "repeatable": 2}


def test_what_could_not_be_recorded_in_a_long_outage_is_given_back(fleet: Fleet) -> None:
    """Redis is away until the workers have given up; nothing stays leased to a live one."""
    turns = fleet.start("turns")
    tools = fleet.start("tools", slots=2)
    streaming = Worker.enqueue("say 50")
    calling = Worker.enqueue("charge 1 gate")
    started_text(streaming)
    wait_until(fleet.effects, "the call began")
    fleet.redis.kill()
    fleet.open_gate("gate")
    for worker in (turns, tools):
        wait_until(
            lambda worker=worker: "raised unexpected: JournalUnavailable" in worker.log.read_text(),
            f"{worker.log} says that it gave up",
            timeout_s=60,
        )
    fleet.redis.start()

    streaming.wait(60)
    calling.wait(60)

    assert (streaming.outcome, streaming.response) == ("completed", "word " * 50)
    [(status, content)] = tool_results(calling)
    assert status == "error"
    assert "outcome of this call is unknown" in content
    assert len(fleet.effects()) == 1


def test_runs_go_on_when_the_broker_forgot_every_message(fleet: Fleet) -> None:
    runs = [Worker.enqueue("repeatable 3") for _ in range(5)]
    client = fleet.redis.client()
    assert client.llen("lg.turns") == 5
    client.delete("lg.turns")
    fleet.start("turns")
    wait_until(lambda: client.llen("lg.tools"), "calls are published")
    client.delete("lg.tools")
    fleet.start("tools")

    for run in runs:
        assert run.wait(30).response == "done"
    assert len(fleet.effects()) == 15


def test_messages_that_come_many_times_do_everything_once(fleet: Fleet) -> None:
    runs = [Worker.enqueue("charge 3") for _ in range(3)]
    client = fleet.redis.client()
    for message in client.lrange("lg.turns", 0, -1):
        client.lpush("lg.turns", *[message] * 9)
    fleet.start("turns")
    wait_until(lambda: client.llen("lg.tools") >= 9, "calls are published")
    for message in client.lrange("lg.tools", 0, -1):
        client.lpush("lg.tools", *[message] * 9)
    fleet.start("tools")

    for run in runs:
        run.wait(30)
        assert tool_results(run) == [("success", f"charged k{index}") for index in range(3)]
        assert terminal_events(run) == ["run_stop"]
    assert len(fleet.effects()) == len(set(fleet.effects())) == 9


def test_forged_messages_change_nothing(fleet: Fleet) -> None:
    from littleghost.celery.envelope import redis_message

    run = Worker.enqueue("say 2")
    client = fleet.redis.client()
    forged = [
        redis_message("turn", "lg.turns", "00-nothing", "0-t0", 1),
        redis_message("turn", "lg.turns", run.id, "0-t7", 1),
        redis_message("call", "lg.turns", run.id, "../../etc", 1),
        redis_message("call", "lg.turns", "{x}|y", "0-c0.0", 1),
        redis_message("turn", "lg.turns", run.id, "0-t0", 1).replace(",1],", ',"now"],'),
    ]
    for message in forged:
        client.lpush("lg.turns", message)
    worker = fleet.start("turns")

    assert run.wait(30).response == "word " * 2
    assert worker.process.poll() is None
    assert "not ours" in worker.log.read_text()
    keys = {key for key in client.scan_iter("*") if "nothing" in key}
    assert not keys


def test_a_cancel_cuts_the_stream_in_under_a_second(fleet: Fleet) -> None:
    fleet.start("turns")
    run = Worker.enqueue("say 2000")
    started_text(run)
    started = time.monotonic()
    run.cancel("no longer wanted")
    run.wait(10)

    assert time.monotonic() - started < 1
    assert (run.outcome, run.response) == ("cancelled", "")
    assert run.error is not None
    assert run.error.detail == "no longer wanted"
    assert terminal_events(run) == ["run_cancel"]


def test_a_deadline_ends_a_run_with_what_it_had_said(fleet: Fleet) -> None:
    fleet.start("turns")
    started = time.monotonic()
    run = Worker.ask("say 2000", deadline_at=timedelta(seconds=1.5))

    assert 1.4 < time.monotonic() - started < 2.5
    assert run.outcome == "partial"
    assert run.response.startswith("word word")
    assert terminal_events(run) == ["run_partial"]


def test_a_deadline_ends_a_run_whose_tool_does_not_listen(fleet: Fleet) -> None:
    fleet.start("turns")
    fleet.start("tools", slots=1)
    run = Worker.ask("charge 1 gate", deadline_at=timedelta(seconds=1.5))

    assert run.outcome == "partial"
    assert run.response == "working"
    assert run.duration_s is not None
    assert run.duration_s < 3.5
    # What the tool says later is dropped.
    fleet.open_gate("gate")
    wait_until(lambda: not fleet.redis.client().keys("lg:*held:*"), "the slot is free")
    assert Run.get(run.id).outcome == "partial"
    assert terminal_events(run) == ["run_partial"]


def test_a_cancelled_run_that_never_started_never_starts(fleet: Fleet) -> None:
    run = Worker.enqueue("charge 1")
    run.cancel()
    assert run.outcome == "cancelled"
    fleet.start("turns")
    other = Worker.ask("say 1")

    assert other.outcome == "completed"
    assert fleet.effects() == []


class TestStopWithoutRedis:
    """SIGTERM while Redis is away."""

    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"drain_timeout_s": "0.5"}

    def test_a_worker_that_stops_while_redis_is_away_hands_over_when_it_is_back(
        self, fleet: Fleet
    ) -> None:
        """A call that may be repeated does not wait for the first worker, which is stuck in it."""
        first = fleet.start("tools", slots=1)
        fleet.start("turns")
        run = Worker.enqueue("repeatable 1 gate")
        wait_until(fleet.effects, "the call began")
        fleet.redis.kill()
        first.send(signal.SIGTERM)
        wait_until(
            lambda: "could not hand tasks over yet" in first.log.read_text(), "it has tried in vain"
        )
        fleet.redis.start()
        fleet.start("tools", slots=1)
        wait_until(lambda: len(fleet.effects()) == 2, "the call began again", 60)
        fleet.open_gate("gate")

        assert run.wait(60).response == "done"
        assert tool_results(run) == [("success", "did k0")]
        first.process.wait(60)
