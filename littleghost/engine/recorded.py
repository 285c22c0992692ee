"""What a composite's list says, by operation and by child; read on from where it was read before.

A process keeps it with the run's memory, so that an advance looks at what is new to it only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from littleghost.messages import Message


@dataclass(slots=True)
class Recorded:
    """An index of one participant's list.

    Attributes:
        source: The list; another one means that the index is void.
        seen: How many of its records are in the index.
        opening: The messages that the list begins with.
        operations: What a workflow asked for, by the number of the operation.
        children: What the children gave back: `{p, b, e, r: result}` or `{p, b, e, x: error}`.
        signals: The signals that the journal delivered, in order.
        waiting: The operation a workflow waits in, with what it asked; see `replay`.
    """

    source: list[Any]
    seen: int = 0
    opening: list[Message] = field(default_factory=list[Message])
    operations: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    children: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    signals: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    waiting: Any = None

    def read_on(self) -> None:
        """Take in the records that are new."""
        for index in range(self.seen, len(self.source)):
            item = self.source[index]
            if isinstance(item, Message):
                if index == len(self.opening):
                    self.opening.append(item)
            elif isinstance(item, dict):
                self._add(cast("dict[str, Any]", item))
        self.seen = len(self.source)

    def _add(self, item: Mapping[str, Any]) -> None:
        if "m" in item:
            known = self.operations.get(item["m"])
            self.operations[item["m"]] = item if known is None else {**known, **item}
        elif "g" in item:
            self.signals.append(item)
        elif "p" in item and ("r" in item or "x" in item):
            self.children[item["p"]] = item


def recorded_of(known: dict[str, Recorded], participant: str, source: list[Any]) -> Recorded:
    """Give the index of a list, brought up to date.

    Args:
        known: The indexes a process keeps of a run.
        source: The participant's list.
    """
    found = known.get(participant)
    if found is None or found.source is not source or found.seen > len(source):
        found = known[participant] = Recorded(source)
    found.read_on()
    return found
