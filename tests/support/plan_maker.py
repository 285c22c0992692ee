"""Makes random plans, the same ones from the same seed."""

from __future__ import annotations

import random
from typing import Any

from tests.support import plans
from tests.support.plans import (
    Actor,
    Ask,
    Bounds,
    Condition,
    Example,
    FlowPlan,
    GraphPlan,
    JoinOf,
    Mapper,
    MemberOf,
    NodeOf,
    Plan,
    Rescue,
    SwarmPlan,
    Way,
)

DEPTH = 3
MODEL_ERRORS = ("InvalidRequestError", "AuthenticationError")
CAUGHT = ("ProviderError", "InvalidRequestError", "AssemblyError", "LittleGhostError", "Exception")


def example(seed: int) -> Example:
    """Make an example."""
    maker = Maker(random.Random(seed))
    kind = (maker.graph, maker.flow, maker.swarm)[seed % 3]
    return Example(plan=kind(1), text=f"task {seed}", history=2 * maker.chance(0.3))


class Maker:
    """Makes the plans of one example; no name is used twice."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self._count = 0
        # How many actors there may still be.
        self._left = 14

    def chance(self, likely: float) -> bool:
        """Throw a coin."""
        return self.random.random() < likely

    def name(self, kind: str) -> str:
        """Give a new name."""
        self._count += 1
        return f"{kind}{self._count}"

    def plan(self, depth: int) -> Plan:
        """Make something for a place in a composite."""
        if depth < DEPTH and self._left > 3 and self.chance(0.22):
            return self.random.choice((self.graph, self.flow, self.swarm))(depth + 1)
        return self.actor(depth)

    def actor(self, depth: int, **more: Any) -> Actor:
        """Make an agent."""
        self._left -= 1
        values: dict[str, Any] = {"name": self.name("a"), **more}
        if "fails" not in more and self.chance(0.18):
            modulus = self.random.choice((1, 2, 3))
            rest = self.random.randrange(modulus)
            values["fails"] = (modulus, rest, self.random.choices(MODEL_ERRORS, (4, 1))[0])
            values["late"] = self.chance(0.5)
        if self.chance(0.1):
            values["flaky"] = self.random.choice((1, 2))
        if self.chance(0.25):
            values["calls"] = tuple(
                self.random.choice(("charge", "fetch")) for _ in range(self.random.choice((1, 2)))
            )
        if depth < DEPTH and self._left > 2 and self.chance(0.1):
            values["helper"] = self.random.choice((self.flow, self.swarm, self.graph))(depth + 1)
        return Actor(**values)

    def bounds(self) -> Bounds:
        """Make the bounds of a step."""
        if self.chance(0.75):
            return Bounds()
        on = self.random.choice(("ProviderError", "InvalidRequestError", "AssemblyError"))
        delay_s = self.random.choice((0.0, 60.0))
        return Bounds(retries=self.random.choice((1, 2)), retry_on=on, retry_delay_s=delay_s)

    def mapper(self, likely: float, *, may_break: bool = True) -> Mapper | None:
        """Make a mapper, or none."""
        if not self.chance(likely):
            return None
        return Mapper(tag=self.name("m"), breaks=may_break and self.chance(0.08))

    def swarm(self, depth: int) -> SwarmPlan:
        """Make a swarm."""
        names = [self.name("s") for _ in range(self.random.choice((2, 3, 3)))]
        members: list[MemberOf] = []
        for name in names:
            moves: list[tuple[str, str]] = []
            for _ in range(self.random.choice((1, 2, 3))):
                what = self.random.choices(("answer", "hand", "beside"), (3, 8, 1))[0]
                to = self.random.choice([*names, "stranger"])
                moves.append((what, to if what != "answer" else ""))
            made = self.actor(depth, name=name, moves=tuple(moves))
            members.append(MemberOf(actor=made, history=self.chance(0.3), bounds=self.bounds()))
        handoffs: dict[str, tuple[str, ...]] = {}
        if self.chance(0.5):
            for name in names:
                others = [other for other in names if other != name]
                if self.chance(0.75):
                    count = self.random.randint(1, len(others))
                    handoffs[name] = tuple(self.random.sample(others, count))
        return SwarmPlan(
            name=self.name("swarm"),
            members=tuple(members),
            handoffs=handoffs,
            max_steps=self.random.choice((2, 4, 8, 20)),
            max_repeats=self.random.choice((1, 2, 3)),
        )

    def graph(self, depth: int) -> GraphPlan:
        """Make a graph."""
        return GraphMaker(self, depth).make()

    def flow(self, depth: int) -> FlowPlan:
        """Make a workflow."""
        return FlowMaker(self, depth).make()


class GraphMaker:
    """Makes one graph, as a row of parts on a main line."""

    def __init__(self, maker: Maker, depth: int) -> None:
        self._maker, self._depth, self._random = maker, depth, maker.random
        self._nodes: dict[str, NodeOf] = {}
        self._ways: list[Way] = []
        self._joins: list[JoinOf] = []
        self._rescues: list[Rescue] = []
        self._main: list[str] = []

    def make(self) -> GraphPlan:
        """Make it."""
        start = at = self._node()
        self._main.append(at)
        parts = (self._line, self._choice, self._fork, self._saved, self._loop, self._shaky)
        for _ in range(self._random.choice((1, 2, 2, 3))):
            at = self._random.choices(parts, (2, 3, 4, 2, 2, 2))[0](at)
            self._main.append(at)
        return GraphPlan(
            name=self._maker.name("graph"),
            nodes=self._nodes,
            start=start,
            finish=at,
            ways=tuple(self._ways),
            joins=tuple(self._joins),
            rescues=tuple(self._rescues),
            max_steps=self._random.choices((10, 6, 4, 3), (8, 2, 1, 1))[0],
        )

    def _node(self, plan: Plan | None = None) -> str:
        name = self._maker.name("n")
        self._nodes[name] = NodeOf(
            plan=plan or self._maker.plan(self._depth),
            history=self._maker.chance(0.2),
            mapper=self._maker.mapper(0.12),
            bounds=self._maker.bounds(),
        )
        return name

    def _way(self, source: str, target: str, when: Condition | None = None, *, plain: bool = False
             ) -> None:  # fmt: skip
        mapper = None if plain else self._maker.mapper(0.2)
        self._ways.append(Way(source=source, targets=(target,), when=when, mapper=mapper))

    def _when(self, node: str, modulus: int, rests: tuple[int, ...]) -> Condition:
        if self._maker.chance(0.06):
            # Perhaps one that has not run.
            node = self._random.choice(list(self._nodes))
        return Condition(node=node, modulus=modulus, rests=rests)

    def _line(self, at: str) -> str:
        target = self._node()
        self._way(at, target)
        return target

    def _choice(self, at: str) -> str:
        target = self._node()
        overlap = (0,) if self._maker.chance(0.12) else ()
        for rest in range(self._random.choice((1, 2))):
            middle = self._node()
            self._way(at, middle, self._when(at, 3, (rest, *overlap)))
            self._way(middle, target)
        if self._maker.chance(0.8):
            self._way(at, target)
        return target

    def _loop(self, at: str) -> str:
        again = self._random.choice(self._main)
        rests = self._random.choice(((0,), (0, 1), (0, 1, 2)))
        self._way(at, again, self._when(at, 3, rests))
        target = self._node()
        self._way(at, target)
        return target

    def _shaky(self, at: str) -> str:
        """Go round until it fails, and tell then what is left of what it gave before."""
        fails = (2, self._random.randrange(2), "InvalidRequestError")
        body = self._node(self._maker.actor(self._depth, fails=fails))
        target = self._node()
        fix = self._node()
        self._way(at, body)
        self._way(body, at, self._when(body, 3, (0, 1)))
        self._way(body, target)
        mapper = self._maker.mapper(0.8, may_break=False)
        self._rescues.append(Rescue(source=body, target=fix, on="ProviderError", mapper=mapper))
        self._way(fix, target)
        return target

    def _saved(self, at: str) -> str:
        target = self._node()
        for _ in range(2 if self._maker.chance(0.15) else 1):
            fix = self._node()
            self._rescue(at, fix)
            self._way(fix, target)
        self._way(at, target)
        return target

    def _rescue(self, source: str, target: str) -> None:
        on = self._random.choice(("Exception", *CAUGHT))
        mapper = self._maker.mapper(0.4)
        self._rescues.append(Rescue(source=source, target=target, on=on, mapper=mapper))

    def _fork(self, at: str) -> str:
        branches = [self._branch() for _ in range(self._random.choice((2, 2, 3)))]
        heads = tuple(head for head, _ in branches)
        ends = tuple(end for _, end in branches)
        join = self._node()
        mapper = self._maker.mapper(0.2, may_break=False)
        when = None
        if self._maker.chance(0.2):
            when = self._when(at, 2, (0,))
        split = when is None and self._maker.chance(0.4)
        self._ways.append(
            Way(
                source=at,
                targets=heads,
                when=when,
                mapper=mapper,
                width=None if split else self._random.choice((None, 1, 2)),
                split=split,
                ends=ends,
                join=join,
            )
        )
        if self._maker.chance(0.5):
            order = tuple(self._random.sample(ends, len(ends)))
            self._joins.append(JoinOf(sources=order, target=join, mapper=self._maker.mapper(0.3)))
        else:
            for end in ends:
                self._way(end, join, plain=True)
        if when is None:
            return join
        target = self._node()
        other = self._node()
        self._way(join, target)
        self._way(at, other)
        self._way(other, target)
        return target

    def _branch(self) -> tuple[str, str]:
        head = self._node()
        luck = self._random.random()
        if luck < 0.5:
            return head, head
        end = self._node()
        if luck < 0.7:
            self._way(head, end)
            return head, end
        middle = self._node()
        if luck < 0.85:
            self._way(head, middle, self._when(head, 2, (0,)))
            self._way(middle, end)
            self._way(head, end)
        else:
            self._rescue(head, middle)
            self._way(head, end)
            self._way(middle, end)
        return head, end


class FlowMaker:
    """Makes one workflow."""

    def __init__(self, maker: Maker, depth: int) -> None:
        self._maker, self._depth, self._random = maker, depth, maker.random
        self._vars: list[str] = []

    def make(self) -> FlowPlan:
        """Make it."""
        program = self._ops(self._random.choice((2, 3, 4)), 0)
        program += (self._return(),)
        return FlowPlan(name=self._maker.name("flow"), program=program)

    def _ops(self, count: int, depth: int) -> tuple[plans.Op, ...]:
        simple = (self._invoke, self._parallel, self._memo, self._sleep, self._raise)
        weights = [8, 4, 2, 1, 0.4]
        found: list[plans.Op] = []
        for _ in range(count):
            if depth < 2 and self._maker.chance(0.35):
                made = self._random.choice((self._guard, self._guard, self._choose, self._repeat))
                found.append(made(depth + 1))
            else:
                found.append(self._random.choices(simple, weights)[0]())
        return tuple(found)

    def _reads(self) -> tuple[str, ...]:
        return tuple(
            self._random.sample(self._vars, min(len(self._vars), self._random.randint(0, 3)))
        )

    def _ask(self) -> Ask:
        ask = Ask(
            var=self._maker.name("v"),
            plan=self._maker.plan(self._depth),
            reads=self._reads(),
            whole=self._maker.chance(0.2),
            forgets=self._maker.chance(0.3),
            bounds=self._maker.bounds(),
        )
        self._vars.append(ask.var)
        return ask

    def _invoke(self) -> plans.Op:
        return plans.Invoke(ask=self._ask(), read=self._maker.chance(0.9))

    def _parallel(self) -> plans.Op:
        asks = tuple(self._ask() for _ in range(self._random.choice((1, 2, 3))))
        width = self._random.choice((1, 2, 8))
        return plans.Parallel(asks=asks, width=width, settle=self._maker.chance(0.5))

    def _memo(self) -> plans.Op:
        var = self._maker.name("v")
        op = plans.Memo(var=var, reads=self._reads(), breaks=self._maker.chance(0.15))
        self._vars.append(var)
        return op

    def _sleep(self) -> plans.Op:
        return plans.Sleep()

    def _raise(self) -> plans.Op:
        return plans.Raise(error=self._random.choice(("ValueError", "InvalidRequestError")))

    def _guard(self, depth: int) -> plans.Op:
        body = self._ops(self._random.choice((1, 2)), depth)
        self._vars.append("error")
        handler = self._ops(self._random.choice((0, 1)), depth)
        on = self._random.choice(("Exception", *CAUGHT))
        return plans.Guard(body=body, on=on, handler=handler)

    def _choose(self, depth: int) -> plans.Op:
        var = self._random.choice(self._vars) if self._vars else "none"
        body = self._ops(1, depth)
        if self._maker.chance(0.15):
            body += (self._return(),)
        return plans.Choose(var=var, modulus=2, body=body, other=self._ops(1, depth))

    def _repeat(self, depth: int) -> plans.Op:
        return plans.Repeat(times=2, body=self._ops(self._random.choice((1, 2)), depth))

    def _return(self) -> plans.Return:
        what = self._random.choices(("text", "json", "none", "unread", "read"), (4, 3, 0.3, 3, 2))[
            0
        ]
        ask = self._ask() if what == "unread" else None
        return plans.Return(what=what, reads=self._reads(), ask=ask)
