"""One value for each process, so that a forked child never uses what its parent had open."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Gives each process its own value, made when it is first asked for.

    Thread-safe without a lock, since a lock that some thread holds during `os.fork` stays locked
    in the child for ever. `make` may therefore run twice in a race; only one result is kept, so it
    must be cheap and open nothing.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[int, T] = {}

    def get(self) -> T:
        """Give this process's value."""
        pid = os.getpid()
        value = self._values.get(pid)
        # dict.setdefault is atomic for int keys: every thread gets the same value.
        return self._values.setdefault(pid, self._make()) if value is None else value
