"""Cut assemblies inside of each other at every operation of their journal: the same end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from littleghost import Agent, Edge, Graph, Limits, Subagent, Swarm, Workflow
from littleghost.errors import InvalidRequestError
from littleghost.handoff import HANDOFF
from littleghost.messages import ToolResult
from littleghost.providers.base import ModelRequest
from littleghost.providers.registry import Models
from littleghost.providers.scripted import Call, Reply, ScriptedProvider
from tests.integration.journal.test_cut import MODES, cut_everywhere
from tests.support.cast import USAGE, CastProvider, Clerk, _since_user, at
from tests.support.flows import SequenceWorkflow
from tests.support.reading import runs_of
from tests.support.scenarios import Scenario, enqueue, play
from tests.support.world import World

pytestmark = pytest.mark.redis


class PairGraph(Graph):
    """Two branches and a join, which tells what it was told."""

    nodes = dict.fromkeys(("s", "a", "b", "j"), Clerk)
    start, finish = "s", "j"
    edges = (
        Edge("s", ["a", "b"], input=lambda state: f"say {state.current}"),
        Edge(["a", "b"], "j", input=lambda state: f"say {state.result('a').text} and "
             f"{state.result('b').text}"),
    )  # fmt: skip


class BrokenGraph(PairGraph):
    """Its second branch fails, whatever becomes of the first."""

    edges = (
        Edge("s", ["a", "b"], max_concurrency=1,
             input=lambda state: "bad" if state.current == "b" else "say a"),
        Edge(["a", "b"], "j"),
    )  # fmt: skip


class GraphWorkflow(Workflow):
    """Has a graph do its work, and asks a clerk of its own."""

    def perform(self) -> Any:
        return self.invoke(Clerk, input=f"say {self.invoke(PairGraph, input='text').output}")


class RescuingWorkflow(Workflow):
    """Goes on when a graph has failed."""

    def perform(self) -> Any:
        try:
            return self.invoke(BrokenGraph).output
        except InvalidRequestError as error:
            return str(error)


class Nested(Agent, abstract=True):
    """Base: what it does depends on its name and the newest user message."""

    system_prompt = ""
    limits = Limits(max_model_retries=0)


class AskingAgent(Nested):
    """Hands off at once."""

    model = "nested:asking"


class WorkingAgent(Nested):
    """Has a workflow work for it, then answers."""

    model = "nested:working"
    tools = (SequenceWorkflow.as_tool(name="sequence", description="Two clerks."),)


class PairSwarm(Swarm):
    """One handoff, then an answer."""

    members = (AskingAgent, WorkingAgent)
    start = AskingAgent
    handoffs = {AskingAgent: [WorkingAgent]}  # noqa: RUF012


class SwarmGraph(Graph):
    """A swarm as a node; what it answers chooses the way."""

    nodes = {"swarm": PairSwarm, "other": Clerk, "f": Clerk}  # noqa: RUF012
    start, finish = "swarm", "f"
    edges = (
        Edge("swarm", "f", when=lambda state: "friend" in state.result("swarm").text,
             input=lambda state: f"say {state.result('swarm').text}"),
        Edge("swarm", "other"),
        Edge("other", "f"),
    )  # fmt: skip


class ParallelWorkflow(Workflow):
    """An agent that uses another assembly as a tool, beside one that calls tools."""

    def perform(self) -> Any:
        return {
            "said": self.parallel(
                self.invoke(WorkingAgent, input="work"),
                self.invoke(Clerk, input="parallel"),
            )
        }


class AgentOfGraph(Nested):
    """An agent at the root whose tool is a graph."""

    model = "nested:working"
    tools = (PairGraph.as_tool(name="sequence", description="Two branches."),)


class LeadingAgent(Nested):
    """Has a subagent do the work."""

    model = "nested:leading"
    subagents = (Subagent(Clerk, kind="clerk"),)


class LeadingWorkflow(Workflow):
    """An agent with a subagent beside one without."""

    def perform(self) -> Any:
        return {
            "said": self.parallel(
                self.invoke(LeadingAgent, input="text"), self.invoke(Clerk, input="say two")
            )
        }


def script(request: ModelRequest) -> Reply:
    """Answer by who is asked and what was said since."""
    at("model")
    text, turn = _since_user(request)
    if request.model == "asking":
        value = {"agent_id": "working", "message": "work"}
        return Reply(text="Not mine.", tool_calls=[Call(HANDOFF, value)], usage=USAGE)
    if turn == 0 and request.model == "leading":
        value = {"kind": "clerk", "task_name": "one", "task": text, "mode": "sync"}
        return Reply(tool_calls=[Call("spawn_subagent", value)], usage=USAGE)
    if turn == 0:
        return Reply(tool_calls=[Call("sequence", {"input": "text"})], usage=USAGE)
    [told] = [
        block.content
        for message in request.messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]
    if request.model == "leading":
        told = json.loads(told)["response"]
    return Reply(text=f"{told} ({text.splitlines()[-1]})", usage=USAGE)


class NestedProvider(CastProvider):
    """Answers by this module's script."""

    def __init__(self) -> None:
        ScriptedProvider.__init__(self, script)


@dataclass(frozen=True)
class Nesting:
    """An assembly of assemblies; its response and how many steps it takes, all of them told."""

    assembly: Any
    response: str
    steps: int

    @property
    def scenario(self) -> Scenario:
        """Give the scenario: the assembly is asked `text`."""
        return Scenario(
            self.assembly.__name__,
            lambda world: [enqueue(world, "text", assembly=self.assembly)],
        )


# One line for each: to have another nesting cut everywhere, add it here.
NESTINGS = [
    Nesting(GraphWorkflow, "a and b", 6),
    Nesting(RescuingWorkflow, "the script refuses this", 4),
    Nesting(SwarmGraph, "Hello there, friend. (work)", 6),
    Nesting(ParallelWorkflow, '{"said":["Hello there, friend. (work)","Both are done."]}', 4),
    Nesting(AgentOfGraph, "a and b (text)", 4),
    Nesting(LeadingWorkflow, '{"said":["Hello there, friend. (text)","two"]}', 2),
]


@pytest.fixture(autouse=True)
def _nested_models(cast_models: Models) -> None:
    cast_models.connect("nested", NestedProvider())


@pytest.mark.parametrize("nesting", NESTINGS, ids=lambda one: one.assembly.__name__)
def test_undisturbed_it_ends_as_declared(world: World, nesting: Nesting) -> None:
    [end] = play(world, nesting.scenario)
    assert (end.status, end.response, end.error) == ("completed", nesting.response, "")
    [run_id] = runs_of(world)
    result = world.run(run_id).result
    assert result is not None
    assert len(result.steps) == nesting.steps
    known = {step.id for step in result.steps}
    assert {step.parent_id for step in result.steps} <= {None, *known}
    assert all(set(step.predecessor_ids) <= known for step in result.steps)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nesting", NESTINGS, ids=lambda one: one.assembly.__name__)
def test_the_end_is_the_same_wherever_it_is_cut(
    worlds: Callable[..., World], nesting: Nesting, mode: str
) -> None:
    assert cut_everywhere(worlds(**MODES[mode]), nesting.scenario) > 60
