"""Text and values made fit to be sent: strictly valid JSON in UTF-8, whatever history holds.

One lone surrogate in a stored tool result would otherwise make every later request of its
session fail.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from littleghost.errors import InvalidRequestError

_REPLACEMENT = "\ufffd"
# Nesting beyond this is cut; json itself gives up at about 1,000.
MAX_DEPTH = 100


def clean_text(text: str) -> str:
    """Replace what cannot be sent: lone surrogates and NUL become U+FFFD.

    Surrogates that stand in pairs are joined to their one character. Text that holds the six
    characters of an escape such as backslash-u-0000 is left alone.
    """
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", _REPLACEMENT) if "\0" in text else text


def clean_json(value: object, depth: int = 0) -> Any:
    """Give a copy of `value` that JSON can hold.

    Text is cleaned, NaN and infinity become None, tuples become lists, what JSON does not know
    becomes its text, nesting beyond 100 levels is cut.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= MAX_DEPTH:
        return "[nested too deeply]"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {clean_text(str(key)): clean_json(item, depth + 1) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [clean_json(item, depth + 1) for item in cast("list[object]", value)]
    return clean_text(str(value))


def compact_json(value: object) -> str:
    """Write `value` as strict JSON without spaces, cleaned first."""
    return json.dumps(clean_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Write a request body as strict JSON in UTF-8.

    Raises:
        InvalidRequestError: A value in it has no JSON form.
    """
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(
            f"the model request cannot be written as JSON: {error}"
        ) from error


def mappings_of(value: object) -> list[Mapping[str, Any]]:
    """Give the objects in a list, and none for any other value."""
    if not isinstance(value, list):
        return []
    found = (item for item in cast("list[object]", value) if isinstance(item, Mapping))
    return [cast("Mapping[str, Any]", item) for item in found]
