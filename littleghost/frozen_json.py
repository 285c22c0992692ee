"""JSON data that cannot be changed in place.

Frozen dicts and lists are equal to plain ones and can be written as JSON; a change raises at once
instead of being lost silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from littleghost.json_values import JsonValue


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes; `copy()` and `copy.deepcopy` give one that can be changed."""

    __slots__ = ()

    def copy(self) -> dict[str, Any]:
        """Give a plain dict with the same, still frozen, values."""
        return dict(self)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return thaw(self)


class FrozenList(list[Any]):
    """A list that refuses changes; `copy()` and `copy.deepcopy` give one that can be changed."""

    __slots__ = ()

    def copy(self) -> list[Any]:
        """Give a plain list with the same, still frozen, values."""
        return list(self)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return thaw(self)


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(
        "this value is read-only, since a change in place would not be recorded; "
        "change a copy (copy.deepcopy) and assign it"
    )


_CHANGES_DICT = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault")
_CHANGES_LIST = ("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend")
for _name in (*_CHANGES_DICT, "update"):
    setattr(FrozenDict, _name, _refuse)
for _name in (*_CHANGES_LIST, "insert", "pop", "remove", "reverse", "sort"):
    setattr(FrozenList, _name, _refuse)


def freeze(value: Any) -> Any:
    """Give a read-only copy of JSON data; what is frozen already is shared.

    Args:
        value: JSON data of bounded depth.
    """
    if isinstance(value, FrozenDict | FrozenList):
        return cast("Any", value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return FrozenDict({key: freeze(item) for key, item in items.items()})
    if isinstance(value, list | tuple):
        return FrozenList([freeze(item) for item in cast("Sequence[Any]", value)])
    return value


def thaw(value: Any) -> JsonValue:
    """Give a copy of JSON data, frozen or not, that can be changed at every level.

    Args:
        value: JSON data of bounded depth.
    """
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return {key: thaw(item) for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in cast("Sequence[Any]", value)]
    return value
