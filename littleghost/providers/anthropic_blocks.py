"""Puts the content blocks of an Anthropic answer together, in the order they came in."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from littleghost.messages import Block, Reasoning, Text
from littleghost.providers.arguments import make_tool_use
from littleghost.providers.base import ModelEvent
from littleghost.providers.openai_delta import Collected, text_of
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import clean_text, compact_json

_USABLE_ID = re.compile(r"[a-zA-Z0-9_-]{1,256}")
# The kind of block that each kind of delta belongs to.
_KIND_OF_DELTA = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class _OpenBlock(Protocol):
    kind: str

    def add(self, piece: Mapping[str, Any]) -> list[ModelEvent]: ...

    def close(self) -> list[ModelEvent]: ...

    def block(self) -> Block | None: ...


class _TextBlock:
    kind = "text"

    def __init__(self) -> None:
        self._text = Collected("text_delta")

    def add(self, piece: Mapping[str, Any]) -> list[ModelEvent]:
        return self._text.add(text_of(piece.get("text")))

    def close(self) -> list[ModelEvent]:
        return self._text.flush()

    def block(self) -> Block | None:
        return Text(self._text.text) if self._text.text else None


class _ThinkingBlock:
    kind = "thinking"

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._text = Collected("reasoning_delta")
        self._signature = ""

    def add(self, piece: Mapping[str, Any]) -> list[ModelEvent]:
        self._signature += text_of(piece.get("signature"))
        return self._text.add(text_of(piece.get("thinking")))

    def close(self) -> list[ModelEvent]:
        return self._text.flush()

    def block(self) -> Block | None:
        # A signature alone is kept too: the service wants it back.
        if not self._text.text and not self._signature:
            return None
        signature = clean_text(self._signature) or None
        return Reasoning(self._text.text, signature, details={"origin": self._origin})


class _RedactedBlock:
    kind = "redacted_thinking"

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._data = ""

    def add(self, piece: Mapping[str, Any]) -> list[ModelEvent]:
        self._data += text_of(piece.get("data"))
        return []

    def close(self) -> list[ModelEvent]:
        return []

    def block(self) -> Block | None:
        if not self._data:
            return None
        return Reasoning(redacted=clean_text(self._data), details={"origin": self._origin})


class _CallBlock:
    kind = "tool_use"

    def __init__(self, position: int, id_: str, name: str) -> None:
        self.position = position
        self.id = id_
        self.name = name
        self._pieces: list[str] = []
        self._input: object = None
        self._is_closed = False

    def add(self, piece: Mapping[str, Any]) -> list[ModelEvent]:
        self._input = piece.get("input") or self._input
        text = text_of(piece.get("partial_json"))
        return self._give(text) if text and not self._is_closed else []

    def close(self) -> list[ModelEvent]:
        if self._is_closed:
            return []
        # Some gateways send the whole input at the start, and no pieces.
        given = [] if self._pieces or not self._input else self._give(compact_json(self._input))
        self._is_closed = True
        data = {"index": self.position, "tool_use": self.block().to_json()}
        return [*given, ModelEvent("tool_call_stop", data)]

    def block(self) -> Block:
        return make_tool_use(self.id, self.name, "".join(self._pieces))

    def _give(self, text: str) -> list[ModelEvent]:
        self._pieces.append(text)
        data = {"index": self.position, "arguments": clean_text(text)}
        return [ModelEvent("tool_call_delta", data)]


class _OtherBlock:
    """A kind of block that this adapter asks for nothing of, such as a server's own tools."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def add(self, piece: Mapping[str, Any]) -> list[ModelEvent]:
        del piece
        return []

    def close(self) -> list[ModelEvent]:
        return []

    def block(self) -> Block | None:
        return None


class BlockAssembler:
    """Collects the blocks of one answer."""

    def __init__(self, names: WireNames, taken_ids: Collection[str], origin: str) -> None:
        """Start with no blocks.

        Args:
            names: The names of the tools that were offered.
            taken_ids: Ids of earlier calls; a call that repeats one gets a new id.
            origin: Whom the reasoning belongs to.
        """
        self._names = names
        self._ids = set(taken_ids)
        self._origin = origin
        self._blocks: list[_OpenBlock] = []
        self._at: dict[int, _OpenBlock] = {}
        self._last = 0
        self._calls = 0

    def start(self, index: object, content: Mapping[str, Any]) -> list[ModelEvent]:
        """Open a block and take what its beginning already holds."""
        block, events = self._open(self._position(index), text_of(content.get("type")), content)
        return [*events, *block.add(content)]

    def add(self, index: object, delta: Mapping[str, Any]) -> list[ModelEvent]:
        """Take a piece; one that does not fit the open block opens one where it fits."""
        kind = _KIND_OF_DELTA.get(text_of(delta.get("type")))
        if kind is None:
            return []
        position = self._position(index)
        block = self._at.get(position)
        events: list[ModelEvent] = []
        if block is None or block.kind != kind:
            if block is not None and isinstance(block, _OtherBlock):
                return []
            block, events = self._open(position, kind, {})
        return [*events, *block.add(delta)]

    def stop(self, index: object) -> list[ModelEvent]:
        """Close a block."""
        block = self._at.get(self._position(index))
        return [] if block is None else block.close()

    def finish(self) -> tuple[list[Block], list[ModelEvent]]:
        """Give the blocks in their order, and the events of those that were not closed."""
        events = [event for block in self._blocks for event in block.close()]
        found = [block.block() for block in self._blocks]
        return [block for block in found if block is not None], events

    def _position(self, index: object) -> int:
        if isinstance(index, int) and not isinstance(index, bool):
            self._last = index
        return self._last

    def _open(
        self, position: int, kind: str, content: Mapping[str, Any]
    ) -> tuple[_OpenBlock, list[ModelEvent]]:
        earlier = self._at.get(position)
        events = [] if earlier is None else earlier.close()
        block: _OpenBlock
        match kind:
            case "text":
                block = _TextBlock()
            case "thinking":
                block = _ThinkingBlock(self._origin)
            case "redacted_thinking":
                block = _RedactedBlock(self._origin)
            case "tool_use":
                block = self._call(content)
                data = {"index": block.position, "id": block.id, "name": block.name}
                events.append(ModelEvent("tool_call_start", data))
            case _:
                block = _OtherBlock(kind)
        self._at[position] = block
        self._blocks.append(block)
        return block, events

    def _call(self, content: Mapping[str, Any]) -> _CallBlock:
        id_ = text_of(content.get("id"))
        if id_ in self._ids or not _USABLE_ID.fullmatch(id_):
            id_ = f"call_{uuid.uuid4().hex[:24]}"
        self._ids.add(id_)
        name = clean_text(self._names.original(text_of(content.get("name"))))
        self._calls += 1
        return _CallBlock(self._calls - 1, id_, name)
