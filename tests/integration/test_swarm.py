"""Swarms: who goes on, what each member sees, and where it ends."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from littleghost import Member, Message, Swarm, Tool
from littleghost.errors import AuthenticationError, InvalidRequestError
from littleghost.handoff import HANDOFF
from littleghost.messages import assistant, user
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.run import Run
from littleghost.wiring import runtime
from tests.integration.scripted import (
    Gate,
    calls,
    is_valid_for_providers,
    last_request,
    make_agent,
    results_in,
    texts,
    until,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]
_numbers = itertools.count()
SEEN: list[Any] = []


class Look(Tool):
    """Say what the caller's context is."""

    name = "look"

    def call(self, input: dict[str, Any]) -> str:
        return json.dumps([dict(self.invocation.context), self.context.state.get("plan")])


def handoff(to: str, message: str = "please", *, text: str = "", **more: Any) -> Reply:
    return Reply(
        text=text, tool_calls=[Call(HANDOFF, {"agent_id": to, "message": message, **more})]
    )


def member(name: str, script: Any, *tools: Any, **attributes: Any) -> type[Any]:
    return make_agent(script, *tools, assembly_id=name, description=f"Does {name}.", **attributes)


def make_swarm(*members: Any, start: Any = None, **attributes: Any) -> type[Swarm]:
    first = members[0].agent if isinstance(members[0], Member) else members[0]
    body = {"members": list(members), "start": start or first, **attributes}
    return type(f"Made{next(_numbers)}Swarm", (Swarm,), {**body, "__module__": __name__})


def told(run: Run, kind: str) -> list[Mapping[str, Any]]:
    """Give the data of the run's composite events of a type."""
    return [
        {name: value for name, value in event.data.items() if name != "source"}
        for event in run.events()
        if event.type == kind
    ]


def child_messages(run: Run, participant: str) -> list[Any]:
    return runtime().records.messages(run.record, participant)


def tools_of(request: ModelRequest) -> list[str]:
    return [spec.name for spec in request.tools]


def test_a_member_hands_off_with_context_and_the_other_answers() -> None:
    data = {"order": 7, "items": ["a"]}
    triage = member("triage", [handoff("billing", "Refund order 7.", text="Wait.", context=data)])
    billing = member("billing", ["Refunded."])
    swarm = make_swarm(triage, billing, handoffs={triage: [billing]})
    run = swarm.ask("I want my money back", history=[user("hi"), assistant("hello")])

    assert run.is_completed, run.error
    assert run.response == "Refunded."
    assert run.result is not None
    assert (run.result.text, run.result.stop_reason) == ("Refunded.", "stop")
    assert texts(last_request(triage)[1:]) == [("user", "I want my money back")]
    assert texts(last_request(billing)[1:]) == [
        ("user", 'Handoff from triage:\nRefund order 7.\n\nContext:\n{"order":7,"items":["a"]}')
    ]
    # Who has no handoffs of its own only answers.
    assert tools_of(triage.brain.requests[-1]) == [HANDOFF]
    assert tools_of(billing.brain.requests[-1]) == []
    [transition] = told(run, "assembly_transition")
    assert transition == {
        "assembly_id": swarm.id(),
        "assembly_kind": "swarm",
        "step": 1,
        "from": "triage",
        "to": "billing",
    }
    starts, stops = told(run, "assembly_step_start"), told(run, "assembly_step_stop")
    assert [item["participant"] for item in starts] == ["triage", "billing"]
    assert [item["step"] for item in starts] == [1, 2]
    used = [step.usage.to_json() for step in run.result.steps]
    assert stops == [{**item, "usage": it} for item, it in zip(starts, used, strict=True)]
    assert run.usage.input > 0


def test_a_finished_handoff_leaves_a_valid_conversation() -> None:
    triage = member("triage", [calls("look"), handoff("billing", text="Wait.")], Look)
    run = make_swarm(triage, member("billing", ["Done."])).ask("Go")
    messages = [Message.from_json(item) for item in child_messages(run, "0.0")]
    assert is_valid_for_providers(messages)
    assert results_in(messages)[-1] == ("success", "Handing off to billing.")


def test_the_tool_says_who_there_is_and_takes_nothing_else() -> None:
    triage = member("triage", ["Done."])
    make_swarm(triage, member("billing", []), member("accounts", [])).ask("Go")
    [spec] = triage.brain.requests[-1].tools
    assert "- billing: Does billing.\n- accounts: Does accounts." in spec.description
    assert spec.input_schema["properties"]["agent_id"]["enum"] == ["billing", "accounts"]
    assert spec.input_schema["required"] == ["agent_id", "message"]
    assert spec.input_schema["additionalProperties"] is False


def test_without_handoffs_everyone_may_hand_off_to_everyone() -> None:
    def of_a(request: ModelRequest) -> Any:
        return handoff("b", "x") if request.messages[-1].text == "Go" else "The end."

    a, b, c = member("a", of_a), member("b", [handoff("c")]), member("c", [handoff("a")])
    run = make_swarm(a, b, c).ask("Go")
    assert run.response == "The end."
    ways = [(item["from"], item["to"]) for item in told(run, "assembly_transition")]
    assert ways == [("a", "b"), ("b", "c"), ("c", "a")]
    # The second visit knows nothing of the first.
    assert texts(last_request(a)[1:]) == [("user", "Handoff from c:\nplease")]


def test_history_and_context_are_for_those_that_opt_in() -> None:
    history, context = [user("hi"), assistant("hello")], {"plan": "gold"}
    a = member("a", [calls("look"), handoff("b")], Look)
    b = member("b", [calls("look"), handoff("c")], Look)
    c = member("c", [calls("look"), "Done."], Look)
    swarm = make_swarm(a, Member(b, history=True, context=True), Member(c, context=True))
    run = swarm.ask("Go", history=history, context=context)

    assert run.is_completed, run.error
    seen = [results_in(last_request(agent))[0][1] for agent in (a, b)]
    assert [json.loads(item) for item in seen] == [[{}, None], [context, "gold"]]
    assert json.loads(results_in(last_request(c))[0][1]) == [context, "gold"]
    assert "hi" not in [text for _, text in texts(last_request(a))]
    assert texts(last_request(b)[1:4]) == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "Handoff from a:\nplease"),
    ]
    assert texts(last_request(c)[1:2]) == [("user", "Handoff from b:\nplease")]


def test_a_handoff_beside_other_calls_is_refused_and_nothing_is_run() -> None:
    both = Reply(tool_calls=[Call("look"), Call(HANDOFF, {"agent_id": "b", "message": "x"})])
    a = member("a", [both, handoff("b")], Look)
    run = make_swarm(a, member("b", ["Done."])).ask("Go")
    assert run.response == "Done."
    beside, alone = results_in(last_request(a))
    assert beside[0] == alone[0] == "error"
    assert "only call" in beside[1]
    assert "only call" in alone[1]
    assert "tool_start" not in [event.inner_type for event in run.events()]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"agent_id": "nobody", "message": "x"}, "agent_id"),
        ({"agent_id": "a", "message": "x"}, "agent_id"),
        ({"agent_id": "b"}, "message"),
        ({"agent_id": "b", "message": "x", "context": "text"}, "context"),
        ({"agent_id": "b", "message": "x", "more": 1}, "more"),
    ],
)
def test_wrong_input_is_told_to_the_model(value: dict[str, Any], said: str) -> None:
    a = member("a", [calls((HANDOFF, value)), handoff("b")])
    run = make_swarm(a, member("b", ["Done."])).ask("Go")
    assert run.response == "Done."
    [(status, text)] = results_in(last_request(a))
    assert status == "error"
    assert text.startswith("Invalid tool input: ")
    assert said in text


def test_an_agent_outside_of_a_swarm_has_no_such_tool() -> None:
    agent = member("alone", [handoff("b"), "Done."])
    run = agent.ask("Go")
    assert run.response == "Done."
    assert tools_of(agent.brain.requests[-1]) == []
    assert "Unknown tool" in results_in(last_request(agent))[0][1]


def test_too_many_steps_end_it_before_the_next_member() -> None:
    a, b = member("a", [handoff("b")]), member("b", [handoff("a")])
    run = make_swarm(a, b, max_steps=3).ask("Go")
    assert run.error is not None
    assert run.error.code == "assembly_limit"
    assert len(told(run, "assembly_step_start")) == 3
    assert len(told(run, "assembly_transition")) == 2


def test_a_loop_is_told_and_ends_it() -> None:
    a, b = member("a", [handoff("b")]), member("b", [handoff("a")])
    run = make_swarm(a, b, max_handoff_repeats=2).ask("Go")
    assert run.error is not None
    assert run.error.code == "assembly_limit"
    [loop] = told(run, "assembly_handoff_loop")
    assert (loop["from"], loop["to"], loop["count"]) == ("a", "b", 3)
    assert len(told(run, "assembly_transition")) == 4


def test_a_failed_attempt_is_tried_again_with_the_same_input() -> None:
    attempts: list[str] = []

    def of_b(request: ModelRequest) -> Any:
        attempts.append(request.messages[-1].text)
        if len(attempts) < 3:
            raise AuthenticationError("not yet")
        return "Done."

    a, b = member("a", [handoff("b")]), member("b", of_b)
    again = Member(b, retries=2, retry_on=[AuthenticationError], retry_delay_s=0.01)
    run = make_swarm(a, again).ask("Go")
    assert run.response == "Done.", run.error
    assert attempts == ["Handoff from a:\nplease"] * 3
    errors, retries = told(run, "assembly_step_error"), told(run, "assembly_step_retry")
    assert [(item["attempt"], item["terminal"]) for item in errors] == [(1, False), (2, False)]
    assert [item["attempt"] for item in retries] == [1, 2]
    starts = told(run, "assembly_step_start")
    assert [item["step_id"] for item in starts] == ["0.0", "0.1", "0.1", "0.1"]
    # Attempts are no steps.
    assert [item["step"] for item in told(run, "assembly_transition")] == [1]


def test_the_error_of_a_member_is_the_swarms() -> None:
    def of_b(request: ModelRequest) -> Any:
        raise InvalidRequestError("refused")

    b = Member(member("b", of_b), retries=5, retry_on=AuthenticationError)
    run = make_swarm(member("a", [handoff("b")]), b).ask("Go")
    assert run.error is not None
    assert run.error.code == InvalidRequestError.code
    assert [item["terminal"] for item in told(run, "assembly_step_error")] == [True]


def test_a_member_that_takes_too_long_is_cut() -> None:
    gate = Gate()

    class Wait(Tool):
        """Wait."""

        name = "wait"

        def call(self, input: dict[str, Any]) -> str:
            gate.enter()
            return "late"

    slow = member("slow", [calls("wait"), "Late."], Wait)
    run = make_swarm(Member(slow, timeout_s=0.3), member("b", [])).enqueue("Go")
    until(lambda: run.refresh().is_finished, "the step's time is up")
    gate.open()
    assert run.error is not None
    assert run.error.code == "assembly_step_timeout"


def test_a_cancelled_swarm_starts_nobody_else() -> None:
    gate = Gate()

    class Wait(Tool):
        """Wait."""

        name = "wait"

        def call(self, input: dict[str, Any]) -> str:
            gate.enter()
            return "late"

    slow, last = member("slow", [calls("wait"), handoff("last")], Wait), member("last", ["No."])
    run = make_swarm(slow, last).enqueue("Go")
    gate.wait_for(1)
    run.cancel("enough")
    gate.open()
    assert run.wait(20).is_cancelled
    assert not last.brain.requests
    assert run.response == ""


def test_a_session_keeps_the_question_and_the_answer() -> None:
    def of_b(request: ModelRequest) -> Any:
        return f"Answer {len(request.messages)}"

    a = Member(member("a", [handoff("b")]), name="front")
    b = Member(member("b", of_b), name="b", history=True)
    swarm = make_swarm(a, b)
    first = swarm.ask("One", session_id="swarm-session")
    second = swarm.ask("Two", session_id="swarm-session")
    assert (first.response, second.response) == ("Answer 2", "Answer 4")
    assert second.result is not None
    assert texts(second.result.messages) == [
        ("user", "One"),
        ("assistant", "Answer 2"),
        ("user", "Two"),
        ("assistant", "Answer 4"),
    ]


def test_a_context_reaches_a_member_unchanged() -> None:
    context = {"none": [], "empty": {}, "null": None, "big": 2**60 + 1, "pi": 3.141592653589793}
    a = member("a", [calls("look"), "Done."], Look)
    make_swarm(Member(a, context=True), member("b", [])).ask("Go", context=context)
    assert json.loads(results_in(last_request(a))[0][1]) == [context, None]
