"""Events between participants: their data, told raw, with or without the agents' own."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest

from littleghost import Edge, ErrorEdge, Graph, Node, Run, Swarm, Workflow
from littleghost.errors import InvalidRequestError
from littleghost.events import ASSEMBLY_TYPES, StreamEvent
from littleghost.handoff import HANDOFF
from littleghost.providers.scripted import Reply
from tests.integration.scripted import calls, make_agent

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]


def fails() -> type[Any]:
    def script(_request: Any) -> Reply:
        raise InvalidRequestError("refused")

    return make_agent(script)


def says() -> type[Any]:
    return make_agent(["said"])


def hands(to: str) -> type[Any]:
    def script(_request: Any) -> Reply:
        return calls((HANDOFF, {"agent_id": to, "message": "Go on."}))

    return make_agent(script, assembly_id="other" if to == "first" else "first")


class LoopSwarm(Swarm):
    """Goes round in circles."""

    members = (hands("other"), hands("first"))
    start = "first"
    max_handoff_repeats = 1


def make_graph() -> type[Graph]:
    nodes = {
        "first": Node(fails(), retries=1, retry_on=InvalidRequestError),
        "rescue": says(),
        "a": LoopSwarm,
        "b": says(),
        "c": says(),
        "d": says(),
        "last": says(),
    }
    edges = [
        Edge("first", "last"),
        ErrorEdge("first", "rescue", on=InvalidRequestError),
        Edge("rescue", ["a", "b"]),
        ErrorEdge("a", "c", on=Exception),
        Edge("a", "c"),
        Edge("b", "d"),
        Edge(["c", "d"], "last"),
    ]
    body = {"nodes": nodes, "edges": edges, "start": "first", "finish": "last"}
    return type("EventsGraph", (Graph,), {**body, "__module__": __name__})


def composite(run: Run) -> list[StreamEvent]:
    return [event for event in run.events() if event.type.startswith("assembly_")]


def documented() -> dict[str, tuple[set[str], set[str]]]:
    """Give the fields that each event has and may have, by the docstring."""
    text = " ".join((StreamEvent.__doc__ or "").split())
    found: dict[str, tuple[set[str], set[str]]] = {}
    for kind, fields in re.findall(r"(assembly_\w+) `\{(.*?)\}`", text):
        names = fields.split(", ")
        must = {name for name in names if not name.endswith("?")}
        found[kind] = must, {name.rstrip("?") for name in names}
    return found


def test_they_hold_what_is_documented_and_say_which_composite_tells() -> None:
    graph = make_graph()
    run = graph.ask("Go")
    assert run.response == "said", run.error
    seen: defaultdict[str, list[set[str]]] = defaultdict(list)
    for event in composite(run):
        told = dict(event.data)
        source = told.pop("source")
        composites = {f"{run.id}:0": graph.id(), f"{run.id}:0.3": LoopSwarm.id()}
        assert composites[source["operation_id"]] == source["agent_id"]
        assert len(source["assembly_path"]) == (source["agent_id"] == LoopSwarm.id())
        seen[event.type].append(set(told))
    known = documented()
    assert seen.keys() == known.keys() == ASSEMBLY_TYPES
    for kind, (must, may) in known.items():
        assert set.intersection(*seen[kind]) == must
        assert set.union(*seen[kind]) == may


def test_they_stay_when_agent_events_are_left_out() -> None:
    child = says()

    def perform(self: Workflow) -> Any:
        return self.invoke(child, name="child")

    workflow = type("EventsWorkflow", (Workflow,), {"perform": perform, "__module__": __name__})
    run = workflow.ask("Go", include_agent_events=False)
    assert [event.type for event in run.events()] == [
        "run_start",
        "assembly_step_start",
        "assembly_step_stop",
        "invocation_stop",
        "run_stop",
    ]
