"""Text that every store and model service takes, and the bounds of JSON data.

The ground of `json_values`, which is what other modules import.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

# One piece of a text that is encoded at a time, in characters: bounds the memory of a check.
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """How large one JSON value may be.

    Attributes:
        depth: Lists and objects inside each other; 1 to 200.
        nodes: Values in all, each list, object and scalar counted.
        size: Bytes of text and numbers, keys included, without punctuation.
    """

    depth: int = 64
    nodes: int = 100_000
    size: int = 64 << 20

    def __post_init__(self) -> None:
        # A walk takes a few frames per level; 200 levels fit into any stack that runs user code.
        if not 1 <= self.depth <= 200:
            raise ValueError(f"depth {self.depth!r} must be from 1 to 200")


DEFAULT_LIMITS: Final = JsonLimits()
# What a caller may attach to one run (context, metadata, settings): 1 MiB each.
CALLER_LIMITS: Final = JsonLimits(size=1 << 20)


def clean_text(text: str) -> str:
    """Make text that every store and model service takes.

    Surrogate pairs are joined to the character they stand for; a lone surrogate or a NUL becomes
    U+FFFD. Everything else stays.
    """
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if has_lone_surrogates(text):
        raw = text.encode("utf-16-le", "surrogatepass")
        text = raw.decode("utf-16-le", "replace")
    return text


def has_lone_surrogates(text: str) -> bool:
    """Say whether text holds code points that UTF-8 cannot carry."""
    if text.isascii():
        return False
    try:
        for piece in _pieces(text):
            piece.encode()
    except UnicodeEncodeError:
        return True
    return False


def utf8_size(text: str) -> int:
    """Count the bytes of text in UTF-8, a lone surrogate as 3, without encoding it whole."""
    if text.isascii():
        return len(text)
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    if len(text) <= _PIECE:
        yield text
        return
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
