"""Retrying a run: what is recorded stays, what failed is done again, the old run is untouched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from littleghost import Limits
from littleghost.errors import (
    DuplicateRunError,
    InvocationError,
    NotResumableError,
    RunNotFoundError,
    SessionBusyError,
    SessionChangedError,
)
from littleghost.run import Run
from tests.support import cast, flows
from tests.support.checks import check_journal, check_nothing_left
from tests.support.fleet import KilledError
from tests.support.resuming import check_retry, refuse_at
from tests.support.scenarios import UNKNOWN, End, end_of, enqueue
from tests.support.world import World

pytestmark = pytest.mark.redis


class Bounded(cast.Scripted):
    """A clerk whose limits a test sets."""

    tools = cast.Clerk.tools


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Deploy the agent `Bounded` with other limits."""

    def deploy(**limits: Any) -> None:
        monkeypatch.setattr(Bounded, "limits", Limits(**limits))
        monkeypatch.setattr(Bounded, "_fingerprint", None)

    return deploy


def quiet_end(world: World, text: str, assembly: Any = cast.Clerk) -> End:
    """Play a run that nothing disturbs."""
    world.reset()
    run_id = enqueue(world, text, assembly=assembly)
    world.carry(run_id)
    quiet = end_of(world, run_id)
    world.reset()
    return quiet


def broken(
    world: World, text: str, *task_ids: str, assembly: Any = cast.Clerk, **fields: Any
) -> str:
    """Play a run whose model refuses what asks it under some tasks."""
    heal = refuse_at(world, *task_ids)
    run_id = enqueue(world, text, assembly=assembly, **fields)
    world.carry(run_id)
    heal()
    assert world.record(run_id).status == "failed"
    return run_id


# What is done again, and what is not.


def test_recorded_turns_and_calls_are_not_repeated(world: World) -> None:
    quiet = quiet_end(world, "long")
    old_id = broken(world, "long", "0-t3")
    old = Run.get(old_id)
    assert sorted(cast.EFFECTS) == [f"{old_id}:0-c{turn}.0" for turn in range(3)]

    new = check_retry(world, old_id, quiet)

    assert set(cast.EFFECTS.values()) == {1}
    keys = {f"{new.id if turn > 2 else old_id}:0-c{turn}.0" for turn in range(30)}
    assert set(cast.EFFECTS) == keys
    assert (old.usage + new.usage).to_json() == quiet.usage
    assert new.usage.input == 28 * 10


def test_a_turn_that_was_cut_in_the_middle_of_its_text_is_taken_again(world: World) -> None:
    quiet = quiet_end(world, "slow")
    run_id = enqueue(world, "slow")

    def cancel() -> bool:
        if world.record(run_id).tasks.get("0-t1", {}).get("s") != "leased":
            return False
        Run(run_id).cancel()
        return True

    world.hooks["delta"] = cancel
    world.carry(run_id)
    assert world.record(run_id).status == "cancelled"
    world.hooks.clear()
    new = check_retry(world, run_id, quiet)
    assert new.response == "Half of a sentence"


@pytest.mark.parametrize(("task_id", "status"), [("0-c0.0", "unknown"), ("0-c0.1", "repeated")])
def test_a_call_that_was_cut_half_way(world: World, task_id: str, status: str) -> None:
    run_id = enqueue(world, "parallel")

    def die() -> None:
        if world.record(run_id).tasks.get(task_id, {}).get("s") != "leased":
            return
        Run(run_id).cancel()
        active = world._active
        assert active is not None
        active.kill(world.client)
        raise KilledError

    world.hooks["tool after"] = die
    world.carry(run_id)
    world.hooks.clear()
    assert world.record(run_id).status == "cancelled"
    assert cast.EFFECTS[f"{run_id}:{task_id}"] == 1

    new = Run(run_id).retry()
    world.carry(new.id)

    end = end_of(world, new.id)
    assert (end.status, end.response) == ("completed", "Both are done.")
    assert cast.EFFECTS[f"{run_id}:0-c0.0"] == 1, "it must never be repeated"
    assert cast.EFFECTS[f"{run_id}:{task_id}"] == (2 if status == "repeated" else 1)
    told = cast.results(list(new.result.messages)).values()
    assert (UNKNOWN in told) == (status == "unknown")
    assert not [key for key in cast.EFFECTS if new.id in key], "services see the same key"


def test_a_retry_after_a_fix_is_of_the_new_definition(
    worlds: Callable[..., World], bound: Callable[..., None]
) -> None:
    world = worlds(in_place_max=1, definition_mismatch="refuse")
    bound(max_turns=5)
    old = Bounded.enqueue("long")
    world.carry(old.id)
    assert old.error is not None
    assert old.error.code == "max_turns"
    again = old.retry()
    world.carry(again.id)
    assert again.error is not None
    assert again.error.code == "max_turns", "nothing was changed"
    assert again.usage.input == 0

    bound(max_turns=40)
    new = again.retry()
    world.carry(new.id)

    assert (new.outcome, new.response) == ("completed", "The end.")
    assert new.record.fingerprint == Bounded.fingerprint() != old.record.fingerprint
    assert new.usage.input == 26 * 10
    assert set(cast.EFFECTS.values()) == {1}


def test_what_a_failing_turn_said_is_taken_back(world: World, bound: Callable[..., None]) -> None:
    bound()
    quiet = quiet_end(world, "parallel", Bounded)
    bound(max_tool_calls=1)
    old_id = enqueue(world, "parallel", assembly=Bounded)
    world.carry(old_id)
    assert len(world.caller.runtime.records.messages(world.record(old_id))) == 2
    bound()
    new = Run(old_id).retry()
    world.carry(new.id)
    end = end_of(world, new.id)
    assert (end.conversation, end.response) == (quiet.conversation, quiet.response)


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_call_that_failed_the_run_is_made_again_and_so_are_those_behind_it(
    world: World, monkeypatch: pytest.MonkeyPatch, exclusive: bool
) -> None:
    def close(self: Any) -> None:
        if self.name in broken_tools:
            raise RuntimeError("cannot be closed")

    broken_tools: set[str] = set()
    monkeypatch.setattr(cast.Traced, "close", close, raising=False)
    monkeypatch.setattr(cast.Exclusive, "idempotent", True)
    text = "exclusive" if exclusive else "parallel"
    quiet = quiet_end(world, text)
    broken_tools.add("exclusive" if exclusive else "fetch")
    old = cast.Clerk.enqueue(text)
    world.carry(old.id)
    assert old.error is not None
    assert old.error.code == "cleanup"
    assert len(cast.EFFECTS) == (1 if exclusive else 2)
    broken_tools.clear()
    new = old.retry()
    world.carry(new.id)
    assert new.result is not None
    assert new.response == quiet.response
    assert len(new.result.messages) == len(quiet.conversation)
    told = cast.results(list(new.result.messages))
    assert all(text.startswith("done") for text in told.values()), told
    check_journal(world.client, world.partitions)


def test_a_call_that_was_refused_before_it_began_has_no_unknown_outcome(
    worlds: Callable[..., World], bound: Callable[..., None]
) -> None:
    world = worlds(in_place_max=1, definition_mismatch="refuse")
    bound()
    old = Bounded.enqueue("parallel")
    world.carry(until=lambda: "0-c0.0" in world.record(old.id).tasks)
    bound(max_turns=7)
    world.carry(old.id)
    assert old.error is not None
    assert (old.error.code, cast.EFFECTS.total()) == ("definition_changed", 0)
    new = old.retry()
    world.carry(new.id)
    assert (new.response, end_of(world, new.id).unknown) == ("Both are done.", [])
    assert sorted(cast.EFFECTS) == [f"{old.id}:0-c0.0", f"{old.id}:0-c0.1"]


def test_steps_that_ended_well_stay(world: World) -> None:
    old_id = broken(world, "go", "0.1-t0", assembly=flows.SequenceWorkflow)
    old = Run.get(old_id)
    new = old.retry()
    world.carry(new.id)
    assert new.result is not None
    first, second = new.result.steps
    assert (first.status, second.status) == ("completed", "completed")
    assert first.attempts[0].finished_at < old.created_at + timedelta(
        milliseconds=old.record.ended_ms - old.record.created_ms
    )
    assert (first.usage.input, second.usage.input) == (0, 10), "it counts what it spends itself"
    assert (first.output, second.output) == ("Hello there, friend.",) * 2


def test_a_value_that_was_recorded_with_the_failure_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def perform(self: Any) -> str:
        made = self.step(flows.count)
        if not healed:
            raise ValueError("broken")
        return str(made)

    healed: list[int] = []
    monkeypatch.setattr(flows.SequenceWorkflow, "perform", perform)
    old = flows.SequenceWorkflow.enqueue("go")
    world.carry(old.id)
    assert old.is_failed
    healed.append(1)
    new = old.retry()
    world.carry(new.id)
    assert (new.response, cast.EFFECTS["step"]) == ("1", 1)


def test_a_step_that_failed_is_made_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def perform(self: Any) -> str:
        return self.step(flows.count) + self.step(fall) + self.invoke(cast.Clerk, input="bad").text

    def fall() -> int:
        flows.count()
        raise ValueError("broken")

    monkeypatch.setattr(flows.SequenceWorkflow, "perform", perform)
    old = flows.SequenceWorkflow.enqueue("go")
    world.carry(old.id)
    for made in (3, 4):
        old = old.retry()
        world.carry(old.id)
        assert (old.outcome, cast.EFFECTS["step"]) == ("failed", made)


# The new run.


def test_a_run_can_be_retried_more_than_once(world: World) -> None:
    old_id = broken(world, "parallel", "0-t1")
    first, second = Run(old_id).retry(), Run(old_id).retry()
    world.carry(first.id, second.id)
    assert first.id != second.id
    assert [first.outcome, second.outcome] == ["completed"] * 2
    assert {run.origin.id for run in (first, second) if run.origin} == {old_id}
    assert set(cast.EFFECTS.values()) == {1}


def test_an_id_of_ones_own_makes_it_safe_to_repeat(world: World) -> None:
    old_id = broken(world, "parallel", "0-t1")
    new = Run(old_id).retry(run_id="mine")
    with pytest.raises(DuplicateRunError):
        Run(old_id).retry(run_id="mine")
    assert new.id.endswith("mine")
    assert (
        world.caller.runtime.journal.place(new.id)[1]
        == (world.caller.runtime.journal.place(old_id)[1])
    )
    with pytest.raises(InvocationError):
        Run(old_id).retry(run_id="no id")


def test_the_runs_name_each_other(world: World) -> None:
    old_id = broken(world, "parallel", "0-t1", context={"a": 1}, metadata={"b": 2}, actor_id="me")
    new = Run(old_id).retry()
    assert (new.retry_of, new.forked_from) == (old_id, None)
    assert Run.get(old_id).origin is None
    world.carry(new.id)
    start, request, *_ = new.events()
    assert (start.type, start.data["retry_of"]) == ("run_start", old_id)
    assert request.inner_type == "invocation_start"
    assert request.data["input"]["content"][0]["text"] == "parallel"
    asked = new.invocation
    assert (asked.run_id, asked.invocation_id, asked.session_id) == (new.id,) * 3
    assert (asked.context, asked.metadata, asked.actor_id) == ({"a": 1}, {"b": 2}, "me")


def test_nothing_of_it_stays(world: World) -> None:
    old_id = broken(world, "parallel", "0-t1")
    new = Run(old_id).retry()
    world.carry(new.id)
    check_journal(world.client, world.partitions)
    check_nothing_left(world.client, world.partitions)


def test_the_state_of_tools_is_carried_on(world: World) -> None:
    old_id = broken(world, "parallel", "0-t1")
    new = Run(old_id).retry()
    world.carry(new.id)
    assert new.result is not None
    assert sorted(new.result.state["order"]) == [1, 2]


@pytest.mark.parametrize("outcome", ["failed", "partial"])
def test_a_deadline_that_is_still_ahead_holds(world: World, outcome: str) -> None:
    if outcome == "failed":
        old_id = broken(world, "parallel", "0-t1", deadline_at=timedelta(hours=1))
    else:
        old_id = enqueue(world, "slow", deadline_at=datetime.now(UTC) + timedelta(hours=1))
        world.carry(until=lambda: "0-t1" in world.record(old_id).tasks)
        world.expire_deadline(old_id)
        world.carry(old_id)
    assert world.record(old_id).status == outcome
    first, second = Run(old_id).retry(), Run(old_id).retry(deadline=timedelta(minutes=5))
    before = Run(old_id).invocation.deadline_at
    assert first.invocation.deadline_at == before
    left_ms = second.record.deadline_ms - second.record.created_ms
    assert 295_000 < left_ms <= 300_000
    check_journal(world.client, world.partitions)
    world.carry(first.id, second.id)
    assert [first.outcome, second.outcome] == ["completed"] * 2


def test_it_can_be_awaited(world: World) -> None:
    old_id = broken(world, "parallel", "0-t1")
    new = asyncio.run(Run(old_id).retry_async(run_id="later"))
    world.carry(new.id)
    assert new.is_completed


def test_a_cancelled_run_that_never_began_begins(world: World) -> None:
    old = cast.Clerk.enqueue("parallel")
    old.cancel()
    new = old.retry()
    world.carry(new.id)
    assert new.response == "Both are done."


# What is refused.


def test_what_cannot_be_retried_says_why(world: World) -> None:
    run = cast.Clerk.enqueue("text")
    with pytest.raises(NotResumableError, match="queued"):
        run.retry()
    world.carry(run.id)
    with pytest.raises(NotResumableError, match="completed"):
        run.retry()
    with pytest.raises(RunNotFoundError):
        Run("00-nothing").retry()
    old_id = broken(world, "parallel", "0-t1")
    key, _ = world.caller.runtime.journal.place(old_id)
    world.client.hdel(f"{key}:f", "ot:0-t1")
    with pytest.raises(NotResumableError, match="older version"):
        Run(old_id).retry()
    assert len(world.caller.runtime.records.recent(10)) == 2, "no run was created"


def test_a_run_that_went_well_leaves_nothing_for_a_retry(world: World) -> None:
    for assembly in (flows.CatchingWorkflow, flows.BoundedWorkflow):
        run = assembly.enqueue("go")
        world.carry(run.id)
        assert run.is_completed
        assert not world.client.exists(f"{world.caller.runtime.journal.place(run.id)[0]}:f")


# Sessions.


def test_a_retry_is_the_next_run_of_its_session(world: World) -> None:
    cast.Clerk.enqueue("text", session_id="s")
    old_id = broken(world, "parallel", "0-t1", session_id="s")
    new = Run(old_id).retry()
    following = cast.Clerk.enqueue("text", session_id="s")
    assert following.record.waits_for_session
    world.carry(new.id, following.id)
    assert [new.outcome, following.outcome] == ["completed"] * 2
    assert following.result is not None
    roles = [message.role for message in following.result.messages]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "tool", "assistant",
                     "user", "assistant"]  # fmt: skip
    check_journal(world.client, world.partitions)


def test_a_call_that_was_cut_goes_on_in_its_session(world: World) -> None:
    old_id = enqueue(world, "exclusive", session_id="s")
    world.hooks["tool after"] = lambda: Run(old_id).cancel() and None
    world.carry(old_id)
    world.hooks.clear()
    new = Run(old_id).retry()
    world.carry(new.id)
    end = end_of(world, new.id)
    assert (end.status, end.response, end.unknown) == ("completed", "One by one.", [])
    assert sorted(cast.EFFECTS.values()) == [1, 1, 1]


@pytest.mark.parametrize("assembly", [cast.Clerk, flows.SequenceWorkflow])
def test_a_session_that_went_on_refuses_the_retry(world: World, assembly: Any) -> None:
    task_id = "0-t1" if assembly is cast.Clerk else "0.1-t0"
    old_id = broken(world, "parallel", task_id, assembly=assembly, session_id="s")
    other = assembly.enqueue("text", session_id="s")
    with pytest.raises(SessionBusyError):
        Run(old_id).retry()
    world.carry(other.id)
    with pytest.raises(SessionChangedError, match="fork"):
        Run(old_id).retry()
    check_journal(world.client, world.partitions)


def test_a_composite_goes_on_in_its_session(world: World) -> None:
    first = flows.SequenceWorkflow.enqueue("go", session_id="s")
    world.carry(first.id)
    old_id = broken(world, "go", "0.1-t0", assembly=flows.SequenceWorkflow, session_id="s")
    new = Run(old_id).retry()
    world.carry(new.id)
    assert new.is_completed
    stored = world.client.lrange(world.client.hget(_key(world, new.id), "session") + ":m", 0, -1)
    assert len(stored) == 4
    check_journal(world.client, world.partitions)


def test_a_session_keeps_what_a_turn_failed_with(world: World, bound: Callable[..., None]) -> None:
    bound(max_tool_calls=1)
    old_id = enqueue(world, "parallel", assembly=Bounded, session_id="s")
    world.carry(old_id)
    bound()
    with pytest.raises(SessionChangedError, match="fork"):
        Run(old_id).retry()
    fork = Run(old_id).fork(session_id="other")
    world.carry(fork.id)
    assert fork.response == "Both are done."


def test_a_run_that_never_got_its_session_waits_for_it_again(world: World) -> None:
    first = cast.Clerk.enqueue("text", session_id="s")
    old = cast.Clerk.enqueue("parallel", session_id="s", context={"a": 1})
    old.cancel()
    assert old.is_cancelled
    new = old.retry(run_id="again")
    assert new.record.waits_for_session
    assert (new.retry_of, new.invocation.context) == (old.id, {"a": 1})
    world.carry(first.id, new.id)
    assert new.response == "Both are done."
    assert new.result is not None
    assert len(new.result.messages) == 2 + 5


def _key(world: World, run_id: str) -> str:
    return world.caller.runtime.journal.place(run_id)[0]
