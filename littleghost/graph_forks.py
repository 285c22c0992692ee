"""Finds out how a graph's fan-outs and fan-ins belong together, and what cannot be reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from littleghost.engine.decide.graph import Fork, GraphPlan, Mapper, Route


@dataclass(frozen=True, slots=True)
class FanIn:
    """A declared fan-in: the target waits for all the sources."""

    sources: tuple[str, ...]
    target: str
    mapper: Mapper | None = None


class Structure:
    """A graph's shape."""

    def __init__(self, plan: GraphPlan, fan_ins: Sequence[FanIn], width: int) -> None:
        """Look at a graph.

        Args:
            plan: The graph, with the ends of its fan-outs still unknown.
            width: How many branches may run at once where nothing else is said.
        """
        self._plan = plan
        self._fan_ins = fan_ins
        self._width = width
        self._used: set[int] = set()
        self.problems: list[str] = []

    def complete(self) -> GraphPlan:
        """Find the end of each fan-out; collects what is wrong with the graph's shape."""
        routes = {
            source: tuple(self._complete(route) for route in own)
            for source, own in self._plan.routes.items()
        }
        self._check_fan_ins()
        plan = replace(self._plan, routes=routes)
        self._check_ways(plan)
        for own in routes.values():
            for route in own:
                if route.fork is not None:
                    self._check_entries(plan, route, route.fork)
        return plan

    def _complete(self, route: Route) -> Route:
        if len(route.targets) == 1:
            return route
        width = route.width or self._width
        fork = self._declared_end(route, width) or self._inferred_end(route, width)
        if fork is not None:
            self._check_branches(route, fork)
            return replace(route, fork=fork)
        heads = ", ".join(map(repr, route.targets))
        self.problems.append(
            f"edges: the fan-out from {route.source!r} to {heads} has no fan-in; add "
            "Edge([last node of each branch], node), or let each branch end with one edge to the "
            "same node, without condition and input, and with no other way on"
        )
        return route

    def _steps(self, node: str) -> Iterable[str]:
        for route in self._plan.routes.get(node, ()):
            yield from route.targets
        for error in self._plan.errors.get(node, ()):
            yield error.target

    def _reach(self, start: str, stop: str | None = None) -> list[str]:
        """Give what can be reached from a node, nearest first, without going through `stop`."""
        found = [start]
        for node in found:
            found += [
                other for other in dict.fromkeys(self._steps(node))
                if other not in found and other != stop
            ]  # fmt: skip
        return found

    def _declared_end(self, route: Route, width: int) -> Fork | None:
        fitting: list[tuple[int, FanIn, list[str]]] = []
        for index, fan_in in enumerate(self._fan_ins):
            ends: list[str] = []
            for head in route.targets:
                own = [name for name in self._reach(head, fan_in.target) if name in fan_in.sources]
                ends += own if len(own) == 1 else []
            if len(ends) == len(route.targets) and set(ends) == set(fan_in.sources):
                fitting.append((index, fan_in, ends))
        if len(fitting) > 1:
            self.problems.append(
                f"edges: the fan-out from {route.source!r} has {len(fitting)} fan-ins, not one"
            )
        if not fitting:
            return None
        index, fan_in, ends = fitting[0]
        self._used.add(index)
        return Fork(
            ends=tuple(ends),
            order=fan_in.sources,
            join=fan_in.target,
            width=width,
            mapper=fan_in.mapper,
        )

    def _inferred_end(self, route: Route, width: int) -> Fork | None:
        """Find the earliest node that every branch ends at."""
        reached = [self._reach(head) for head in route.targets]
        common = [name for name in reached[0] if all(name in own for own in reached)]
        common.sort(key=lambda name: max(own.index(name) for own in reached))
        for name in common:
            if name in route.targets:
                continue
            ends = [self._end_before(head, name) for head in route.targets]
            found = tuple(end for end in ends if end is not None)
            if len(found) == len(ends) == len(set(found)):
                return Fork(ends=found, order=found, join=name, width=width)
        return None

    def _end_before(self, head: str, join: str) -> str | None:
        """Give the only node of a branch that leads to the join, if it leads nowhere else."""
        leading = [name for name in self._reach(head, join) if join in self._steps(name)]
        if len(leading) != 1:
            return None
        routes = self._plan.routes.get(leading[0], ())
        plain = len(routes) == 1 and routes[0].targets == (join,)
        if not plain or routes[0].when is not None or routes[0].mappers != (None,):
            return None
        by_error = [
            route for route in self._plan.errors.get(leading[0], ()) if route.target == join
        ]
        return None if by_error else leading[0]

    def _check_branches(self, route: Route, fork: Fork) -> None:
        """Check that branches keep to themselves and end where they should."""
        seen: dict[str, str] = {}
        source = route.source
        for head in route.targets:
            for name in self._reach(head, fork.join):
                other = seen.setdefault(name, head)
                if other != head:
                    self.problems.append(
                        f"edges: the branches {other!r} and {head!r} of the fan-out from "
                        f"{source!r} both lead to {name!r}; branches must not overlap"
                    )
                if name in (source, self._plan.start, self._plan.finish):
                    self.problems.append(
                        f"edges: the branch {head!r} of the fan-out from {source!r} leads to "
                        f"{name!r}, out of the branch"
                    )
                if any(len(own.targets) > 1 for own in self._plan.routes.get(name, ())):
                    self.problems.append(
                        f"edges: the branch {head!r} of the fan-out from {source!r} forks again "
                        f"at {name!r}; use a graph as a node instead"
                    )
                by_error = [error.target for error in self._plan.errors.get(name, ())]
                early = name not in fork.ends and fork.join in self._steps(name)
                if early or fork.join in by_error:
                    self.problems.append(
                        f"edges: {name!r} leads to the join {fork.join!r} from inside the branch "
                        f"{head!r}; only the branch's last node may, when it ended well"
                    )

    def _check_entries(self, plan: GraphPlan, route: Route, fork: Fork) -> None:
        """Check that a declared fan-in, which waits for all, is reached by its fan-out only."""
        if any(plan.routes.get(end) for end in fork.ends):
            return
        inside = {name for head in route.targets for name in self._reach(head, fork.join)}
        ways = [(other.source, other.targets, other.fork) for own in plan.routes.values()
                for other in own]  # fmt: skip
        ways += [(other.source, (other.target,), None) for own in plan.errors.values()
                 for other in own]  # fmt: skip
        for source, targets, other in ways:
            entered = sorted(inside.intersection(targets))
            same = other is not None and (other.join, other.order) == (fork.join, fork.order)
            if entered and source not in inside and not same:
                self.problems.append(
                    f"edges: {source!r} leads into the branch of {entered[0]!r}, whose fan-in to "
                    f"{fork.join!r} waits for all branches of the fan-out from {route.source!r}"
                )

    def _check_fan_ins(self) -> None:
        for index, fan_in in enumerate(self._fan_ins):
            names = ", ".join(map(repr, fan_in.sources))
            if index not in self._used:
                self.problems.append(
                    f"edges: the fan-in from {names} to {fan_in.target!r} belongs to no fan-out"
                )
            self.problems += [
                f"edges: {name!r} is a source of a fan-in and has another way on"
                for name in fan_in.sources
                if self._plan.routes.get(name)
            ]

    def _check_ways(self, plan: GraphPlan) -> None:
        waiting = {name for fan_in in self._fan_ins for name in fan_in.sources}
        for name in plan.nodes:
            if name != plan.finish and name not in plan.routes and name not in waiting:
                self.problems.append(
                    f"nodes[{name!r}] has no way on, and it is not the finish node"
                )
        found = [plan.start]
        for name in found:
            onward = list(self._steps(name))
            onward += [fan_in.target for fan_in in self._fan_ins if name in fan_in.sources]
            found += [other for other in dict.fromkeys(onward) if other not in found]
        for name in plan.nodes:
            if name not in found:
                what = "finish" if name == plan.finish else f"nodes[{name!r}]"
                self.problems.append(f"{what}: {name!r} cannot be reached from {plan.start!r}")
