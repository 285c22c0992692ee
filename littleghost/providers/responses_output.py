"""Collects the output items of one Responses answer, in their order.

Servers that imitate the service leave out indexes and change ids on the way. What finds an item, in
this order: its index, its id, and else the last item of its kind that is still open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from littleghost.messages import Message, Text
from littleghost.providers.base import ModelEvent
from littleghost.providers.openai_delta import text_of
from littleghost.providers.responses_input import METADATA
from littleghost.providers.responses_items import CallItem, Item, ReasoningItem, TextItem
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import mappings_of

_KINDS: dict[str, type[Item]] = {
    "message": TextItem,
    "reasoning": ReasoningItem,
    "function_call": CallItem,
}
T = TypeVar("T", TextItem, ReasoningItem, CallItem)


class Output:
    """The items of one answer."""

    def __init__(self, names: WireNames, taken_ids: Collection[str], origin: str) -> None:
        """Start with none.

        Args:
            names: The names of the tools that were offered.
            taken_ids: Ids of earlier calls; new calls get other ones.
            origin: Whom kept reasoning belongs to.
        """
        self._names = names
        self._ids = set(taken_ids)
        self._origin = origin
        self._items: list[Item] = []
        self._by_index: dict[int, Item] = {}
        self._by_id: dict[str, Item] = {}
        self._closed: set[Item] = set()

    def open(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Take the event that begins an item."""
        item = _item_of(data)
        made = self._make(text_of(item.get("type")))
        if made is None:
            return []
        self._register(made, data, item)
        return self._begin(made, item)

    def close(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Take the event that gives an item whole."""
        item = _item_of(data)
        kind = _KINDS.get(text_of(item.get("type")))
        if kind is None:
            return []
        found = self._find(kind, data, text_of(item.get("id")))
        events: list[ModelEvent] = []
        if found is None:
            events.extend(self.open(data))
            found = self._items[-1]
        self._closed.add(found)
        return [*events, *self._complete(found, item)]

    def close_all(self, items: object) -> list[ModelEvent]:
        """Take all items once more, as the end of the answer lists them.

        They are told apart by their kinds and order, since indexes and ids may have been wrong.
        """
        events: list[ModelEvent] = []
        for kind_name, kind in _KINDS.items():
            known = [item for item in self._items if isinstance(item, kind)]
            listed = [item for item in mappings_of(items) if item.get("type") == kind_name]
            for found, item in zip(known, listed, strict=False):
                events.extend(self._complete(found, item))
        counts = dict.fromkeys(_KINDS, 0)
        for name, kind in _KINDS.items():
            counts[name] = sum(isinstance(item, kind) for item in self._items)
        # What never came before is taken in the order of the list, which may mix the kinds.
        for item in mappings_of(items):
            name = text_of(item.get("type"))
            if name not in counts:
                continue
            counts[name] -= 1
            if counts[name] < 0:
                events.extend(self.open({"item": item}))
                events.extend(self._complete(self._items[-1], item))
        return events

    def add_text(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Take a piece of text or of a refusal."""
        return self._get(TextItem, "message", data).add(text_of(data.get("delta")))

    def add_reasoning(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Take a piece of reasoning or of its summary."""
        delta = data.get("delta")
        if isinstance(delta, Mapping):
            delta = cast("Mapping[str, Any]", delta).get("text")
        part = (data.get("type"), data.get("summary_index"), data.get("content_index"))
        return self._get(ReasoningItem, "reasoning", data).add_part(part, text_of(delta))

    def add_arguments(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Take a piece of a call's arguments."""
        return self._get(CallItem, "function_call", data).add(text_of(data.get("delta")))

    def end_arguments(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Take a call's whole arguments."""
        return self._get(CallItem, "function_call", data).complete(data.get("arguments"))

    def finish(self) -> tuple[Message, list[ModelEvent]]:
        """Give the message, its blocks in the order of the items, and the events that end it."""
        events: list[ModelEvent] = []
        blocks: list[Any] = []
        phases: list[str | None] = []
        told: set[tuple[str | None, str, str]] = set()
        for item in self._items:
            if isinstance(item, CallItem):
                if item.is_repeat and item.key in told:
                    continue
                told.add(item.key)
                block, ends = item.finish(self._ids)
                events.extend(ends)
            else:
                events.extend(item.flush())
                block = item.block()
            if block is not None:
                blocks.append(block)
            if isinstance(block, Text) and isinstance(item, TextItem):
                phases.append(item.phase)
        own = {METADATA: {"origin": self._origin, "phases": phases}} if any(phases) else {}
        return Message("assistant", tuple(blocks), own), events

    def _get(self, kind: type[T], name: str, data: Mapping[str, Any]) -> T:
        found = self._find(kind, data, text_of(data.get("item_id")))
        if found is None:
            found = self._make(name)
            assert found is not None
            self._register(found, data, {"id": data.get("item_id")})
        return cast("T", found)

    def _find(self, kind: type[Item], data: Mapping[str, Any], id_: str) -> Item | None:
        index = data.get("output_index")
        places = (
            self._by_index.get(index) if isinstance(index, int) else None,
            self._by_id.get(id_),
        )
        for place in places:
            if isinstance(place, kind):
                return place
        if isinstance(index, int) and index not in self._by_index:
            # It has a place of its own, whose beginning was not told.
            return None
        still_open = (item for item in reversed(self._items) if item not in self._closed)
        return next((item for item in still_open if isinstance(item, kind)), None)

    def _make(self, name: str) -> Item | None:
        match name:
            case "message":
                made = TextItem()
            case "reasoning":
                made = ReasoningItem(self._origin)
            case "function_call":
                position = sum(isinstance(item, CallItem) for item in self._items)
                made = CallItem(position, self._names)
            case _:
                return None
        self._items.append(made)
        return made

    def _register(self, made: Item, data: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        index, id_ = data.get("output_index"), text_of(item.get("id"))
        if isinstance(index, int):
            self._by_index[index] = made
        if id_:
            self._by_id[id_] = made

    def _begin(self, made: Item, item: Mapping[str, Any]) -> list[ModelEvent]:
        if isinstance(made, TextItem):
            made.phase = text_of(item.get("phase")) or None
        if isinstance(made, CallItem):
            self._name(made, item)
            return made.add("")
        return []

    def _complete(self, found: Item, item: Mapping[str, Any]) -> list[ModelEvent]:
        if isinstance(found, CallItem):
            self._name(found, item)
            return found.complete(item.get("arguments"))
        return found.complete(item)

    def _name(self, call: CallItem, item: Mapping[str, Any]) -> None:
        others = {
            other.wire_id
            for other in self._items
            if isinstance(other, CallItem) and other is not call
        }
        call.name_it(item, self._ids, others)


def _item_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    item: object = data.get("item")
    return cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {}
