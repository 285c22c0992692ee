"""Signals: kept until somebody waits, in order, one wait each; refused when nobody can get them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from littleghost import Run, Workflow
from littleghost.errors import (
    InvocationError,
    RunNotFoundError,
    RunOverError,
    SignalError,
    SignalTimeoutError,
)
from littleghost.journal import inbox
from littleghost.wiring import Runtime
from tests.integration.scripted import WAIT_S, Gate, make_agent, terminals, until

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]
_numbers = itertools.count()


def flow(perform: Callable[[Any], Any]) -> type[Any]:
    body = {"perform": perform, "__module__": __name__}
    return type(f"Signals{next(_numbers)}Workflow", (Workflow,), body)


def collect(count: int, name: str = "go") -> type[Any]:
    return flow(lambda self: [self.wait_for(name) for _ in range(count)])


def waits(run: Run, count: int = 1) -> None:
    until(lambda: run.status == "waiting" and len(run.pending) == count, f"{run!r} waits")


def output(run: Run) -> Any:
    assert run.wait(20).result is not None, run.error
    return run.result.output


def test_a_workflow_waits_without_a_slot_and_gets_the_value() -> None:
    run = collect(1).enqueue("Go")
    waits(run)
    [pending] = run.pending
    assert (pending.id, pending.kind, pending.tool) == ("go", "signal", "")
    assert (pending.expires_at, pending.arguments) == (None, {})
    assert pending.participant == run.record.participants["0"]["n"]
    value = {"n": [1, 2.5, None], "text": 'ü "x"\n', "empty": [{}, []]}
    assert run.signal("go", value) is run
    assert output(run) == [value]
    assert terminals(run) == ["run_stop"]


@pytest.mark.parametrize("value", [None, 0, "", [], {}, 2**53, "x" * 900_000])
def test_any_json_is_a_value(value: Any) -> None:
    run = flow(lambda self: {"got": self.wait_for("go")}).enqueue("Go")
    run.signal("go", value)
    assert output(run) == {"got": value}


def test_signals_that_come_early_are_kept_in_order_one_for_each_wait() -> None:
    gate = Gate()

    def perform(self: Workflow) -> Any:
        self.step(gate.enter, name="gate")
        return [self.wait_for(name) for name in ("a", "b", "a", "a")]

    run = flow(perform).enqueue("Go")
    gate.wait_for(1)
    for name, value in (("a", 1), ("b", 2), ("a", 3)):
        run.signal(name, value)
    assert run.status == "running"
    gate.open()
    waits(run)
    run.signal("unknown", 0)
    assert run.status == "waiting", "a signal of another name wakes nobody"
    run.signal("a", 4)
    assert output(run) == [1, 2, 3, 4]


def test_the_same_id_is_one_signal_and_never_another() -> None:
    run = collect(2).enqueue("Go")
    run.signal("go", {"n": 1}, id="s1")
    run.signal("go", {"n": 1}, id="s1")
    waits(run)
    run.signal("go", {"n": 1}, id="s1")
    for name, value in (("go", {"n": 2}), ("other", {"n": 1})):
        with pytest.raises(SignalError, match="another signal with the id 's1'"):
            run.signal(name, value, id="s1")
    assert run.status == "waiting"
    run.signal("go", {"n": 2}, id="s2")
    assert output(run) == [{"n": 1}, {"n": 2}]
    # The answer is the same when the run has ended, since the signal was taken.
    run.signal("go", {"n": 1}, id="s1")


def test_many_senders_at_once_lose_nothing() -> None:
    run = collect(60).enqueue("Go")
    errors: list[BaseException] = []

    def send(sender: int) -> None:
        try:
            for number in range(10):
                run.signal("go", [sender, number], id=f"{sender}.{number}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=send, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert not errors
    got = output(run)
    assert sorted(got) == [[sender, number] for sender in range(6) for number in range(10)]
    for sender in range(6):
        assert [number for who, number in got if who == sender] == list(range(10))


@pytest.mark.parametrize("name", ["", " ", "a b", ".a", "-a", "a" * 65, "ä", "a\n", 7, None])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    run = collect(1).enqueue("Go")
    with pytest.raises(InvocationError, match="signal name"):
        run.signal(name)
    failed = collect(1, name).ask("Go")
    assert failed.error is not None
    assert failed.error.code == "invocation"
    run.cancel()


@pytest.mark.parametrize("value", [float("nan"), {1}, object(), "x" * 1_000_001, {"n": b"x"}])
def test_a_value_that_is_no_json_or_too_large_is_refused(value: Any) -> None:
    run = collect(1).enqueue("Go")
    with pytest.raises(InvocationError, match="signal 'go'") as refused:
        run.signal("go", value)
    assert refused.value.field == "value"
    with pytest.raises(InvocationError, match="id "):
        run.signal("go", id="x" * 201)
    run.cancel()


def test_more_than_fit_are_refused_until_somebody_takes_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox, "MAX_SIGNALS", 3)
    run = collect(2).enqueue("Go")
    waits(run)
    for number in range(3):
        run.signal("later", number)
    with pytest.raises(SignalError, match="nobody takes them; check the name 'more'"):
        run.signal("more")
    run.cancel()


def test_nobody_gets_a_signal_of_a_run_that_has_ended() -> None:
    run = collect(1).enqueue("Go")
    run.signal("go", 1)
    assert output(run) == [1]
    with pytest.raises(RunOverError, match="is completed"):
        run.signal("go", 1)
    with pytest.raises(RunNotFoundError):
        Run("00-nobody").signal("go")


def test_a_signal_that_does_not_come_in_time() -> None:
    def perform(self: Workflow) -> Any:
        try:
            self.wait_for("go", timeout_s=0.2)
        except SignalTimeoutError as error:
            return [str(error), self.wait_for("go", timeout_s=60)]
        return "it came"

    run = flow(perform).enqueue("Go")
    ends = run.created_at + timedelta(seconds=30)
    until(lambda: [item for item in run.pending if item.expires_at > ends], "it waits longer")
    run.signal("go", "late")
    assert output(run) == ["no signal 'go' came within 0.2 s", "late"]


def test_each_of_two_that_wait_for_one_name_gets_one() -> None:
    child = flow(lambda self: self.wait_for("go"))

    def perform(self: Workflow) -> Any:
        return self.parallel(*[self.invoke(child, name=name) for name in ("one", "two")])

    run = flow(perform).enqueue("Go")
    waits(run, 2)
    run.signal("go", 1)
    waits(run, 1)
    run.signal("go", 2)
    assert sorted(output(run)) == [1, 2]


def test_a_signal_for_one_that_was_stopped_wakes_another(embedded: Runtime) -> None:
    """Whoever was woken is cancelled before a worker took it; the signal is still there."""
    child = flow(lambda self: self.wait_for("go"))

    def perform(self: Workflow) -> Any:
        one, two = self.invoke(child, name="one", timeout_s=1.0), self.invoke(child, name="two")
        return [item.output for item in self.parallel(one, two, settle=True)]

    run = flow(perform).enqueue("Go")
    waits(run, 2)
    # No worker takes the first one: it was made ready by a signal, and its message was lost.
    key, _ = embedded.journal.place(run.id)
    lost = embedded.client.hget(f"{key}:t", "t:0.0-a")
    assert lost is not None
    embedded.client.hset(f"{key}:t", "t:0.0-a", lost.replace('"s":"wait"', '"s":"ready"'))
    embedded.client.rpush(f"{key}:g", '{"n":"go","r":"{\\"g\\":\\"go\\",\\"v\\":7}"}')
    assert output(run) == [None, 7]


def test_the_audit_says_that_somebody_can_move_it_and_mends_its_timer(embedded: Runtime) -> None:
    endless, timed = collect(1), flow(lambda self: [self.wait_for("go", timeout_s=3600)])
    for kind in (endless, timed):
        run = kind.enqueue("Go")
        waits(run)
        _, prefix = embedded.journal.place(run.id)
        embedded.client.zrem(f"{prefix}timers", f"{run.id}|0-a")
        assert embedded.keeper.audit(run.id, mend=False) == "person"
        assert embedded.keeper.audit(run.id, mend=True) == "person"
        score = embedded.client.zscore(f"{prefix}timers", f"{run.id}|0-a")
        assert (score is not None) == (kind is timed)
        run.signal("go", "fine")
        assert output(run) == ["fine"]


def test_a_run_that_waits_can_be_cancelled_and_has_a_deadline() -> None:
    run = collect(1).enqueue("Go")
    waits(run)
    assert run.cancel("enough").wait(20).outcome == "cancelled"
    assert run.pending == []
    with pytest.raises(RunOverError, match="is cancelled"):
        run.signal("go")
    late = collect(1).ask("Go", deadline=timedelta(seconds=0.3))
    assert late.outcome == "partial"


def test_an_agent_waits_for_no_signal_and_keeps_none() -> None:
    run = make_agent(["done"]).ask("Go")
    with pytest.raises(RunOverError):
        run.signal("go")
