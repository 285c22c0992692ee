"""What a graph is declared with: its nodes and the edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from littleghost.engine.decide.graph import Condition, Mapper

Classes = type[BaseException] | Sequence[type[BaseException]]


@dataclass(frozen=True, slots=True)
class Node:
    """A node with more than its assembly.

    Attributes:
        assembly: What runs: any assembly class.
        history: Whether it sees the messages before the graph's own.
        context: Whether its code sees the application's context.
        input: Makes its input of a State, unless the edge that leads to it does.
        timeout_s: Seconds that one attempt may take; None is no limit.
        retries: How often a failed attempt is followed by another.
        retry_on: Exception classes that are worth another attempt.
        retry_delay_s: Seconds between two attempts.
    """

    assembly: Any
    history: bool = False
    context: bool = False
    input: Mapper | None = None
    timeout_s: float | None = None
    retries: int = 0
    retry_on: Classes = ()
    retry_delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """A way on from a node that ended well.

    A list of targets is a fan-out: its branches run at once. A list of sources is a fan-in: the
    target runs once, when all of them have ended.

    Attributes:
        when: Says of a State whether the edge is taken; None is the way when no condition holds.
        input: Makes the target's input of a State: text or a message, and nothing is added to it.
        max_concurrency: How many branches of a fan-out may run at once.
    """

    source: str | Sequence[str]
    target: str | Sequence[str]
    when: Condition | None = None
    input: Mapper | None = None
    max_concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorEdge:
    """A way on from a node that failed, after its retries.

    Attributes:
        on: Exception classes it takes, with their subclasses.
        input: Makes the target's input of a State, whose `error` is the failure.
    """

    source: str
    target: str
    on: Classes
    input: Mapper | None = None
