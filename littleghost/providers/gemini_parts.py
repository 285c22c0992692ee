"""Puts the parts of a Gemini answer together, each with the signature that came with it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from littleghost.messages import Block, Reasoning, Text, ToolUse
from littleghost.providers.base import ModelEvent
from littleghost.providers.gemini_signatures import Signed
from littleghost.providers.openai_delta import Collected, text_of
from littleghost.providers.tool_calls import CallAssembler
from littleghost.providers.tool_names import WireNames


@dataclass(slots=True)
class _Piece:
    """A block of the answer as it grows: text, a thought, or a call by its index."""

    text: Collected | None = None
    is_thought: bool = False
    call: int = -1
    signature: str = ""
    id: str = ""


class GeminiParts:
    """The parts of one answer, in their order."""

    def __init__(self, names: WireNames, taken_ids: Collection[str], origin: str) -> None:
        """Start with no parts.

        Args:
            names: The names of the tools that were offered.
            taken_ids: Ids of earlier calls; new calls get other ones.
            origin: Whom signatures belong to.
        """
        self._origin = origin
        self._pieces: list[_Piece] = []
        self._calls = CallAssembler(names, taken_ids)
        self._call_count = 0

    def finish(self) -> tuple[list[Block], list[ModelEvent]]:
        """Give the blocks of the message, and the last events."""
        events = self._close()
        uses, call_events = self._calls.finish()
        stops = [e.data["index"] for e in call_events if e.type == "tool_call_stop"]
        blocks = self._blocks(dict(zip(stops, uses, strict=True)))
        return list(blocks), [*events, *call_events]

    def add(self, part: Mapping[str, Any]) -> Iterable[ModelEvent]:
        """Take one part and give the events it causes."""
        call = part.get("functionCall")
        signature = text_of(part.get("thoughtSignature") or part.get("thought_signature"))
        if isinstance(call, Mapping):
            yield from self._take_call(cast("Mapping[str, Any]", call), signature)
            return
        text = text_of(part.get("text"))
        if not text and not signature:
            return
        is_thought = part.get("thought") is True
        last = self._pieces[-1] if self._pieces else None
        # A part with a signature is not to be joined with one that has none.
        if (
            last is None
            or last.text is None
            or last.is_thought != is_thought
            or (signature or last.signature)
        ):
            yield from self._close()
            kind = "reasoning_delta" if is_thought else "text_delta"
            last = _Piece(text=Collected(kind), is_thought=is_thought, signature=signature)
            self._pieces.append(last)
        if last.text is not None:
            yield from last.text.add(text)

    def _take_call(self, call: Mapping[str, Any], signature: str) -> Iterable[ModelEvent]:
        yield from self._close()
        index, self._call_count = self._call_count, self._call_count + 1
        args, id_ = call.get("args"), text_of(call.get("id"))
        signature = signature or text_of(call.get("thoughtSignature"))
        self._pieces.append(_Piece(call=index, signature=signature, id=id_))
        function: dict[str, Any] = {"name": text_of(call.get("name"))}
        if args is not None:
            function["arguments"] = json.dumps(args, ensure_ascii=False)
        yield from self._calls.add({"index": index, "id": id_ or None, "function": function})

    def _close(self) -> list[ModelEvent]:
        last = self._pieces[-1].text if self._pieces else None
        return [] if last is None else last.flush()

    def _blocks(self, uses: Mapping[int, ToolUse]) -> Iterable[Block]:
        for piece in self._pieces:
            if piece.text is None:
                use = uses.get(piece.call)
                if use is None:
                    # The same call sent twice.
                    continue
                if piece.signature or piece.id:
                    yield Signed("next", piece.signature, piece.id).block(self._origin)
                yield use
            elif piece.is_thought:
                text = piece.text.text
                if piece.signature:
                    yield Signed("thought", piece.signature).block(self._origin, text)
                elif text:
                    yield Reasoning(text)
            elif not piece.text.text:
                yield Signed("text", piece.signature).block(self._origin)
            else:
                if piece.signature:
                    yield Signed("next", piece.signature).block(self._origin)
                yield Text(piece.text.text)
