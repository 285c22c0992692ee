"""JSON data: the only kind that enters the journal, an event or a model request.

Python values become JSON where they enter, once, so that stores, hashes and readers all see one
form. Reading and writing refuse what strict parsers refuse (NaN, Infinity), and every walk is
bounded in depth, so no input can exhaust the interpreter's stack.

Not for: bytes on a provider's wire, which the providers own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn, cast

from littleghost.errors import InvocationError
from littleghost.json_text import (
    CALLER_LIMITS,
    DEFAULT_LIMITS,
    JsonLimits,
    JsonValue,
    clean_text,
    utf8_size,
)
from littleghost.json_walk import Walk

__all__ = [
    "CALLER_LIMITS",
    "DEFAULT_LIMITS",
    "JsonLimits",
    "JsonValue",
    "check_json",
    "check_json_mapping",
    "clean_text",
    "copy_json",
    "dumps",
    "loads",
    "to_json_value",
    "utf8_size",
]


def to_json_value(
    value: object, *, where: str = "$", limits: JsonLimits = DEFAULT_LIMITS
) -> JsonValue:
    """Turn a Python value into JSON data of its own.

    Becomes text: Decimal (its digits), Fraction, datetime, date and time (ISO 8601), UUID, Path.
    Becomes an object: dataclasses, pydantic models (`model_dump(mode="json")`), any mapping, and
    bytes, as `{"base64": text}`. Becomes a list: tuples, other sequences, and sets, sorted so that
    the same set always gives the same list. An Enum gives its value, a timedelta its seconds.
    Text is cleaned (see `clean_text`). Keys that are None, bool, numbers, dates, UUIDs or Enums
    become text.

    Args:
        value: What to turn into JSON; it is not changed and shares nothing with the result.
        where: How error messages call the value itself; paths start with it.
        limits: How large it may be.

    Returns:
        dict, list, str, int, float, bool or None; never NaN or Infinity.

    Raises:
        ValueError: It has no JSON form or is too large; the message names the path, as `$.a[0]`.
    """
    return Walk(where, limits).convert(value)


def check_json(
    value: object, *, where: str = "$", limits: JsonLimits = DEFAULT_LIMITS
) -> JsonValue:
    """Copy a value that is JSON data already, and refuse anything else.

    Args:
        value: dict (text keys), list, tuple, str, int, float, bool or None, nested.
        where: How error messages call the value itself.
        limits: How large it may be.

    Returns:
        The same data, tuples as lists, text cleaned.

    Raises:
        ValueError: It is not plain JSON or is too large; the message names the path.
    """
    return Walk(where, limits, strict=True).convert(value)


def check_json_mapping(value: object, field: str) -> dict[str, JsonValue]:
    """Copy a mapping that a caller attaches to a run; nothing in it is changed silently.

    Args:
        value: A mapping of plain JSON data of at most 1 MiB and 64 levels; None means empty.
        field: The argument's name, such as "context".

    Returns:
        A copy that shares nothing with the caller's mapping; tuples became lists.

    Raises:
        InvocationError: It is something else; the message names the path, `field` the argument.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvocationError(
            f"{field} must be a dict of plain JSON data, not {type(value).__name__}", field=field
        )
    try:
        walk = Walk(field, CALLER_LIMITS, strict=True, refuse_bad_text=True)
        return cast("dict[str, JsonValue]", walk.convert(cast("object", value)))
    except ValueError as error:
        raise InvocationError(str(error), field=field) from None


def dumps(value: JsonValue | Mapping[str, Any]) -> str:
    """Write JSON text: compact, not escaped beyond what JSON requires.

    Args:
        value: JSON data, as `to_json_value`, `check_json` or `loads` give it.

    Raises:
        ValueError: It holds NaN, Infinity, or is nested too deeply for Python's writer.
        TypeError: It holds a value that JSON does not know.
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise ValueError("the value is nested too deeply to be written as JSON") from None


def loads(text: str | bytes, *, limits: JsonLimits = DEFAULT_LIMITS) -> JsonValue:
    """Read JSON text strictly: one value, no NaN or Infinity, bounded.

    Args:
        text: JSON in text or UTF-8 bytes. Of repeated keys the last one counts.
        limits: How large the value may be; `size` bounds the bytes of the whole text.

    Returns:
        The value, its text cleaned (see `clean_text`).

    Raises:
        ValueError: It is not JSON, or too large; the message says where, and never quotes it.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    if utf8_size(text) > limits.size:
        raise ValueError(f"the JSON text is larger than {limits.size} bytes")
    try:
        value = _DECODER.decode(clean_text(text))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"not valid JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise ValueError(f"nested more than {limits.depth} levels deep") from None
    _check_size(value, limits)
    # Only an escape can bring in what clean_text removed from the source.
    return check_json(value, limits=limits) if "\\u" in text else cast("JsonValue", value)


def _check_size(value: object, limits: JsonLimits) -> None:
    """Measure level by level: no recursion, whatever the depth."""
    level: list[Any] = [value]
    depth = nodes = 0
    while level:
        nodes += len(level)
        if nodes > limits.nodes:
            raise ValueError(f"more than {limits.nodes} values")
        containers = [item for item in level if type(item) in (dict, list)]
        depth += bool(containers)
        if depth > limits.depth:
            raise ValueError(f"nested more than {limits.depth} levels deep")
        level = [
            child
            for item in containers
            for child in (item.values() if type(item) is dict else item)
        ]


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError("not valid JSON: a number is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"not valid JSON: {name} is not a JSON number")


_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)
_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant)


def copy_json(value: Any) -> Any:
    """Copy JSON data that is known to be such; several times as fast as `copy.deepcopy`."""
    if isinstance(value, dict):
        return {
            key: item if isinstance(item, str) else copy_json(item)
            for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [copy_json(item) for item in cast("list[Any]", value)]
    return value
