"""Working state that tools change, recorded as operations.

A tool sees its state as a mapping. What it changes is kept as operations on single keys, which are
applied when its result is committed: two tools that run at the same time lose nothing, and a call
that is repeated changes nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, Literal, TypeAlias, TypedDict, cast

from littleghost.frozen_json import FrozenList, freeze, thaw
from littleghost.json_values import JsonLimits, JsonValue, check_json

MAX_KEY_LENGTH: Final = 256
# One value of a state; larger things belong into the application's own store.
VALUE_LIMITS: Final = JsonLimits(size=1 << 20)

OperationName: TypeAlias = Literal["set", "delete", "increment", "append"]


class _OperationBase(TypedDict):
    op: OperationName
    key: str


class StateOperation(_OperationBase, total=False):
    """One change to one key.

    Shape: `{"op": "set"|"append", "key", "value"}`, `{"op": "delete", "key"}` or
    `{"op": "increment", "key", "by"}`.
    """

    value: JsonValue
    by: int | float


class State(MutableMapping[str, Any]):
    """A mapping of JSON values whose changes are recorded.

    Values that are read are read-only at every level: to change a nested value, change a copy
    (`copy.deepcopy`) and assign it, or use `append` and `increment`. Prefer those two where
    several tools change one key at the same time; of several assignments the last one stays.
    Assigning what is no JSON data raises a ValueError that names the path.

    Not thread-safe: each tool call has its own.
    """

    __slots__ = ("_data", "_operations")

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        """Start from what is recorded already.

        Args:
            data: JSON data, as read from the journal; it is not changed.
        """
        # Frozen when first read: most calls read little of a large state.
        self._data: dict[str, Any] = dict(data or {})
        self._operations: dict[str, list[StateOperation]] = {}

    def __getitem__(self, key: str) -> Any:
        value = self._data[key]
        if type(value) is dict or type(value) is list:
            value = self._data[key] = freeze(value)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        copied = _checked(key, value)
        self._data[key] = freeze(copied)
        # What was done to this key before no longer matters to anybody.
        self._operations[key] = [{"op": "set", "key": key, "value": copied}]

    def __delitem__(self, key: str) -> None:
        del self._data[key]
        self._operations[key] = [{"op": "delete", "key": key}]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __repr__(self) -> str:
        return f"State({self._data!r})"

    def increment(self, key: str, by: int | float = 1) -> int | float:
        """Add to a number; a missing one counts as 0.

        Args:
            key: The key.
            by: What to add; negative to subtract.

        Returns:
            The new number as this call sees it; tools at work elsewhere may add to it as well.

        Raises:
            TypeError: The key holds something else than a number, or `by` is none.
            ValueError: The result would be NaN, Infinity or beyond 4,200 digits.
        """
        _check_key(key)
        held = self._data.get(key, 0)
        if not _is_number(held):
            raise TypeError(f"state[{key!r}] is {type(held).__name__}, not a number; assign to it")
        if not _is_number(by):
            raise TypeError(f"cannot increment state[{key!r}] by {type(by).__name__}")
        check_json([by, held + by], where=f"state[{key!r}]")
        self._data[key] = held + by
        waiting = self._operations.setdefault(key, [])
        if waiting and waiting[-1]["op"] == "increment":
            by += cast("Any", waiting.pop()).get("by", 0)
        waiting.append({"op": "increment", "key": key, "by": by})
        return self._data[key]

    def append(self, key: str, value: Any) -> None:
        """Add one item to the end of a list; a missing one counts as empty.

        Args:
            key: The key.
            value: JSON data.

        Raises:
            TypeError: The key holds something else than a list.
            ValueError: The value is no JSON data; the message names the path.
        """
        copied = _checked(key, value)
        held = self._data.get(key, FrozenList())
        if not isinstance(held, list):
            raise TypeError(f"state[{key!r}] is {type(held).__name__}, not a list; assign to it")
        self._data[key] = FrozenList([*cast("list[Any]", held), freeze(copied)])
        operation: StateOperation = {"op": "append", "key": key, "value": copied}
        self._operations.setdefault(key, []).append(operation)

    @property
    def operations(self) -> list[StateOperation]:
        """The changes so far, in an order that gives the same state; JSON data of their own.

        What a later change of the same key made void is left out.
        """
        return [
            cast("StateOperation", thaw(operation))
            for of_key in self._operations.values()
            for operation in of_key
        ]

    def to_json(self) -> dict[str, JsonValue]:
        """Give a copy of the whole state, as plain JSON data."""
        return cast("dict[str, JsonValue]", thaw(self._data))


def apply_operations(
    data: Mapping[str, JsonValue], operations: Iterable[StateOperation]
) -> dict[str, JsonValue]:
    """Give the state after operations; pure, and it never fails.

    Where another tool changed what an operation builds on, the operation still has a result:
    deleting what is gone does nothing, adding to what is no number starts from 0, and appending
    to what is no list starts a new one.

    Args:
        data: The state before; it is not changed.
        operations: What a `State` recorded.
    """
    result = dict(data)
    for operation in operations:
        key, name = operation["key"], operation["op"]
        held = result.get(key)
        if name == "set":
            result[key] = operation.get("value")
        elif name == "delete":
            result.pop(key, None)
        elif name == "increment":
            by = operation.get("by", 0)
            result[key] = cast("int | float", held) + by if _is_number(held) else by
        else:
            items = cast("list[JsonValue]", held) if isinstance(held, list) else []
            result[key] = [*items, operation.get("value")]
    return result


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_key(key: object) -> None:
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_LENGTH:
        raise ValueError(f"a state key must be text of 1 to {MAX_KEY_LENGTH} characters")
    check_json(key, where="a state key")


def _checked(key: object, value: Any) -> JsonValue:
    _check_key(key)
    return check_json(value, where=f"state[{key!r}]", limits=VALUE_LIMITS)
