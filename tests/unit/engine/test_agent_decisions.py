"""What an agent does next, as tables and properties: no I/O, no clock."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from littleghost.engine import commands as c
from littleghost.engine.decide import agent as decide
from littleghost.engine.decide.agent import AgentState, CallPlan
from littleghost.errors import (
    AuthenticationError,
    CancelledError,
    JournalUnavailableError,
    OverloadedError,
    RateLimitedError,
)
from littleghost.limits import Limits
from littleghost.messages import Message, Text, ToolUse
from littleghost.providers.base import ModelResponse
from littleghost.usage import Usage


def response(
    text: str = "", calls: int = 0, finish: str = "", usage: Usage | None = None
) -> ModelResponse:
    blocks: list[Any] = [Text(text)] if text else []
    blocks += [ToolUse(f"id{n}", "tool", {}) for n in range(calls)]
    message = Message("assistant", tuple(blocks))
    return ModelResponse(
        message=message, finish=finish or ("tool_calls" if calls else "stop"), usage=usage
    )


def after(
    answer: ModelResponse,
    *,
    state: AgentState | None = None,
    exclusive: tuple[int, ...] = (),
    limits: Limits | None = None,
) -> list[c.Command]:
    count = len(answer.message.tool_uses)
    plans = [CallPlan(queue="tools", exclusive=n in exclusive) for n in range(count)]
    return decide.turn_done(
        state or AgentState(),
        answer,
        plans,
        limits or Limits(),
        participant="0",
        turns_queue="turns",
        next_index=1,
    )


def only(commands: list[c.Command], kind: type) -> Any:
    found = [item for item in commands if isinstance(item, kind)]
    assert len(found) == 1, found
    return found[0]


def kinds(commands: list[c.Command]) -> list[str]:
    return [item.type for item in commands if isinstance(item, c.Emit)]


def test_an_answer_without_calls_ends_the_agent() -> None:
    commands = after(response("hello", usage=Usage(input=3)))
    assert only(commands, c.Complete).result == {
        "stop_reason": "stop", "participant": "0", "message": 1,
    }  # fmt: skip
    assert only(commands, c.AddUsage).usage.input == 3
    assert only(commands, c.SetText).text == "hello"
    assert kinds(commands) == ["model_stop", "invocation_stop"]


def test_a_blank_answer_leaves_no_earlier_text_in_its_place() -> None:
    """What was said in a turn before, or by a child, must not pass for the answer."""
    texts = [item for item in after(response(" \n")) if isinstance(item, c.SetText)]
    assert texts == [c.SetText("")]


@given(count=st.integers(1, 40), width=st.integers(1, 10), exclusive=st.booleans())
def test_a_batch_waits_for_all_and_then_takes_a_turn(
    count: int, width: int, exclusive: bool
) -> None:
    limits = Limits(max_parallel_calls=width)
    commands = after(response(calls=count), exclusive=(0,) if exclusive else (), limits=limits)
    start = only(commands, c.Start)
    [join] = start.joins
    calls, turns = start.tasks[:-1], start.tasks[-1]
    assert join.members == tuple(call.id for call in calls)
    assert len(set(join.members)) == count
    assert all(call.join == join.id for call in calls)
    assert join.width == (1 if exclusive else width)
    assert (join.then, turns.waits, turns.kind) == (turns.id, True, "turn")
    assert only(commands, c.SetState).state == {"turn": 1, "calls": count}
    assert kinds(commands) == ["model_stop"] + ["tool_start"] * count


def test_the_same_decision_gives_the_same_ids() -> None:
    assert after(response(calls=3)) == after(response(calls=3))


def test_calls_of_a_cut_answer_are_answered_and_not_run() -> None:
    commands = after(response(calls=2, finish="length"))
    appended = [item for item in commands if isinstance(item, c.Append)]
    records = [json.loads(text) for text in appended[1].records]
    assert [one["content"][0]["status"] for one in records] == ["error", "error"]
    assert [task.kind for task in only(commands, c.Start).tasks] == ["turn"]


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        (response("a", finish="length"), AgentState(), "output_limit"),
        (response("a", finish="content_filter"), AgentState(), "protocol"),
        (response(calls=1, finish="content_filter"), AgentState(), "protocol"),
        (response(calls=3), AgentState(calls=8), "max_tool_calls"),
    ],
)
def test_what_cannot_go_on_fails(answer: ModelResponse, state: AgentState, code: str) -> None:
    commands = after(answer, state=state, limits=Limits(max_tool_calls=10))
    assert only(commands, c.Fail).error["code"] == code
    assert kinds(commands)[-1] == "invocation_error"
    assert not [item for item in commands if isinstance(item, c.Start | c.Complete)]
    assert only(commands, c.AddUsage)


def test_the_last_turn_is_taken_and_no_more() -> None:
    limits = Limits(max_turns=2)
    assert decide.before_turn(AgentState(turn=1), limits) == []
    assert only(decide.before_turn(AgentState(turn=2), limits), c.Fail).error["code"] == "max_turns"
    assert decide.before_turn(AgentState(turn=10**6), Limits(max_turns=None)) == []


def failed(error: BaseException, **given: Any) -> list[c.Command]:
    values = {"failures": 0, "limits": Limits(), "left_s": None, "jitter": 0.0, **given}
    return list(decide.turn_failed(error, **values))


@pytest.mark.parametrize(
    ("failures", "wait"), [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0)]
)  # fmt: skip
def test_waits_grow(failures: int, wait: float) -> None:
    again = only(failed(OverloadedError("x"), failures=failures), c.TryAgain)
    assert (again.delay_s, again.failures) == (wait, failures + 1)


@given(
    failures=st.integers(0, 3), jitter=st.floats(0, 1), hint=st.none() | st.floats(0, 1000),
    left=st.none() | st.floats(0, 1000),
)  # fmt: skip
def test_a_retry_never_outlives_the_deadline_nor_comes_early(
    failures: int, jitter: float, hint: float | None, left: float | None
) -> None:
    error = RateLimitedError("x", retry_after_s=hint)
    commands = failed(error, failures=failures, jitter=jitter, left_s=left)
    again = [item for item in commands if isinstance(item, c.TryAgain)]
    if again:
        assert left is None or again[0].delay_s < left
        assert hint is None or again[0].delay_s >= hint
        assert only(commands, c.Emit).live
    else:
        assert left is not None
        assert only(commands, c.Fail).error["code"] == "rate_limited"


@pytest.mark.parametrize(
    ("error", "failures", "again"),
    [
        (OverloadedError("x"), 4, False),
        (AuthenticationError("x"), 0, False),
        (CancelledError("x"), 0, False),
        (ValueError("x"), 0, False),
        (JournalUnavailableError("x"), 0, True),
    ],
)
def test_only_what_may_pass_is_tried_again(
    error: BaseException, failures: int, again: bool
) -> None:
    commands = failed(error, failures=failures)
    assert bool([item for item in commands if isinstance(item, c.TryAgain)]) == again


def test_withdrawn_text_is_told() -> None:
    data = only(failed(OverloadedError("x", status=503), partial_text="half"), c.Emit).data
    assert data["partial_text"] == "half"
    assert (data["attempt"], data["error_class"], data["http_status"]) == (
        1,
        "OverloadedError",
        503,
    )


def test_a_calls_result_is_recorded_with_its_state() -> None:
    use = ToolUse("id", "tool", {})
    change = {"op": "set", "key": "a", "value": 1}
    commands = decide.call_done("0-c0.0", use, "text", "success", [change])
    assert json.loads(only(commands, c.RecordResult).record)["content"][0] == {
        "type": "tool_result", "tool_use_id": "id", "content": "text", "status": "success",
    }  # fmt: skip
    assert only(commands, c.ChangeState).operations == [change]
    assert only(commands, c.Emit).result == "0-c0.0"
