"""Plans of assemblies as plain data; `actors` makes classes of them, `reference` says what they do.

Whatever an actor answers depends on its name, the newest user text and how much it has seen before,
so that any difference on the way to it shows in all that follows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

OTHER_TURNS = 3


def crc(text: str) -> int:
    """Give a number for a text; the same one in every process."""
    return zlib.crc32(text.encode())


@dataclass(frozen=True, eq=False, kw_only=True)
class Actor:
    """An agent.

    Attributes:
        fails: `(modulus, rest, error class)`: it fails for such texts; None never.
        late: Whether it fails after its tool calls instead of before.
        flaky: How many first attempts at a step fail.
        calls: Tools that it calls in its first turn.
        helper: What it asks by a tool in its first turn, after the calls.
        moves: In a swarm, what it may do; its text chooses. `(what, to whom)`.
    """

    name: str
    fails: tuple[int, int, str] | None = None
    late: bool = False
    flaky: int = 0
    calls: tuple[str, ...] = ()
    helper: Plan | None = None
    moves: tuple[tuple[Literal["answer", "hand", "beside"], str], ...] = ()

    def word(self, text: str, seen: int) -> int:
        """Give the number that decides what it does."""
        return crc(f"{self.name}|{seen}|{text}")

    def answer(self, word: int, told: str | None) -> str:
        """Give what it says; `told` is what its helper gave."""
        return f"{self.name}.{word % 10_000}" + ("" if told is None else f".{crc(told) % 1_000}")

    def move(self, word: int, turn: int) -> tuple[str, str]:
        """Give what it does in a turn after its calls."""
        if not self.moves or turn >= OTHER_TURNS:
            return ("answer", "")
        return self.moves[(word + turn) % len(self.moves)]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How often a step is tried."""

    retries: int = 0
    retry_on: str = ""
    retry_delay_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Holds when the output of a node has one of some rests."""

    node: str
    modulus: int
    rests: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Mapper:
    """Makes an input of all that a State shows; or raises ValueError."""

    tag: str
    breaks: bool = False


@dataclass(frozen=True, kw_only=True)
class NodeOf:
    """A node of a graph."""

    plan: Plan
    history: bool = False
    mapper: Mapper | None = None
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, kw_only=True)
class Way:
    """An edge: to one node, or to several branches that end at a join.

    Attributes:
        split: Whether a fan-out is declared as single edges.
        ends: The last node of each branch.
        join: The node after them; how it is declared is in the graph's joins or ways.
    """

    source: str
    targets: tuple[str, ...]
    when: Condition | None = None
    mapper: Mapper | None = None
    width: int | None = None
    split: bool = False
    ends: tuple[str, ...] = ()
    join: str = ""


@dataclass(frozen=True, kw_only=True)
class JoinOf:
    """A declared fan-in."""

    sources: tuple[str, ...]
    target: str
    mapper: Mapper | None = None


@dataclass(frozen=True, kw_only=True)
class Rescue:
    """An error edge."""

    source: str
    target: str
    on: str
    mapper: Mapper | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphPlan:
    """A graph."""

    name: str
    nodes: Mapping[str, NodeOf]
    start: str
    finish: str
    ways: tuple[Way, ...]
    joins: tuple[JoinOf, ...]
    rescues: tuple[Rescue, ...]
    max_steps: int


@dataclass(frozen=True, kw_only=True)
class MemberOf:
    """A member of a swarm."""

    actor: Actor
    history: bool = False
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, eq=False, kw_only=True)
class SwarmPlan:
    """A swarm; the first member starts. `handoffs` is empty where all may hand off to all."""

    name: str
    members: tuple[MemberOf, ...]
    handoffs: Mapping[str, tuple[str, ...]]
    max_steps: int
    max_repeats: int

    def targets(self, name: str) -> tuple[str, ...]:
        """Give to whom a member may hand off."""
        if self.handoffs:
            return self.handoffs.get(name, ())
        return tuple(one.actor.name for one in self.members if one.actor.name != name)


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A child of a workflow: its input is made of variables; `whole` passes its own on."""

    var: str
    plan: Plan
    reads: tuple[str, ...] = ()
    whole: bool = False
    forgets: bool = False
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, kw_only=True)
class Invoke:
    """Asks one child and waits for it; an unread one never runs."""

    ask: Ask
    read: bool = True


@dataclass(frozen=True, kw_only=True)
class Parallel:
    """Asks several children at once."""

    asks: tuple[Ask, ...]
    width: int
    settle: bool


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Goes on with other operations when one fails with an error of a class."""

    body: tuple[Op, ...]
    on: str
    handler: tuple[Op, ...]


@dataclass(frozen=True, kw_only=True)
class Memo:
    """A step of the workflow's own; it may raise ValueError."""

    var: str
    reads: tuple[str, ...]
    breaks: bool = False


@dataclass(frozen=True, kw_only=True)
class Choose:
    """Goes one of two ways by a variable."""

    var: str
    modulus: int
    body: tuple[Op, ...]
    other: tuple[Op, ...]


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """Does operations some times over."""

    times: int
    body: tuple[Op, ...]


@dataclass(frozen=True, kw_only=True)
class Sleep:
    """Sleeps a moment."""


@dataclass(frozen=True, kw_only=True)
class Raise:
    """Raises an error of the application's own, or of the library's."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Return:
    """Ends the workflow with text, JSON, nothing, or a child: unread or read before."""

    what: Literal["text", "json", "none", "unread", "read"]
    reads: tuple[str, ...] = ()
    ask: Ask | None = None


Op: TypeAlias = Invoke | Parallel | Guard | Memo | Choose | Repeat | Sleep | Raise | Return


@dataclass(frozen=True, eq=False, kw_only=True)
class FlowPlan:
    """A workflow."""

    name: str
    program: tuple[Op, ...]


Plan: TypeAlias = Actor | GraphPlan | SwarmPlan | FlowPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class Example:
    """What is run: a plan, the text it is asked, and how many messages came before."""

    plan: Plan
    text: str
    history: int


def text_for(tag: str, parts: list[str]) -> str:
    """Make a short text that depends on several."""
    return f"{tag}:{crc('|'.join(parts)) % 100_000}"
