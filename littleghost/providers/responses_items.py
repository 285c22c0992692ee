"""The output items of one Responses answer, put together from their pieces.

Each item comes in pieces and then once more whole. The whole makes up for pieces that never came;
when the two contradict each other, something was lost, and that is no answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from littleghost.errors import StreamError
from littleghost.messages import Block, Reasoning, Text, ToolUse
from littleghost.providers.arguments import make_tool_use
from littleghost.providers.base import ModelEvent
from littleghost.providers.openai_delta import Collected, text_of
from littleghost.providers.responses_input import kept_reasoning
from littleghost.providers.tool_calls import fresh_id
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import clean_text, mappings_of


class TextItem(Collected):
    """A message of the model: its text, or why it refuses."""

    def __init__(self) -> None:
        super().__init__("text_delta")
        self.phase: str | None = None

    def complete(self, item: Mapping[str, Any]) -> list[ModelEvent]:
        """Take the whole item and give what is still to be told."""
        self.phase = text_of(item.get("phase")) or self.phase
        parts = (part for part in mappings_of(item.get("content")))
        texts = (text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts)
        whole = clean_text("".join(texts))
        if whole.startswith(self.text):
            self._held = ""
            return self._give(whole[len(self.text) :])
        events = self.flush()
        if whole and whole.strip() != self.text.strip():
            raise StreamError("the pieces of a text do not make up the whole")
        return events

    def block(self) -> Block | None:
        """Give the finished block; None when there is nothing in it."""
        return Text(self.text) if self.text else None


class ReasoningItem(Collected):
    """The model's reasoning: what it lets see of it, and what must be sent back."""

    def __init__(self, origin: str) -> None:
        super().__init__("reasoning_delta")
        self._origin = origin
        self._part: object = None
        self._item: dict[str, Any] | None = None

    def add_part(self, part: object, piece: str) -> list[ModelEvent]:
        """Take a piece; one of another part begins a paragraph."""
        begins = part != self._part and bool(self.text)
        self._part = part
        return [*(self.add("\n\n") if begins and piece else ()), *self.add(piece)]

    def complete(self, item: Mapping[str, Any]) -> list[ModelEvent]:
        """Take the whole item and give what is still to be told."""
        # The first whole is the one to keep: a later summary of the answer may leave out parts.
        self._item = self._item or kept_reasoning(item)
        events = self.flush()
        if self.text:
            return events
        parts = mappings_of(item.get("summary")) or mappings_of(item.get("content"))
        return self._give("\n\n".join(filter(None, (text_of(part.get("text")) for part in parts))))

    def block(self) -> Block | None:
        """Give the finished block; None when there is nothing in it."""
        if self._item is None:
            return Reasoning(self.text) if self.text else None
        return Reasoning(self.text, details={"origin": self._origin, "items": [self._item]})


class CallItem:
    """A tool call."""

    def __init__(self, position: int, names: WireNames) -> None:
        self.position = position
        self.wire_id: str | None = None
        self.is_repeat = False
        self._id = ""
        self._name = ""
        self._names = names
        self._pieces: list[str] = []
        self._sent: int | None = None

    @property
    def key(self) -> tuple[str | None, str, str]:
        """What two calls have in common when they are one that was sent twice."""
        return self.wire_id, self._name, "".join(self._pieces)

    def name_it(self, item: Mapping[str, Any], ids: set[str], others: set[str | None]) -> None:
        """Take the id and name that an item gives, if they are not known yet."""
        if self.wire_id is None:
            self.wire_id = text_of(item.get("call_id")) or None
            # A repeated id may be the same call sent twice: nothing is told until that is known.
            self.is_repeat = self.wire_id is not None and self.wire_id in others
        self._name = self._name or text_of(item.get("name"))
        if not self._id and self._name:
            self._id = fresh_id(self.wire_id, ids)
            ids.add(self._id)

    def add(self, piece: str) -> list[ModelEvent]:
        """Take a piece of the arguments."""
        if piece:
            self._pieces.append(piece)
        return [] if self.is_repeat or not self._name else self._tell()

    def complete(self, arguments: object) -> list[ModelEvent]:
        """Take the whole arguments and give what is still to be told."""
        if isinstance(arguments, Mapping | list):
            arguments = json.dumps(arguments, ensure_ascii=False)
        whole, own = text_of(arguments), "".join(self._pieces)
        if whole.startswith(own):
            return self.add(whole[len(own) :])
        if whole.strip() and not _is_same_json(whole, own):
            raise StreamError("the pieces of a call's arguments do not make up the whole")
        return self.add("")

    def finish(self, ids: set[str]) -> tuple[ToolUse, list[ModelEvent]]:
        """Give the call, and the events that end it."""
        self._id = self._id or fresh_id(self.wire_id, ids)
        ids.add(self._id)
        events = self._tell()
        use = make_tool_use(self._id, self._told_name, "".join(self._pieces))
        data = {"index": self.position, "tool_use": use.to_json()}
        return use, [*events, ModelEvent("tool_call_stop", data)]

    @property
    def _told_name(self) -> str:
        return clean_text(self._names.original(self._name))

    def _tell(self) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if self._sent is None:
            self._sent = 0
            data = {"index": self.position, "id": self._id, "name": self._told_name}
            events.append(ModelEvent("tool_call_start", data))
        new = "".join(self._pieces[self._sent :])
        self._sent = len(self._pieces)
        if new:
            data = {"index": self.position, "arguments": clean_text(new)}
            events.append(ModelEvent("tool_call_delta", data))
        return events


Item = TextItem | ReasoningItem | CallItem


def _is_same_json(one: str, other: str) -> bool:
    try:
        return json.loads(one) == json.loads(other)
    except (ValueError, RecursionError):
        return False
