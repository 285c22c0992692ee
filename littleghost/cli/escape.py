"""Makes text of models, tools and users safe to show on a terminal.

Such text is untrusted: an escape sequence in it could move the cursor, change the title, write to
the clipboard or hide words.
"""

from __future__ import annotations

import re

# Controls but newline and tab, invisible and direction-changing characters, and lone surrogates.
# Joiners inside words and emoji (U+200C, U+200D) stay.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_ELLIPSIS = "…"


def visible(text: str) -> str:
    """Replace what a terminal would obey by a visible escape; lines and tabs stay."""
    return _UNSAFE.sub(_escape, text)


def one_line(text: str, limit: int = 0) -> str:
    """Do the same, on one line of at most `limit` characters (0 for any number)."""
    flat = visible(" ".join(text.split()))
    if limit and len(flat) > limit:
        flat = flat[: limit - 1] + _ELLIPSIS
    return flat


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number == 0x0D:
        return "\\r"
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
