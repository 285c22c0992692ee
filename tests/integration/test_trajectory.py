"""A composite's result tells of its steps and how they followed each other."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost import Member, Swarm, Workflow
from littleghost.providers.scripted import Call, Reply
from littleghost.usage import Usage
from tests.integration.scripted import make_agent

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]


def make_swarm() -> type[Swarm]:
    handing = Reply(
        text="Not mine.",
        tool_calls=[
            Call("handoff_to_agent", {"agent_id": "billing", "message": "Bill 7 is wrong."})
        ],
        usage=Usage(input=10, output=4),
    )
    triage = make_agent([handing])
    billing = make_agent([Reply(text="Corrected.", usage=Usage(input=6, output=2))])
    body = {
        "members": [Member(triage, name="triage"), Member(billing, name="billing")],
        "start": "triage",
        "handoffs": {"triage": ["billing"]},
        "__module__": __name__,
    }
    return type("TraceSwarm", (Swarm,), body)


def test_steps_follow_each_other_and_add_up() -> None:
    run = make_swarm().ask("My bill is wrong.")

    assert run.response == "Corrected."
    assert run.result is not None
    trajectory = run.result.trajectory
    first, second = trajectory
    assert [step.participant for step in trajectory] == ["triage", "billing"]
    assert [step.status for step in trajectory] == ["completed", "completed"]
    assert trajectory.transitions == [(first.id, second.id)]
    assert (first.usage, second.usage) == (Usage(input=10, output=4), Usage(input=6, output=2))
    assert run.usage == first.usage + second.usage
    assert first.output == {"to": "billing", "message": "Bill 7 is wrong.", "context": None}
    assert second.output == "Corrected."
    assert second.parent_id is None
    assert trajectory.children(None) == [first, second]
    [attempt] = trajectory.attempts_for(second.id)
    assert attempt.number == 1
    assert attempt.finished_at is not None
    assert attempt.started_at <= attempt.finished_at
    assert not trajectory.concurrent(first.id, second.id)


def test_the_steps_of_a_tool_belong_to_the_step_of_the_agent_that_called_it() -> None:
    asked = make_agent(["It is so."])

    class InnerWorkflow(Workflow):
        def perform(self) -> Any:
            return self.invoke(asked, name="asked")

    asking = make_agent(
        [Reply(tool_calls=[Call("inner", {"input": "is it?"})]), "Yes."],
        InnerWorkflow.as_tool(name="inner"),
    )

    class OuterWorkflow(Workflow):
        def perform(self) -> Any:
            return self.invoke(asking, name="asking")

    run = OuterWorkflow.ask("go")

    assert run.result is not None
    first, second = run.result.steps
    assert [first.participant, second.participant] == ["asking", "asked"]
    assert (first.parent_id, second.parent_id) == (None, first.id)


def test_an_agent_has_no_steps() -> None:
    run = make_agent(["alone"]).ask("go")

    assert run.result is not None
    assert list(run.result.steps) == []
