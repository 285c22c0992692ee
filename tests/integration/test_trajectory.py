"""A composite's result tells of its steps and how they followed each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from littleghost import Edge, Graph, Member, Node, Run, Swarm, Tool, Workflow
from littleghost.errors import AssemblyStepTimeoutError, InvalidRequestError
from littleghost.providers.scripted import Call, Reply
from littleghost.usage import Usage
from tests.integration.scripted import Gate, calls, make_agent

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]

_numbers = itertools.count()


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


def told(run: Run) -> dict[str, list[Usage]]:
    """Give what the events say each step's attempts used, in the order in which they ended."""
    found: dict[str, list[Usage]] = {}
    for event in run.events():
        if event.inner_type in ("assembly_step_stop", "assembly_step_error"):
            data = event.inner["data"]
            found.setdefault(data["step_id"], []).append(Usage.from_json(data["usage"]))
    return found


def flow(perform: Callable[[Any], Any]) -> type[Workflow]:
    name = f"Trace{next(_numbers)}Workflow"
    return type(name, (Workflow,), {"perform": perform, "__module__": __name__})


def spends(count: int, *before: Any, tools: Any = ()) -> type[Any]:
    return make_agent([*before, Reply(text="said", usage=Usage(input=count, reasoning=1))], *tools)


def fails_once(count: int) -> type[Any]:
    """Make an agent that uses something up, fails, and answers when it is tried again."""
    tries: list[int] = []

    def script(request: Any) -> Reply:
        if request.messages[-1].role == "user":
            return calls("look", usage=Usage(input=count, output=1))
        tries.append(1)
        if len(tries) == 1:
            raise InvalidRequestError("not yet")
        return Reply(text="said", usage=Usage(output=count))

    return make_agent(script, Look)


class Look(Tool):
    """Look."""

    name = "look"
    idempotent = True

    def call(self, input: dict[str, Any]) -> str:
        return "seen"


def test_events_and_trajectory_agree_on_what_was_used() -> None:
    again: dict[str, Any] = {"retries": 1, "retry_on": InvalidRequestError}
    helper, moody = spends(1), fails_once(16)
    asks = calls(("help", {"input": "x"}), usage=Usage(input=2))
    delegating = spends(4, asks, tools=[helper.as_tool(name="help")])
    body = {
        "nodes": {
            "s": delegating,
            "a": Node(fails_once(8), **again),
            "b": flow(lambda self: self.invoke(moody, **again)),
            "j": make_swarm(),
        },
        "edges": [Edge("s", ["a", "b"]), Edge(["a", "b"], "j")],
        "start": "s",
        "finish": "j",
        "__module__": __name__,
    }
    graph = type("TraceGraph", (Graph,), body)
    run = flow(lambda self: self.invoke(graph)).ask("go")

    assert run.result is not None, run.error
    trajectory = run.result.trajectory
    assert told(run) == {
        step.id: [attempt.usage for attempt in step.attempts] for step in trajectory
    }
    by_name = {step.participant: step for step in trajectory}
    assert by_name["s"].usage == Usage(input=2 + 4 + 1, reasoning=2)
    assert [attempt.usage for attempt in by_name["a"].attempts] == [
        Usage(input=8, output=1),
        Usage(input=8, output=1 + 8),
    ]
    assert by_name["j"].usage == Usage(input=16, output=6)
    assert by_name[graph.id()].usage == run.usage
    for step in trajectory:
        inside = sum((child.usage for child in trajectory.children(step.id)), Usage())
        assert inside in (Usage(), step.usage)


def test_what_was_cut_counts_for_what_is_around_it() -> None:
    gate = Gate()

    class Hold(Tool):
        """Wait for the test."""

        name = "hold"

        def call(self, input: dict[str, Any]) -> str:
            gate.enter()
            return "late"

    slow = spends(99, calls("hold", usage=Usage(input=5)), tools=[Hold])
    around = spends(
        1, calls(("slow", {"input": "x"}), usage=Usage(input=3)), tools=[slow.as_tool(name="slow")]
    )

    def inner(self: Workflow) -> str:
        try:
            return self.invoke(around, timeout_s=0.3, name="slow").output
        except AssemblyStepTimeoutError:
            return "gave up"

    within = flow(inner)
    run = flow(lambda self: self.invoke(within, name="inner").output).ask("go")
    gate.open()

    assert run.response == "gave up", run.error
    assert run.result is not None
    outer, cut = run.result.trajectory
    assert [step.status for step in (outer, cut)] == ["completed", "cancelled"]
    assert outer.usage == cut.usage == run.usage == Usage(input=8)
    # Nothing of a cut attempt is recorded by itself.
    assert told(run) == {cut.id: [Usage()], outer.id: [Usage(input=8)]}
