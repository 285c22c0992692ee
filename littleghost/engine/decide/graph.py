"""Which node of a graph is next: a table of routes, and the rules by which one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from littleghost.errors import AssemblyRoutingError
from littleghost.failure import NEVER_RECOVERED, Failure
from littleghost.policy import StepPolicy

Mapper: TypeAlias = Callable[[Any], Any]
Condition: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """One node: what runs, within which bounds, and what it gets to see.

    Attributes:
        mapper: Makes the node's input, unless the edge that leads to it does.
    """

    assembly: Any
    policy: StepPolicy
    history: bool = False
    context: bool = False
    mapper: Mapper | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Where the branches of a fan-out end, and what follows when all have ended.

    Attributes:
        ends: The last node of each branch, in the order of the branches.
        order: The same nodes in the order in which the join names them.
        join: The node that runs after all of them.
        mapper: Makes the join's input.
        width: How many branches may run at once.
    """

    ends: tuple[str, ...]
    order: tuple[str, ...]
    join: str
    width: int
    mapper: Mapper | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A way on from a node that ended well: to one node, or to several at once.

    Attributes:
        mappers: What makes the input of each target, or None.
        when: The condition; None is the way taken when no condition holds.
        fork: Set exactly when there are several targets.
    """

    source: str
    targets: tuple[str, ...]
    mappers: tuple[Mapper | None, ...]
    when: Condition | None = None
    width: int | None = None
    fork: Fork | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRoute:
    """A way on from a node that failed with one of some exceptions."""

    source: str
    target: str
    on: tuple[type[BaseException], ...]
    mapper: Mapper | None = None


def _no_routes() -> Mapping[str, tuple[Any, ...]]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPlan:
    """A checked graph.

    Attributes:
        max_steps: How many times nodes may run in all, branches included.
    """

    nodes: Mapping[str, NodePlan]
    start: str
    finish: str
    max_steps: int
    routes: Mapping[str, tuple[Route, ...]] = field(default_factory=_no_routes)
    errors: Mapping[str, tuple[ErrorRoute, ...]] = field(default_factory=_no_routes)


def choose(source: str, routes: Sequence[Route], state: Any) -> int:
    """Choose the way on from a node that ended well.

    Args:
        state: What conditions see.

    Returns:
        The index of the route.

    Raises:
        AssemblyRoutingError: More than one condition holds, none does and there is no way without
            one, or a condition raised an exception.
    """
    holding = [
        index
        for index, route in enumerate(routes)
        if route.when and _holds(route, route.when, state)
    ]
    if len(holding) > 1:
        raise AssemblyRoutingError(
            f"after node {source!r} the conditions of {len(holding)} edges hold at once, those to "
            f"{_named(routes, holding)}; at most one may, or use one edge to a list of nodes"
        )
    if holding:
        return holding[0]
    for index, route in enumerate(routes):
        if route.when is None:
            return index
    given = state.results[source].output if source in state.results else None
    ways = f"its edges lead to {_named(routes, range(len(routes)))}" if routes else "it has no edge"
    raise AssemblyRoutingError(
        f"after node {source!r} no condition holds and there is no edge without one: {ways}; "
        f"it gave {given!r:.200}"
    )


def _named(routes: Sequence[Route], indexes: Sequence[int]) -> str:
    return ", ".join(" + ".join(map(repr, routes[index].targets)) for index in indexes)


def _holds(route: Route, when: Condition, state: Any) -> bool:
    try:
        return bool(when(state))
    except Exception as error:
        targets = " + ".join(map(repr, route.targets))
        raise AssemblyRoutingError(
            f"the condition of the edge from {route.source!r} to {targets} raised "
            f"{type(error).__name__}: {error}"
        ) from error


def error_route(source: str, routes: Sequence[ErrorRoute], failure: Failure) -> int | None:
    """Choose the way on from a node that failed for good.

    Returns:
        The index of the error route; None when the failure is the graph's own.

    Raises:
        AssemblyRoutingError: More than one error edge takes the failure.
    """
    if failure.is_one_of(NEVER_RECOVERED):
        return None
    taking = [index for index, route in enumerate(routes) if failure.is_one_of(route.on)]
    if len(taking) > 1:
        targets = ", ".join(repr(routes[index].target) for index in taking)
        raise AssemblyRoutingError(
            f"node {source!r} failed with {failure.type}, which the error edges to {targets} all "
            "take; at most one may"
        )
    return taking[0] if taking else None
