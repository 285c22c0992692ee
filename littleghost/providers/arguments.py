"""Reads the arguments a model wrote for a tool call, and writes them back later.

Nothing is guessed: what is not exactly one JSON object is an error that the model is told,
except for three slips with only one reading (a code fence, a trailing comma, an object that
was encoded twice).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from littleghost.messages import ToolUse
from littleghost.providers.wire_text import clean_json, clean_text, compact_json

# Characters. Larger arguments are a model that loops.
MAX_ARGUMENTS = 2**20
MAX_DEPTH = 64
# Characters of unreadable arguments that are shown to the model again.
MAX_INVALID = 10_000
_FENCE = re.compile(r"\s*```[a-zA-Z]*\s*(.*?)\s*```\s*", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])|[\[{]|[\]}]', re.DOTALL)
_KINDS = {list: "an array", str: "text", bool: "true or false", int: "a number", float: "a number"}


def parse_arguments(text: str | None) -> tuple[dict[str, Any], str | None]:
    """Read argument text as one JSON object.

    Args:
        text: What the model wrote; None, blank text and `null` mean no arguments.

    Returns:
        The object, with lone surrogates and NUL replaced, and None; or `{}` and a sentence for
        the model that says what is wrong.
    """
    value, error, _ = _parse(text)
    return value, error


def make_tool_use(id: str, name: str, text: str | None) -> ToolUse:
    """Make the tool call from what the model wrote.

    Returns:
        A call whose `arguments` are the model's own text when they can be sent back as they are,
        JSON written anew when they had to be repaired, and the raw text beside an `error`.
    """
    if not name:
        return ToolUse(id, "", {}, clean_text(text or ""), "the call does not name a tool")
    value, error, is_verbatim = _parse(text)
    if error is not None:
        return ToolUse(id, name, {}, clean_text(text or ""), error)
    return ToolUse(id, name, value, text if is_verbatim else compact_json(value))


def replay_arguments(use: ToolUse) -> str:
    """Write a call's arguments for the next request: always the text of one JSON object.

    Returns:
        The model's own text, byte for byte, when it is valid (prompt caches depend on it); the
        input written anew when there is none; `{"_invalid": text}` when it was unreadable.
    """
    if use.error is None:
        if use.arguments is None:
            return compact_json(use.input)
        _, error, is_verbatim = _parse(use.arguments)
        if error is None:
            return use.arguments if is_verbatim else compact_json(use.input)
    return compact_json({"_invalid": (use.arguments or "")[:MAX_INVALID]})


def _parse(text: str | None) -> tuple[dict[str, Any], str | None, bool]:
    """Give the object, the error, and whether the text can be sent back as it is."""
    if text is None or not text.strip():
        return {}, None, False
    if len(text) > MAX_ARGUMENTS:
        return {}, f"the arguments are longer than {MAX_ARGUMENTS} characters", False
    value, error = _load(text)
    is_verbatim = error is None
    if error is not None:
        value, repaired_error = _load(_repair(text))
        error = error if repaired_error is not None else None
    if error is None and isinstance(value, str):
        inner, inner_error = _load(value)
        if inner_error is None and isinstance(inner, dict):
            value, is_verbatim = inner, False
    if error is not None:
        return {}, f"the arguments are not valid JSON: {error}", False
    if value is None:
        return {}, None, False
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "something else")
        return {}, f"the arguments must be a JSON object, not {kind}", False
    cleaned = clean_json(value)
    return cleaned, None, is_verbatim and cleaned == value and clean_text(text) == text


def _load(text: str) -> tuple[Any, str | None]:
    if _is_too_deep(text):
        return None, f"they are nested more than {MAX_DEPTH} levels deep"
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        return None, f"{error.msg} at line {error.lineno} column {error.colno}"
    except (ValueError, RecursionError) as error:
        return None, str(error)
    return value, None


def _repair(text: str) -> str:
    fenced = _FENCE.fullmatch(text)
    body = fenced[1] if fenced else text
    return _TOKEN.sub(lambda token: "" if token[0] == "," else token[0], body)


def _is_too_deep(text: str) -> bool:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token[0] in "]}":
            depth -= 1
    return False


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the key {name!r} stands there twice")
            seen.add(name)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value
