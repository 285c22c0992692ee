"""What a graph's conditions, mappers and nodes get to see of its run so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from littleghost.engine.decide.graph import GraphPlan, Mapper
from littleghost.engine.decide.graph_paths import Path, Progress
from littleghost.engine.decide.graph_state import NodeResult, State, default_input
from littleghost.engine.ports import Lease
from littleghost.engine.steps import children_of
from littleghost.engine.view import view_of
from littleghost.failure import Failure
from littleghost.frozen_json import freeze
from littleghost.invocation import read_message
from littleghost.messages import Message


class GraphView:
    """Reads a graph's list and record.

    Attributes:
        children: What the participants gave back so far, by id.
        input: The message the graph was asked with.
        history: The messages before it.
    """

    def __init__(self, lease: Lease, plan: GraphPlan, now: Progress) -> None:
        self._plan = plan
        self._now = now
        own = takewhile(lambda item: isinstance(item, Message), lease.records)
        asked = [_frozen(item) for item in own]
        self.input: Message = asked[-1]
        self.history: tuple[Message, ...] = tuple(asked[:-1])
        self.children = children_of(lease)
        self._context: Any = freeze(dict(view_of(lease).invocation.context))

    def passed_context(self) -> dict[str, Any]:
        """Give the context for a node that may see it."""
        return dict(self._context)

    def state(self, path: Path) -> State:
        """Give what a condition or mapper sees where a path has come to."""
        results = {
            name: self._result(given[0]) for name, given in self._now.results_for(path).items()
        }
        incoming = {item["n"]: self._result(item["p"]) for item in path.before if "p" in item}
        return State(
            input=self.input,
            history=self.history,
            context=self._context,
            step=path.step,
            current=path.node,
            previous=path.previous,
            predecessors=tuple(item["n"] for item in path.before),
            results=freeze(results),
            incoming_results=freeze(incoming),
            error=Failure.from_json(path.error) if path.error else None,
        )

    def message(self, path: Path) -> Message:
        """Make the input of the node a path has come to: by its edge, by itself, or the usual one.

        Raises:
            Exception: Whatever the application's mapper raises, or its value is no user message.
        """
        mapper = self._edge_mapper(path.edge) or self._plan.nodes[path.node].mapper
        if mapper is not None:
            return read_message(mapper(self.state(path)))
        return default_input(self.input, [(item["n"], self._said(item)) for item in path.before])

    def _edge_mapper(self, edge: Sequence[Any]) -> Mapper | None:
        if not edge:
            return None
        kind, source, index, place = edge
        if kind == "error":
            return self._plan.errors[source][index].mapper
        route = self._plan.routes[source][index]
        if kind == "join":
            return route.fork.mapper if route.fork else None
        return route.mappers[place]

    def _said(self, item: Mapping[str, str]) -> str:
        return f"Failed with {item['x']}." if "x" in item else self._result(item["p"]).text

    def _result(self, pid: str) -> NodeResult:
        return NodeResult(freeze(self.children[pid]["r"].get("output")), pid)


def _frozen(message: Message) -> Message:
    """Keep the application's conditions from changing what this process remembers of the run."""
    return replace(message, metadata=freeze(dict(message.metadata)))
