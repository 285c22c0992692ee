"""Reads what the types of an official SDK have validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def walk(value: object) -> None:
    """Look at every item: iterables are validated only when they are read."""
    if isinstance(value, Mapping):
        for item in value.values():
            walk(item)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            walk(item)
