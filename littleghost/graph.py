"""The Graph: several participants, and a fixed table of the ways between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, cast

from littleghost import registry
from littleghost.assembly import Assembly, builder_of
from littleghost.engine.advance import register_decider
from littleghost.engine.decide.graph import GraphPlan
from littleghost.engine.decide.graph_state import NodeResult, State
from littleghost.engine.graph_run import decide
from littleghost.errors import DefinitionError
from littleghost.graph_check import check_graph
from littleghost.graph_diagram import draw
from littleghost.graph_parts import Edge, ErrorEdge, Node

if TYPE_CHECKING:
    from littleghost.builders import GraphBuilder

__all__ = ["Edge", "ErrorEdge", "Graph", "Node", "NodeResult", "State"]

# Graphs whose definition is being written: one that holds itself is told by its name.
_writing: ContextVar[tuple[type, ...]] = ContextVar("graphs being written", default=())


class Graph(Assembly, abstract=True):
    """Runs participants along declared edges, several at once where they fork.

    Attributes:
        nodes: Names, and the assembly of each: a class, or a Node with options.
        start: The node that runs first; it gets the caller's message.
        finish: The node whose result is the graph's.
        edges: Edge and ErrorEdge entries; of the edges from a node, the one whose condition holds
            is taken, else the one without a condition.
        max_steps: How many times nodes may run in all, branches included.
        max_concurrency: How many branches of a fork may run at once.
    """

    kind = "graph"
    nodes: ClassVar[Mapping[str, Any]] = {}
    start: ClassVar[str] = ""
    finish: ClassVar[str] = ""
    edges: ClassVar[Sequence[Edge | ErrorEdge]] = ()
    max_steps: ClassVar[int] = 20
    max_concurrency: ClassVar[int] = 8
    _plan: ClassVar[GraphPlan | None] = None

    def __init_subclass__(cls, *, abstract: bool = False, **options: Any) -> None:
        """Register the class; see `Assembly`."""
        super().__init_subclass__(abstract=abstract, **options)
        cls._plan = None

    @classmethod
    def plan(cls) -> GraphPlan:
        """Give the checked graph.

        Raises:
            DefinitionError: The graph is declared wrongly; the message lists every problem.
        """
        if cls._plan is None:
            cls._plan = check_graph(cls.__qualname__, cls)
        return cls._plan

    @classmethod
    def to_builder(cls) -> GraphBuilder:
        """Give a builder that begins with what this class declares and can do."""
        return cast("GraphBuilder", builder_of(cls))

    @classmethod
    def check_definition(cls) -> None:
        """Check the graph, then the assemblies of its nodes."""
        if cls._plan is not None:
            # A graph that is a node of itself, somewhere below, is being checked already.
            return
        plan = cls.plan()
        problems: list[str] = []
        try:
            for name, node in plan.nodes.items():
                try:
                    node.assembly.check()
                except DefinitionError as error:
                    problems.append(f"{cls.__qualname__}.nodes[{name!r}]: {error}")
            if problems:
                raise DefinitionError("; ".join(problems))
        except BaseException:
            cls._plan = None
            raise

    @classmethod
    def parts(cls) -> Sequence[type[Assembly]]:
        """Give the assemblies of its nodes."""
        return [node.assembly for node in cls.plan().nodes.values()]

    @classmethod
    def definition(cls) -> Mapping[str, Any]:
        """Give what the definition consists of, as JSON."""
        plan = cls.plan()
        token = _writing.set((*_writing.get(), cls))
        try:
            nodes = {name: _told_node(node) for name, node in plan.nodes.items()}
        finally:
            _writing.reset(token)
        routes = [
            [route.source, list(route.targets), _told(route.when), [*map(_told, route.mappers)]]
            for own in plan.routes.values()
            for route in own
        ]
        errors = [
            [route.source, route.target, [item.__qualname__ for item in route.on]]
            for own in plan.errors.values()
            for route in own
        ]
        bounds = [plan.start, plan.finish, plan.max_steps, cls.max_concurrency]
        return {
            **super().definition(),
            "nodes": nodes,
            "routes": routes,
            "errors": errors,
            "bounds": bounds,
        }

    @classmethod
    def to_mermaid(cls) -> str:
        """Draw the graph as a Mermaid flowchart; checks it first."""
        return draw(cls.plan())


def _told_node(node: Any) -> list[Any]:
    known = node.assembly in _writing.get()
    told = "" if known else node.assembly.fingerprint()
    return [registry.name_of(node.assembly), told, node.history, node.context, _told(node.mapper)]


def _told(function: Any) -> str | None:
    if function is None:
        return None
    return str(getattr(function, "__qualname__", type(function).__qualname__))


register_decider("graph", decide)
