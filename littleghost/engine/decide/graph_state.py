"""What a graph's conditions and mappers see, and the input a node gets without a mapper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from littleghost.errors import AssemblyRoutingError
from littleghost.failure import Failure
from littleghost.json_values import dumps
from littleghost.messages import Message, Text


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What a node gave.

    Attributes:
        output: The result value: an agent's text, or the object of a structured result.
        participant: The id of the participant that gave it.
    """

    output: Any
    participant: str = ""

    @property
    def text(self) -> str:
        """The output as text; JSON when it is none."""
        return text_of(self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a graph's run is, read-only; conditions and mappers get it.

    Attributes:
        input: The message the graph was asked with.
        history: The messages before it.
        context: The application's values for this request.
        step: How many times nodes have run, the current one included.
        current: The node that has just ended (for a condition) or is about to run (for a mapper).
        previous: The node before it; None at the start and at a join.
        predecessors: The nodes that lead directly to it: several at a join.
        results: What each node gave when it ran last, by name; a branch does not see its siblings.
        incoming_results: What the direct predecessors gave; one that failed is missing.
        error: Why the node before failed, where an error edge was taken; None otherwise.
    """

    input: Message
    history: tuple[Message, ...] = ()
    context: Mapping[str, Any]
    step: int
    current: str
    previous: str | None = None
    predecessors: tuple[str, ...] = ()
    results: Mapping[str, NodeResult]
    incoming_results: Mapping[str, NodeResult]
    error: Failure | None = None

    def result(self, name: str) -> NodeResult:
        """Give what a node gave when it ran last.

        Raises:
            AssemblyRoutingError: The node has not run yet, or it failed; `results` can be asked.
        """
        found = self.results.get(name)
        if found is None:
            known = ", ".join(map(repr, self.results)) or "none"
            raise AssemblyRoutingError(
                f"node {name!r} has given no result yet; these have: {known}"
            )
        return found

    @property
    def previous_result(self) -> NodeResult | None:
        """What the node before gave; None where there is none, or it failed."""
        return self.results.get(self.previous) if self.previous is not None else None


def text_of(output: Any) -> str:
    """Give an output as text; JSON when it is none."""
    return output if isinstance(output, str) else dumps(output)


def default_input(original: Message, before: Sequence[tuple[str, str]]) -> Message:
    """Make the input of a node from the task and what its direct predecessors gave.

    Args:
        original: The message the graph was asked with; its attachments and metadata are kept.
        before: Name and text of each predecessor, in declared order.
    """
    if not before:
        return original
    given = "".join(f"\n\nFrom {name}:\n{text}" for name, text in before)
    blocks = (
        Text("Original Task:\n"),
        *original.content,
        Text(f"\n\nInputs from previous nodes:{given}"),
    )
    return Message("user", blocks, original.metadata)
