"""Puts the pieces of streamed tool calls together, as sloppily as servers send them.

Index, id and name may each be missing, late, repeated or wrong. What decides, in this order: an id
seen before, an index seen before, a name (it opens a call), and else the call that was last.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from littleghost.messages import ToolUse
from littleghost.providers.arguments import make_tool_use, parse_arguments
from littleghost.providers.base import ModelEvent
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import clean_text

# Some gateways hide a signature in the id, so it may be long; it must be a safe key.
_USABLE_ID = re.compile(r"[\x21-\x7e]{1,2048}")


def fresh_id(wanted: str | None, taken: Collection[str]) -> str:
    """Give the id that a service chose for a call, or a new one if that cannot be used."""
    if wanted is None or wanted in taken or not _USABLE_ID.fullmatch(wanted):
        return f"call_{uuid.uuid4().hex[:24]}"
    return wanted


@dataclass(frozen=True, slots=True)
class _Delta:
    """One piece as the server sent it; None is missing."""

    index: int | None
    id: str | None
    name: str | None
    arguments: str

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> _Delta:
        function: object = item.get("function")
        body = cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else item
        index, id_, name = item.get("index"), item.get("id"), body.get("name")
        arguments = body.get("arguments")
        if isinstance(arguments, Mapping | list):
            arguments = json.dumps(arguments, ensure_ascii=False)
        return cls(
            index if isinstance(index, int) and not isinstance(index, bool) else None,
            id_ if isinstance(id_, str) and id_ else None,
            name if isinstance(name, str) and name else None,
            arguments if isinstance(arguments, str) else "",
        )


@dataclass(slots=True)
class _Slot:
    """One call being put together."""

    position: int
    index: int | None
    wire_id: str | None
    id: str
    is_repeat: bool
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    sent: int | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_complete(self) -> bool:
        """Whether its arguments are a whole object, so that more text must be another call's."""
        text = self.text
        return text.rstrip().endswith("}") and parse_arguments(text)[1] is None


class CallAssembler:
    """Collects the calls of one answer."""

    def __init__(self, names: WireNames, taken_ids: Collection[str] = ()) -> None:
        """Start with no calls.

        Args:
            names: The names of the tools that were offered.
            taken_ids: Ids of earlier calls; a call that repeats one gets a new id.
        """
        self._names = names
        self._ids = set(taken_ids)
        self._slots: list[_Slot] = []

    def __bool__(self) -> bool:
        return bool(self._slots)

    def add(self, item: Mapping[str, Any]) -> list[ModelEvent]:
        """Take one piece and give the events that it causes."""
        delta = _Delta.read(item)
        slot = self._find(delta)
        if slot is None:
            slot = self._open(delta)
        elif delta.index is not None and slot.index is None:
            slot.index = delta.index
        if delta.name and delta.name != slot.name:
            # A name comes whole, in pieces, or grows; a piece never repeats what is there.
            grows = delta.name.startswith(slot.name)
            slot.name = delta.name if grows else slot.name + delta.name
        if delta.arguments:
            slot.pieces.append(delta.arguments)
        # A repeated id may be the same call sent twice: nothing is told until that is known.
        return [] if slot.is_repeat or not slot.name else self._tell(slot)

    def finish(self) -> tuple[list[ToolUse], list[ModelEvent]]:
        """Give the calls in their order, and the events that end them."""
        uses: list[ToolUse] = []
        events: list[ModelEvent] = []
        told: set[tuple[str | None, str, str]] = set()
        for slot in self._slots:
            key = (slot.wire_id, slot.name, slot.text)
            if slot.is_repeat and key in told:
                continue
            told.add(key)
            events.extend(self._tell(slot))
            use = make_tool_use(slot.id, self._name(slot), slot.text)
            uses.append(use)
            events.append(
                ModelEvent("tool_call_stop", {"index": slot.position, "tool_use": use.to_json()})
            )
        return uses, events

    def _find(self, delta: _Delta) -> _Slot | None:
        """Find the call that a piece continues; None opens a new one."""
        if not self._slots:
            return None
        last = self._slots[-1]
        if delta.id is not None:
            return self._find_by_id(delta, last)
        slot = last
        if delta.index is not None:
            same = next((s for s in reversed(self._slots) if s.index == delta.index), None)
            if same is None and delta.name:
                return None
            slot = same or last
        if delta.name and slot.name:
            return self._find_by_name(delta, slot)
        is_stray = delta.index is not None and slot.index not in (None, delta.index)
        return None if is_stray and delta.arguments.strip() and slot.is_complete else slot

    def _find_by_name(self, delta: _Delta, slot: _Slot) -> _Slot | None:
        """Say whether a piece with a name goes on with a call that has one already."""
        is_same = slot.name == delta.name
        if delta.index is None:
            return slot if is_same and slot.pieces and not slot.is_complete else None
        if not is_same:
            return None if slot.pieces else slot
        return None if delta.arguments.strip() and slot.is_complete else slot

    def _find_by_id(self, delta: _Delta, last: _Slot) -> _Slot | None:
        same = next((s for s in reversed(self._slots) if s.wire_id == delta.id), None)
        if same is not None:
            if delta.index is not None and same.index not in (None, delta.index):
                return None if delta.name or same.is_complete else same
            # The same call once more from its start is a repeat, not a continuation.
            again = delta.name and delta.arguments.strip() and same.is_complete
            return None if again else same
        lacks_id = last.wire_id is None and not (last.name and delta.name)
        if lacks_id and delta.index in (None, last.index) and not last.is_complete:
            last.wire_id = delta.id
            return last
        return None

    def _open(self, delta: _Delta) -> _Slot:
        is_repeat = any(delta.id is not None and s.wire_id == delta.id for s in self._slots)
        id_ = fresh_id(delta.id, self._ids)
        self._ids.add(id_)
        slot = _Slot(len(self._slots), delta.index, delta.id, id_, is_repeat)
        self._slots.append(slot)
        return slot

    def _tell(self, slot: _Slot) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if slot.sent is None:
            slot.sent = 0
            data = {"index": slot.position, "id": slot.id, "name": self._name(slot)}
            events.append(ModelEvent("tool_call_start", data))
        new = "".join(slot.pieces[slot.sent :])
        slot.sent = len(slot.pieces)
        if new:
            data = {"index": slot.position, "arguments": clean_text(new)}
            events.append(ModelEvent("tool_call_delta", data))
        return events

    def _name(self, slot: _Slot) -> str:
        return clean_text(self._names.original(slot.name))
