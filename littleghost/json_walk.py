"""One bounded walk over a Python value that copies it as JSON data.

For `json_values`, at whose `to_json_value` the rules are written; others take its paths.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, Final, NoReturn, cast
from uuid import UUID

from littleghost.json_text import (
    JsonLimits,
    JsonValue,
    clean_text,
    has_lone_surrogates,
    utf8_size,
)

# Python itself refuses to write or read integers of more than 4,300 digits.
_MAX_INT_BITS: Final = 14_000
_MAX_NAME: Final = 60

_AS_TEXT: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (datetime | date | time, lambda value: value.isoformat()),
    (Decimal | Fraction | UUID | PurePath, str),
)


class Walk:
    """The state of one walk: where it is, what it is inside of, how much it has seen."""

    __slots__ = (
        "_left",
        "_limits",
        "_open",
        "_path",
        "_refuse_bad_text",
        "_size",
        "_strict",
        "_where",
    )

    def __init__(
        self, where: str, limits: JsonLimits, *, strict: bool = False, refuse_bad_text: bool = False
    ) -> None:
        """Start at the root.

        Args:
            where: The root's name in error messages.
            limits: How large the value may be.
            strict: Refuse what is not JSON data already, instead of converting it.
            refuse_bad_text: Refuse lone surrogates instead of replacing them; leave NUL alone.
        """
        self._where = where
        self._limits = limits
        self._strict = strict
        self._refuse_bad_text = refuse_bad_text
        self._path: list[str | int] = []
        self._open: set[int] = set()
        self._left = limits.nodes
        self._size = 0

    def convert(self, value: Any) -> JsonValue:
        """Copy one value and all below it."""
        self._left -= 1
        if self._left < 0:
            self._refuse(f"more than {self._limits.nodes} values", root=True)
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._integer(value)
        if kind is float:
            return self._float(value)
        if kind is dict:
            return self._object(value, value)
        if kind is list or kind is tuple:
            return self._array(value, value)
        return self._subclass(value)

    def _subclass(self, value: Any) -> JsonValue:
        if isinstance(value, Enum) and not self._strict:
            return self.convert(value.value)
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, int):
            return self._integer(int(value))
        if isinstance(value, float):
            return self._float(float(value))
        if isinstance(value, Mapping):
            return self._object(cast("Mapping[Any, Any]", value), value)
        if isinstance(value, list | tuple):
            return self._array(cast("Iterable[Any]", value), value)
        if self._strict:
            self._refuse_type(value)
        return self._foreign(value)

    def _foreign(self, value: Any) -> JsonValue:
        for kinds, write in _AS_TEXT:
            if isinstance(value, kinds):
                return self._text(write(value))
        if isinstance(value, timedelta):
            return value.total_seconds()
        if isinstance(value, bytes | bytearray | memoryview):
            return self._object({"base64": base64.b64encode(value).decode("ascii")}, value)
        if isinstance(value, AbstractSet):
            return sorted(self._array(cast("Iterable[Any]", value), value), key=_set_order)
        if isinstance(value, Integral):
            return self._integer(int(value))
        if isinstance(value, Real):
            return self._float(float(value))
        if isinstance(value, Sequence):
            return self._array(cast("Iterable[Any]", value), value)
        return self._instance(value)

    def _instance(self, value: Any) -> JsonValue:
        if isinstance(value, type):
            self._refuse_type(value)
        if callable(getattr(value, "model_dump", None)):
            try:
                fields = value.model_dump(mode="json")
            except Exception as error:  # the model's own serialisers may raise anything
                kind = type(value).__name__
                raise ValueError(
                    f"{self._place()} is a {kind} that cannot be written as JSON "
                    f"({type(error).__name__})"
                ) from error
            return self.convert(fields)
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return self._object({name: getattr(value, name) for name in names}, value)
        return self._refuse_type(value)

    def _text(self, text: str) -> str:
        if self._refuse_bad_text:
            if has_lone_surrogates(text):
                self._refuse("text with a lone surrogate, which UTF-8 cannot carry")
        else:
            text = clean_text(text)
        self._grow(utf8_size(text))
        return text

    def _integer(self, value: int) -> int:
        bits = value.bit_length()
        if bits > _MAX_INT_BITS:
            self._refuse("an integer of more than 4,200 digits; give it as text")
        self._grow(bits // 3 + 1)
        return value

    def _float(self, value: float) -> float:
        if value - value != 0:
            name = "NaN" if value != value else "infinite"
            self._refuse(f"{name}, which JSON does not know; use null or text")
        self._grow(8)
        return value

    def _object(self, items: Mapping[Any, Any], owner: object) -> dict[str, JsonValue]:
        self._enter(owner)
        result: dict[str, JsonValue] = {}
        for key, item in items.items():
            name = self._key(key)
            if name in result:
                self._refuse(f"an object in which two keys become {_short(name)}; rename one")
            self._path.append(name)
            result[name] = self.convert(item)
            self._path.pop()
        self._open.discard(id(owner))
        return result

    def _array(self, items: Iterable[Any], owner: object) -> list[JsonValue]:
        self._enter(owner)
        result: list[JsonValue] = []
        for index, item in enumerate(items):
            self._path.append(index)
            result.append(self.convert(item))
            self._path.pop()
        self._open.discard(id(owner))
        return result

    def _enter(self, owner: object) -> None:
        if id(owner) in self._open:
            self._refuse("an object or list that contains itself")
        if len(self._open) >= self._limits.depth:
            self._refuse(f"nested more than {self._limits.depth} levels deep")
        self._open.add(id(owner))

    def _key(self, key: Any) -> str:
        if isinstance(key, str) and not (isinstance(key, Enum) and not self._strict):
            return self._text(str.__str__(key))
        if not self._strict:
            if isinstance(key, Enum):
                return self._key(key.value)
            if key is None or isinstance(key, int | float):
                # The spelling JSON itself gives them: null, true, 1, 1.5.
                return self._text(json.dumps(self.convert(key)))
            for kinds, write in _AS_TEXT:
                if isinstance(key, kinds):
                    return self._text(write(key))
        return self._refuse(f"an object with a key of type {type(key).__name__}; keys must be text")

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limits.size:
            self._refuse(f"more than {self._limits.size} bytes", root=True)

    def _refuse_type(self, value: object) -> NoReturn:
        kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        self._refuse(f"of type {kind}, which is not JSON data; use text, numbers, lists or dicts")

    def _refuse(self, what: str, *, root: bool = False) -> NoReturn:
        raise ValueError(f"{self._where if root else self._place()} is {what}")

    def _place(self) -> str:
        return path_text(self._path, self._where)


def path_text(path: Sequence[str | int], where: str = "$") -> str:
    """Write a path as `$.city` or `$.days[0]`, shortened in the middle when it is long."""
    parts = [
        f"[{part}]"
        if isinstance(part, int)
        else f".{part}"
        if _is_plain(part)
        else f"[{_short(part)}]"
        for part in path
    ]
    if len(parts) > 12:
        parts[8:-3] = [" … "]
    return where + "".join(parts)


def _is_plain(name: str) -> bool:
    return len(name) <= _MAX_NAME and name.replace("-", "_").isidentifier()


def _short(name: str) -> str:
    return json.dumps(
        name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "…", ensure_ascii=False
    )


def _set_order(item: JsonValue) -> tuple[int, float, str]:
    """Numbers by value, then everything else by its JSON text."""
    if isinstance(item, int | float) and not isinstance(item, bool) and abs(item) < 1e300:
        return (0, item, "")
    return (1, 0, json.dumps(item, sort_keys=True))
