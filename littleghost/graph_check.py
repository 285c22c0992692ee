"""Reads a graph's declaration and reports everything that is wrong with it at once."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from littleghost.engine.decide.graph import ErrorRoute, GraphPlan, NodePlan, Route
from littleghost.errors import DefinitionError
from littleghost.graph_forks import FanIn, Structure
from littleghost.graph_parts import Edge, ErrorEdge, Node
from littleghost.policy import StepPolicy

Names = tuple[str, ...]


def check_graph(owner: str, declared: Any) -> GraphPlan:
    """Read a graph's declaration.

    Args:
        owner: What error messages call it.
        declared: Has the attributes `nodes`, `start`, `finish`, `edges`, `max_steps` and
            `max_concurrency`.

    Raises:
        DefinitionError: Something is wrong; the message lists all of it, each with its field.
    """
    reader = _Reader(owner, declared)
    plan = reader.read()
    if reader.problems:
        raise DefinitionError(
            "; ".join(f"{owner}.{problem}" for problem in dict.fromkeys(reader.problems))
        )
    return plan


class _Reader:
    """Reads one declaration; collects what is wrong with it."""

    def __init__(self, owner: str, declared: Any) -> None:
        self._owner = owner
        self._declared = declared
        self.problems: list[str] = []
        self._nodes: dict[str, NodePlan] = {}
        self._names: set[str] = set()

    def read(self) -> GraphPlan:
        """Read all of it; the plan is of use only if there are no problems."""
        declared = self._declared
        self._read_nodes(declared.nodes)
        ends = [self._named(getattr(declared, name), f"{name} is") for name in ("start", "finish")]
        for field in ("max_steps", "max_concurrency"):
            self._count(getattr(declared, field), f"{field} is")
        before = len(self.problems)
        edges, errors = self._read_edges(declared.edges)
        fan_ins = [
            FanIn(_names_of(edge.source), str(edge.target), edge.input)
            for edge in edges
            if not isinstance(edge.source, str)
        ]
        routes = self._routes([edge for edge in edges if isinstance(edge.source, str)])
        plan = GraphPlan(
            nodes=self._nodes,
            start=declared.start,
            finish=declared.finish,
            max_steps=declared.max_steps,
            routes=routes,
            errors=_by_source(errors),
        )
        if len(self.problems) > before or not all(ends):
            # What the edges make together is of no interest before each of them is right.
            return plan
        structure = Structure(plan, fan_ins, declared.max_concurrency)
        plan = structure.complete()
        self.problems += structure.problems
        return plan

    def _read_nodes(self, nodes: Any) -> None:
        if not isinstance(nodes, Mapping) or not nodes:
            self.problems.append("nodes is empty; use a dict of names and assembly classes")
            return
        for name, value in cast("Mapping[Any, Any]", nodes).items():
            if not isinstance(name, str) or not name.strip():
                self.problems.append(f"nodes has the name {name!r}; use text")
                continue
            self._names.add(name)
            node = value if isinstance(value, Node) else Node(value)
            where = f"nodes[{name!r}]"
            if not (isinstance(node.assembly, type) and hasattr(node.assembly, "begin")):
                self.problems.append(f"{where} is {node.assembly!r}; use an assembly class")
                continue
            self._callable(node.input, f"{where}: input")
            for flag in ("history", "context"):
                value: Any = getattr(node, flag)
                if not isinstance(value, bool):
                    self.problems.append(f"{where}: {flag} is {value!r}; use True or False")
            try:
                policy = StepPolicy.read(
                    where,
                    timeout_s=node.timeout_s,
                    retries=node.retries,
                    retry_on=node.retry_on,
                    retry_delay_s=node.retry_delay_s,
                )
            except DefinitionError as error:
                self.problems.append(str(error))
                continue
            self._nodes[name] = NodePlan(
                assembly=node.assembly,
                policy=policy,
                history=node.history,
                context=node.context,
                mapper=node.input,
            )

    def _named(self, name: Any, what: str) -> bool:
        if isinstance(name, str) and name in self._names:
            return True
        known = ", ".join(map(repr, sorted(self._names)))
        self.problems.append(f"{what} {name!r}, which is no node; the nodes are {known}")
        return False

    def _count(self, value: Any, what: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.problems.append(f"{what} {value!r}; use a whole number from 1")

    def _callable(self, value: Any, what: str) -> None:
        if value is None:
            return
        if not callable(value):
            self.problems.append(f"{what} is {value!r}; use a function of the State")
        elif inspect.iscoroutinefunction(value):
            self.problems.append(f"{what} is a coroutine function; use an ordinary one")

    def _read_edges(self, declared: Any) -> tuple[list[Edge], list[ErrorRoute]]:
        edges: list[Edge] = []
        errors: list[ErrorRoute] = []
        if isinstance(declared, str) or not isinstance(declared, Sequence):
            self.problems.append(f"edges is {declared!r}; use a list of Edge and ErrorEdge")
            return edges, errors
        for index, edge in enumerate(cast("Sequence[Any]", declared)):
            where = f"edges[{index}]"
            before = len(self.problems)
            if isinstance(edge, ErrorEdge):
                route = self._error_route(edge, where)
                if len(self.problems) == before:
                    errors.append(route)
            elif isinstance(edge, Edge):
                self._check_edge(edge, where)
                if len(self.problems) == before:
                    edges.append(edge)
            else:
                self.problems.append(f"{where} is {edge!r}; use Edge(…) or ErrorEdge(…)")
        return edges, errors

    def _check_edge(self, edge: Edge, where: str) -> None:
        self._side(edge.source, f"{where}: source")
        self._side(edge.target, f"{where}: target")
        from_many, to_many = not isinstance(edge.source, str), not isinstance(edge.target, str)
        if from_many and to_many:
            self.problems.append(
                f"{where} has lists on both sides; use two edges and a node between"
            )
        if from_many and edge.when is not None:
            self.problems.append(f"{where}: a fan-in waits for all and takes no condition")
        if self._declared.finish in _names_of(edge.source):
            self.problems.append(f"{where} leaves the finish node {self._declared.finish!r}")
        if edge.max_concurrency is not None:
            self._count(edge.max_concurrency, f"{where}: max_concurrency is")
            if not to_many:
                self.problems.append(f"{where}: max_concurrency needs a list of targets")
        self._callable(edge.when, f"{where}: when")
        self._callable(edge.input, f"{where}: input")

    def _side(self, names: Any, what: str) -> None:
        if isinstance(names, list | tuple):
            several = cast("Sequence[Any]", names)
            if len(several) < 2 or len(set(map(str, several))) < len(several):
                self.problems.append(
                    f"{what} is {names!r}; a list needs two or more distinct nodes"
                )
            for name in several:
                self._named(name, f"{what} has")
        else:
            self._named(names, f"{what} is")

    def _error_route(self, edge: ErrorEdge, where: str) -> ErrorRoute:
        self._named(edge.source, f"{where}: source is")
        self._named(edge.target, f"{where}: target is")
        if edge.source == self._declared.finish:
            self.problems.append(f"{where} leaves the finish node {edge.source!r}")
        on: Any = edge.on
        classes: tuple[Any, ...] = tuple(on) if isinstance(on, list | tuple) else (on,)
        if not classes or not all(
            isinstance(item, type) and issubclass(item, BaseException) for item in classes
        ):
            self.problems.append(f"{where}: on is {on!r}; use one or more exception classes")
        self._callable(edge.input, f"{where}: input")
        return ErrorRoute(
            source=str(edge.source), target=str(edge.target), on=classes, mapper=edge.input
        )

    def _routes(self, edges: Sequence[Edge]) -> dict[str, tuple[Route, ...]]:
        by_source: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in edges:
            by_source[str(edge.source)].append(edge)
        return {source: self._routes_of(source, own) for source, own in by_source.items()}

    def _routes_of(self, source: str, edges: Sequence[Edge]) -> tuple[Route, ...]:
        always = [edge for edge in edges if edge.when is None]
        alone = all(isinstance(edge.target, str) for edge in always) and len(always) == len(edges)
        if len(always) > 1 and alone:
            # Several edges without a condition go to all their targets at once.
            targets = tuple(str(edge.target) for edge in always)
            if len(set(targets)) < len(targets):
                self.problems.append(f"edges has two equal edges from {source!r}")
            mappers = tuple(edge.input for edge in always)
            return (Route(source=source, targets=targets, mappers=mappers),)
        if len(always) > 1:
            self.problems.append(
                f"edges has {len(always)} ways without a condition from {source!r}, beside others; "
                "one is allowed, or only such edges to single nodes"
            )
        return tuple(_route(source, edge) for edge in edges)


def _route(source: str, edge: Edge) -> Route:
    targets = _names_of(edge.target)
    return Route(
        source=source,
        targets=targets,
        mappers=(edge.input,) * len(targets),
        when=edge.when,
        width=edge.max_concurrency,
    )


def _names_of(names: Any) -> Names:
    return tuple(cast("Sequence[str]", names)) if isinstance(names, list | tuple) else (names,)


def _by_source(routes: Sequence[ErrorRoute]) -> dict[str, tuple[ErrorRoute, ...]]:
    found: defaultdict[str, tuple[ErrorRoute, ...]] = defaultdict(tuple)
    for route in routes:
        found[route.source] += (route,)
    return dict(found)
