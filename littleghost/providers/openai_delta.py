"""Reads the parts of one chunk of an OpenAI chat answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from littleghost.providers.base import ModelEvent
from littleghost.providers.wire_text import clean_json, clean_text, mappings_of


class Collected:
    """Text that comes in pieces, cleaned, with a split character held back until it is whole."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._pieces: list[str] = []
        self._held = ""

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._pieces)

    def add(self, piece: str) -> list[ModelEvent]:
        """Take a piece and give its event; none for an empty one."""
        piece = self._held + piece
        # Half of an escaped pair of surrogates; the other half comes with the next piece.
        self._held = piece[-1] if piece and "\ud800" <= piece[-1] <= "\udbff" else ""
        return self._give(piece[:-1] if self._held else piece)

    def flush(self) -> list[ModelEvent]:
        """Give what was held back."""
        held, self._held = self._held, ""
        return self._give(held)

    def _give(self, piece: str) -> list[ModelEvent]:
        if not piece:
            return []
        piece = clean_text(piece)
        self._pieces.append(piece)
        return [ModelEvent(self._event, {"text": piece})]


def first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find the choice that counts, or None."""
    choices = chunk.get("choices")
    if isinstance(choices, list):
        for choice in cast("list[object]", choices):
            if isinstance(choice, Mapping):
                found = cast("Mapping[str, Any]", choice)
                if found.get("index") in (None, 0):
                    return found
    return None


def content_of(content: object) -> str:
    """Read content: text, a list of parts, or nothing."""
    if isinstance(content, str):
        return content
    parts = mappings_of(content)
    return "".join(text_of(part.get("text")) for part in parts if part.get("type") == "text")


def reasoning_of(delta: Mapping[str, Any]) -> str:
    """Read a piece of reasoning under either of its names."""
    return text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning"))


def text_of(value: object) -> str:
    """Give a value that is text, and "" for any other."""
    return value if isinstance(value, str) else ""


def merge_detail(details: list[Any], item: object) -> None:
    """Add a piece of reasoning details to the block it belongs to: same type, same index."""
    if not isinstance(item, Mapping):
        return
    piece = cast("dict[str, Any]", clean_json(item))
    last = details[-1] if details else None
    if last is None or (last.get("type"), last.get("index")) != (
        piece.get("type"),
        piece.get("index"),
    ):
        details.append(piece)
        return
    for name, value in piece.items():
        if name in ("text", "summary", "data") and isinstance(value, str) and last.get(name):
            last[name] += value
        elif value is not None:
            last[name] = value
