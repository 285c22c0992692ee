"""What a graph must give: one node after the other, and branches one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from littleghost.errors import AssemblyError, AssemblyLimitError, AssemblyRoutingError
from tests.support import plans
from tests.support.actors import error_class
from tests.support.expected import Ambiguous, Done, Failed, Key, Scope
from tests.support.plans import GraphPlan, Mapper, crc, text_for

if TYPE_CHECKING:
    from tests.support.reference import Reference


@dataclass
class Walk:
    """The main path of a graph, or a branch of it.

    Attributes:
        results: What nodes gave, as far as this path sees it; None where one failed.
        before: Names of the direct predecessors, with their steps and what they gave.
    """

    node: str
    branch: str | None
    results: dict[str, Done | None]
    before: list[tuple[str, Key | None, Done | Failed]]
    mapper: Mapper | None = None
    error: type[BaseException] | None = None
    changed: dict[str, Done | None] = field(default_factory=dict[str, Any])
    steps: int = 0


class GraphReference:
    """Works one graph out."""

    def __init__(
        self, all_: Reference, plan: GraphPlan, text: str, seen: int, scope: Scope
    ) -> None:
        self._all, self._plan = all_, plan
        self._text, self._history, self._scope = text, seen, scope
        self._left = plan.max_steps

    def run(self) -> Done:
        """Walk from the start to the finish."""
        walk = Walk(self._plan.start, None, {}, [])
        while True:
            done = self._visit(walk)
            if done is None:
                continue
            if walk.node == self._plan.finish:
                return Done(done.output)
            way = self._choose(walk)
            if len(way.targets) > 1:
                self._fork(walk, way)
            else:
                self._follow(walk, way.targets[0], way.mapper)

    def _visit(self, walk: Walk) -> Done | None:
        """Run a node; None when it failed and an error edge led on from it."""
        node = self._plan.nodes[walk.node]
        walk.steps += 1
        if walk.branch is None:
            if not self._left:
                raise Failed(AssemblyLimitError)
            self._left -= 1
        mapper = walk.mapper or node.mapper
        if mapper is not None and mapper.breaks:
            self._unmapped(walk)
            return None
        key, outcome = self._all.step(
            self._scope,
            walk.node,
            node.plan,
            self._input(walk, mapper),
            self._history if node.history else 0,
            bounds=node.bounds,
            before={tuple(step for _, step, _ in walk.before if step is not None)},
            branch=walk.branch,
        )
        if isinstance(outcome, Failed):
            self._rescue(walk, key, outcome)
            return None
        walk.results[walk.node] = walk.changed[walk.node] = outcome
        walk.before = [(walk.node, key, outcome)]
        return outcome

    def _unmapped(self, walk: Walk) -> None:
        failed = Failed(ValueError)
        takes = any(isinstance(failed.error(), error_class(one.on)) for one in self._rescues(walk))
        if walk.branch is None or not takes:
            raise Failed(AssemblyError)
        self._rescue(walk, None, failed)

    def _rescues(self, walk: Walk) -> list[plans.Rescue]:
        return [one for one in self._plan.rescues if one.source == walk.node]

    def _rescue(self, walk: Walk, key: Key | None, failed: Failed) -> None:
        taking = [
            one for one in self._rescues(walk) if issubclass(failed.error, error_class(one.on))
        ]
        if len(taking) > 1:
            raise Failed(AssemblyRoutingError)
        if not taking:
            raise failed
        walk.results[walk.node] = walk.changed[walk.node] = None
        walk.before = [(walk.node, key, failed)]
        self._follow(walk, taking[0].target, taking[0].mapper, failed.error)

    def _follow(
        self,
        walk: Walk,
        target: str,
        mapper: Mapper | None,
        error: type[BaseException] | None = None,
    ) -> None:
        walk.node, walk.mapper, walk.error = target, mapper, error

    def _choose(self, walk: Walk) -> plans.Way:
        ways = [way for way in self._plan.ways if way.source == walk.node]
        if all(way.split for way in ways):
            # These are one way, which the plan keeps as one.
            return ways[0]
        holding: list[plans.Way] = []
        for way in ways:
            if way.when is None:
                continue
            asked = walk.results.get(way.when.node)
            if asked is None:
                raise Failed(AssemblyRoutingError)
            if crc(asked.text) % way.when.modulus in way.when.rests:
                holding.append(way)
        holding = holding or [way for way in ways if way.when is None]
        if len(holding) != 1:
            raise Failed(AssemblyRoutingError)
        return holding[0]

    def _input(self, walk: Walk, mapper: Mapper | None) -> str:
        if mapper is None:
            if not walk.before:
                return self._text
            told = [
                f"\n\nFrom {name}:\n"
                + (
                    f"Failed with {given.error.__name__}."
                    if isinstance(given, Failed)
                    else given.text
                )
                for name, _, given in walk.before
            ]
            given = "".join(told)
            return f"Original Task:\n{self._text}\n\nInputs from previous nodes:{given}"
        given = [f"{name}={one.text}" for name, _, one in walk.before if isinstance(one, Done)]
        known = [f"{name}={one.text}" for name, one in sorted(walk.results.items()) if one]
        names = [name for name, _, _ in walk.before]
        previous = names[0] if len(names) == 1 else "None"
        error = walk.error.__name__ if walk.error else "-"
        about = [walk.node, previous, *names, error]
        parts = [self._text, str(self._history), *given, "known", *known, *about]
        return text_for(mapper.tag, parts)

    def _fork(self, walk: Walk, way: plans.Way) -> None:
        """Walk all branches, and to the join."""
        branches = [
            Walk(target, target, dict(walk.results), list(walk.before), way.mapper)
            for target in way.targets
        ]
        failures: list[type[BaseException]] = []
        spans: list[tuple[int, int]] = []
        for walk_, end in zip(branches, way.ends, strict=True):
            mark = len(self._all.entries)
            try:
                self._branch(walk_, end)
            except Failed as failed:
                failures.append(failed.error)
                spans.append((mark, len(self._all.entries)))
                continue
            spans.insert(0, (mark, len(self._all.entries)))
        steps = sum(one.steps for one in branches)
        if failures and (steps > self._left or len(set(failures)) > 1):
            raise Ambiguous
        if failures or steps > self._left:
            # One that fails alone comes to its end, whatever becomes of the others.
            firm = spans.pop() if len(failures) == 1 else (0, 0)
            for start, stop in [*spans, *([firm] if len(failures) > 1 else [])]:
                for entry in self._all.entries[start:stop]:
                    entry.loose = True
            raise Failed(failures[0] if failures else AssemblyLimitError)
        self._left -= steps
        self._join(walk, way, branches)

    def _branch(self, walk: Walk, end: str) -> None:
        while True:
            done = self._visit(walk)
            if done is None:
                continue
            if walk.node == end:
                return
            way = self._choose(walk)
            self._follow(walk, way.targets[0], way.mapper)

    def _join(self, walk: Walk, way: plans.Way, branches: Sequence[Walk]) -> None:
        for one in branches:
            walk.results.update(one.changed)
        last = {one.node: one.before[0] for one in branches}
        declared = [one for one in self._plan.joins if set(one.sources) == set(way.ends)]
        order = declared[0].sources if declared else way.ends
        walk.before = [last[name] for name in order]
        self._follow(walk, way.join, declared[0].mapper if declared else None)
