"""The turn of an agent that may hand off: it ends its part, or is told why not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from littleghost.engine import commands as c
from littleghost.engine.decide import agent as decide
from littleghost.engine.decide.agent import AgentState, CallPlan
from littleghost.errors import ProtocolError
from littleghost.handoff import HANDOFF, Handoff, grant, specification, targets_of
from littleghost.limits import Limits
from littleghost.messages import Message, Text, ToolUse
from littleghost.providers.base import ModelResponse

TARGETS = [{"id": "billing", "description": "Refunds."}, {"id": "accounts", "description": ""}]
GOOD = {"agent_id": "billing", "message": "Refund it."}


def after(
    *uses: ToolUse, finish: Any = "tool_calls", targets: Any = TARGETS, **limits: Any
) -> list[c.Command]:
    message = Message("assistant", (Text("Wait."), *uses))
    return decide.turn_done(
        AgentState(turn=2, calls=1),
        ModelResponse(message=message, finish=finish),
        [CallPlan(queue="tools") for _ in uses],
        Limits(**limits),
        participant="0.1",
        turns_queue="turns",
        next_index=4,
        targets=targets,
    )


def use(value: Any = GOOD, name: str = HANDOFF, number: int = 0, error: Any = None) -> ToolUse:
    return ToolUse(f"id{number}", name, value, error=error)


def of(commands: list[c.Command], kind: type) -> list[Any]:
    return [item for item in commands if isinstance(item, kind)]


def answers(commands: list[c.Command]) -> list[dict[str, Any]]:
    """Give the tool results that were appended behind the model's answer."""
    records = [json.loads(text) for item in of(commands, c.Append)[1:] for text in item.records]
    return [block for record in records for block in record["content"]]


@pytest.mark.parametrize("context", [None, {"order": 7}])
def test_a_handoff_ends_the_agents_part(context: Any) -> None:
    commands = after(use(GOOD if context is None else {**GOOD, "context": context}))
    [complete] = of(commands, c.Complete)
    assert complete.result == {
        "stop_reason": "assembly_transition",
        "participant": "0.1",
        "message": 4,
        "output": "Wait.",
        "handoff": {"to": "billing", "message": "Refund it.", "context": context},
    }
    [result] = answers(commands)
    assert (result["tool_use_id"], result["content"]) == ("id0", "Handing off to billing.")
    assert not of(commands, c.Start)
    assert [item.type for item in of(commands, c.Emit)] == ["model_stop", "invocation_stop"]


def test_a_context_that_came_as_text_is_unwrapped() -> None:
    [complete] = of(after(use({**GOOD, "context": '{"a": 1}'})), c.Complete)
    assert complete.result["handoff"]["context"] == {"a": 1}


@pytest.mark.parametrize(
    "uses",
    [
        [use(), use(GOOD, number=1)],
        [use({}, "look", 1), use()],
        [use(), use({}, "look", 1)],
        [use({"agent_id": "nobody", "message": "x"})],
        [use({"agent_id": "billing"})],
        [use({**GOOD, "context": [1]})],
        [use({**GOOD, "priority": 1})],
        [use({}, error="not JSON")],
    ],
)
def test_a_refused_handoff_runs_nothing_and_takes_another_turn(uses: list[ToolUse]) -> None:
    commands = after(*uses)
    assert not of(commands, c.Complete)
    results = answers(commands)
    assert [item["tool_use_id"] for item in results] == [item.id for item in uses]
    assert {item["status"] for item in results} == {"error"}
    [start] = of(commands, c.Start)
    [task] = start.tasks
    assert (task.id, task.kind, task.waits) == ("0.1-t3", "turn", False)
    assert of(commands, c.SetState)[0].state == {"turn": 3, "calls": 1 + len(uses)}
    assert "tool_start" not in [item.type for item in of(commands, c.Emit)]


def test_refused_handoffs_use_up_tool_calls() -> None:
    [failed] = of(after(use({}), max_tool_calls=1), c.Fail)
    assert failed.error["code"] == "max_tool_calls"


def test_a_cut_answer_hands_nothing_off() -> None:
    commands = after(use(), finish="length")
    assert not of(commands, c.Complete)
    assert "length limit" in answers(commands)[0]["content"]


def test_without_a_grant_it_is_a_call_like_any_other() -> None:
    [start] = of(after(use(), targets=()), c.Start)
    assert [task.kind for task in start.tasks] == ["call", "turn"]


def test_a_grant_is_read_from_the_header() -> None:
    assert targets_of({"gr": grant(TARGETS)}) == TARGETS
    assert list(targets_of({})) == []
    assert list(targets_of({"gr": {"other": 1}})) == []


def test_the_tool_lists_its_targets() -> None:
    spec = specification(TARGETS)
    assert spec.description.endswith("\n- billing: Refunds.\n- accounts")
    assert spec.input_schema["properties"]["agent_id"]["enum"] == ["billing", "accounts"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        "billing",
        [],
        {},
        {"to": "billing"},
        {"to": "", "message": "x"},
        {"to": 1, "message": "x"},
        {"to": "billing", "message": None},
        {"to": "billing", "message": "x", "context": "text"},
    ],
)
def test_a_malformed_handoff_is_a_protocol_error(data: Any) -> None:
    with pytest.raises(ProtocolError):
        Handoff.from_json(data)


def test_what_the_next_member_is_told() -> None:
    assert Handoff("b", "Go on.").told("a").text == "Handoff from a:\nGo on."
    told = Handoff("b", "Go on.", {"é": [1]}).told("a")
    assert told.text == 'Handoff from a:\nGo on.\n\nContext:\n{"é":[1]}'
    assert told.role == "user"
    assert Handoff.from_json(Handoff("b", "x", {}).to_json()) == Handoff("b", "x", {})
