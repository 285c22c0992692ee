"""Forking a run: a new run begins with its history, up to any point, and leaves it alone."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from littleghost.errors import (
    DuplicateRunError,
    InvocationError,
    RunNotFoundError,
    SessionBusyError,
)
from littleghost.messages import user
from littleghost.run import Run
from tests.support import cast, flows
from tests.support.checks import check_journal, dump
from tests.support.resuming import refuse_at
from tests.support.scenarios import enqueue
from tests.support.world import World

pytestmark = pytest.mark.redis


def done(world: World, text: str, assembly: Any = cast.Clerk, **fields: Any) -> Run:
    """Play a run to its end."""
    run = assembly.enqueue(text, **fields)
    world.carry(run.id)
    return run.refresh()


def texts(run: Run) -> list[str]:
    """Tell a conversation: each message's role and text."""
    assert run.result is not None
    return [f"{message.role}: {message.text}".rstrip(": ") for message in run.result.messages]


WHOLE = ["user: parallel", "assistant: Let me see.", "tool", "tool", "assistant: Both are done."]


def event_id(run: Run, kind: str, number: int = 0) -> str:
    """Give the id of an event of an agent's."""
    return [event.id for event in run.events() if kind in (event.type, event.inner_type)][number]


# With a message.


def test_a_fork_goes_on_from_the_end_with_a_message(world: World) -> None:
    old = done(world, "parallel", context={"a": 1}, actor_id="me", metadata={"b": 2},
               settings={"temperature": 0.5}, deadline_at=timedelta(hours=1))  # fmt: skip
    before = dump(world.client, old.id, world.partitions)
    fork = old.fork(message="text")
    world.carry(fork.id)
    assert texts(fork) == [*WHOLE, "user: text", "assistant: Hello there, friend."]
    assert dump(world.client, old.id, world.partitions) == before
    assert (fork.forked_from, fork.retry_of) == (old.id, None)
    assert fork.origin is not None
    assert fork.origin.id == old.id
    asked = fork.invocation
    assert (asked.run_id, asked.invocation_id, asked.session_id) == (fork.id,) * 3
    assert (asked.context, asked.actor_id, asked.metadata) == ({"a": 1}, "me", {"b": 2})
    assert (asked.settings, asked.deadline_at) == ({"temperature": 0.5}, None)
    assert next(iter(fork.events())).data["forked_from"] == old.id
    check_journal(world.client, world.partitions)


@pytest.mark.parametrize(
    ("at", "kept"),
    [
        ("0-t0", 1),
        ("0-c0.0", 1),
        ("0-c0.1", 4),
        ("0-t1", 5),
        (("invocation_start", 0), 1),
        (("model_stop", 0), 1),
        (("tool_start", 0), 1),
        (("tool_stop", 0), 1),
        (("tool_stop", 1), 4),
        (("model_start", 1), 4),
        (("text_delta", -1), 4),
        (("model_stop", 1), 5),
        (("run_stop", 0), 5),
        (("run_start", 0), 1),
    ],
    ids=str,
)
def test_the_history_goes_up_to_the_point_and_has_no_open_calls(
    world: World, at: Any, kept: int
) -> None:
    old = done(world, "parallel")
    fork = old.fork(at=at if isinstance(at, str) else event_id(old, *at), message=user("text"))
    world.carry(fork.id)
    assert texts(fork) == [*WHOLE[:kept], "user: text", "assistant: Hello there, friend."]


def test_a_run_that_goes_on_can_be_forked(world: World) -> None:
    old = cast.Clerk.enqueue("parallel")
    fork = old.fork(message="text", run_id="other")
    world.carry(until=lambda: "0-c0.0" in world.record(old.id).tasks)
    second = old.fork(message="text")
    again = old.fork()
    world.carry(old.id, fork.id, second.id, again.id)
    assert fork.id == "other"
    for one in (fork, second):
        assert texts(one) == [WHOLE[0], "user: text", "assistant: Hello there, friend."]
    assert texts(old.refresh()) == texts(again) == WHOLE


# Without one.


@pytest.mark.parametrize(
    ("at", "taken"),
    [
        ("0-t0", 2),
        ("0-t1", 1),
        ("0-c0.1", 1),
        (("model_stop", 0), 2),
        (("model_stop", 1), 1),
        (("model_start", 1), 1),
        (("text_delta", 0), 2),
        (("tool_stop", 1), 1),
    ],
    ids=str,
)
def test_a_turn_is_taken_again(world: World, at: Any, taken: int) -> None:
    old = done(world, "parallel")
    fork = old.fork(at=at if isinstance(at, str) else event_id(old, *at))
    world.carry(fork.id)
    assert texts(fork) == WHOLE
    assert fork.usage.input == taken * 10
    effects = [key for key in cast.EFFECTS if key.startswith(fork.id)]
    assert len(effects) == (2 if taken == 2 else 0)
    start = next(event for event in fork.events() if event.inner_type == "invocation_start")
    assert start.data["input"]["content"][0]["text"] == "parallel"


def test_a_failed_run_is_forked_at_what_it_failed_with(world: World) -> None:
    heal = refuse_at(world, "0-t1")
    old = done(world, "parallel")
    heal()
    for at in (None, "0-t1"):
        fork = old.fork(at=at)
        world.carry(fork.id)
        assert (texts(fork), fork.usage.input) == (WHOLE, 10)


def test_points_of_a_retried_run_count_from_its_first_turn(world: World) -> None:
    heal = refuse_at(world, "0-t1")
    old = done(world, "parallel")
    heal()
    new = old.retry()
    world.carry(new.id)
    for at, taken in (("0-t0", 2), ("0-t1", 1), (2, 1)):
        fork = new.fork(at=at)
        world.carry(fork.id)
        assert (texts(fork), fork.usage.input) == (WHOLE, taken * 10)


def test_a_fork_can_be_forked(world: World) -> None:
    fork = done(world, "parallel").fork(at="0-t1")
    world.carry(fork.id)
    again = fork.fork(at="0-t0")
    world.carry(again.id)
    assert (texts(again), again.usage.input) == (WHOLE, 10)
    more = again.fork(message="text")
    world.carry(more.id)
    assert len(texts(more)) == 7


# Sessions.


def test_a_fork_leaves_the_session_alone(world: World) -> None:
    first = done(world, "text", session_id="s")
    old = done(world, "parallel", session_id="s")
    fork = old.fork(message="text")
    world.carry(fork.id)
    assert len(texts(fork)) == 2 + 5 + 2
    assert fork.invocation.session_id == fork.id
    assert len(texts(old)) == 2 + 5
    again = old.fork(at="0-t1")
    world.carry(again.id)
    assert texts(again) == [*texts(first), *WHOLE]
    following = done(world, "text", session_id="s")
    assert len(texts(following)) == 2 + 5 + 2


def test_a_fork_may_begin_a_session(world: World) -> None:
    old = done(world, "parallel", session_id="s")
    fork = old.fork(message="text", session_id="branch")
    world.carry(fork.id)
    following = done(world, "text", session_id="branch")
    assert len(texts(following)) == 5 + 2 + 2
    for taken in ("s", "branch"):
        with pytest.raises(SessionBusyError) as caught:
            old.fork(message="text", session_id=taken)
        assert caught.value.field == "session_id"
    check_journal(world.client, world.partitions)


def test_a_run_that_waits_for_its_session_can_be_forked(world: World) -> None:
    cast.Clerk.enqueue("text", session_id="s")
    old = cast.Clerk.enqueue("parallel", session_id="s", history=[user("before")])
    fork, other = old.fork(), old.fork(message="text")
    world.carry(old.id, fork.id, other.id)
    assert texts(fork) == ["user: before", *WHOLE]
    assert texts(other)[:3] == ["user: before", "user: parallel", "user: text"]


# Composites.


def test_a_composite_goes_on_from_its_answer_or_begins_anew(world: World) -> None:
    old = done(world, "go", flows.SequenceWorkflow, history=[user("before")])
    anew, after = old.fork(), old.fork(message="more")
    world.carry(anew.id, after.id)
    assert anew.response == after.response == "Hello there, friend."
    record = world.record(after.id)
    begun = world.caller.runtime.records.messages(record)[: record.base + 1]
    said = [row["content"][0]["text"] for row in begun]
    assert said == ["before", "go", "Hello there, friend.", "more"]
    record = world.record(anew.id)
    begun = world.caller.runtime.records.messages(record)[: record.base + 1]
    assert [row["content"][0]["text"] for row in begun] == ["before", "go"]


def test_a_composite_has_no_points(world: World) -> None:
    old = done(world, "go", flows.SequenceWorkflow)
    with pytest.raises(InvocationError, match="begins with the request") as caught:
        old.fork(at="0.0-t0")
    assert caught.value.field == "at"


# Refusals.


@pytest.mark.parametrize(
    "at", ["0-t9", "0-c0.7x", "0-c7.0", "0.1-t0", "", "0", "99999", "-1", 0, 99999, "nothing", "٣"]
)
def test_a_point_that_is_not_there_is_named(world: World, at: Any) -> None:
    old = done(world, "parallel")
    with pytest.raises(InvocationError) as caught:
        old.fork(at=at, message="text")
    assert caught.value.field == "at"
    assert repr(at) in str(caught.value)
    assert len(world.caller.runtime.records.recent(10)) == 1


def test_what_a_fork_does_not_take_is_refused(world: World) -> None:
    old = done(world, "parallel")
    for field, values in (
        ("context", {"message": "x", "context": {}}),
        ("message", {}),
        ("message", {"message": " "}),
        ("message", {"at": "0-t1", "message": {"role": "assistant", "content": "x"}}),
        ("run_id", {"message": "x", "run_id": "no id"}),
        ("deadline_at", {"message": "x", "deadline": "never"}),
    ):
        with pytest.raises(InvocationError) as caught:
            old.fork(**values)
        assert caught.value.field == field, values
    old.fork(message="x", run_id="taken")
    with pytest.raises(DuplicateRunError):
        old.fork(message="x", run_id="taken")
    with pytest.raises(RunNotFoundError):
        Run("00-none").fork(message="x")


def test_it_can_be_awaited(world: World) -> None:
    old = Run(enqueue(world, "parallel"))
    fork = asyncio.run(old.fork_async(message="text"))
    world.carry(old.id, fork.id)
    assert fork.is_completed
