"""Notices at once that a child of a prefork pool has died.

Celery reports a dead child seconds later (it waits for a result that may still be in a pipe). A
process's sentinel is readable as soon as the process is gone.
"""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Callable, Iterable
from typing import Any

logger = logging.getLogger("littleghost.worker")
WAIT_MS = 100


def pool_processes(consumer: Any) -> list[Any]:
    """Give the processes of a worker's pool; none where the pool is not prefork."""
    pool = getattr(getattr(consumer, "pool", None), "_pool", None)
    processes = getattr(pool, "_pool", None)
    return list(processes) if isinstance(processes, list) else []


class ChildWatch:
    """Watches the sentinels of a pool's processes."""

    def __init__(
        self, processes: Callable[[], Iterable[Any]], on_death: Callable[[int], None]
    ) -> None:
        """Prepare.

        Args:
            processes: Gives the pool's current processes.
            on_death: Called with the process id of each that died.
        """
        self._processes = processes
        self._on_death = on_death
        self._watched: dict[int, int] = {}
        self._poll = select.poll()

    def look(self) -> None:
        """Wait a moment for deaths and report them."""
        for process in self._processes():
            pid = process.pid
            sentinel = getattr(getattr(process, "_popen", None), "sentinel", None)
            if pid is not None and sentinel is not None and pid not in self._watched.values():
                # A copy: the pool closes its own when it has joined the process.
                descriptor = os.dup(sentinel)
                self._watched[descriptor] = pid
                self._poll.register(descriptor, select.POLLIN | select.POLLHUP)
        for descriptor, _ in self._poll.poll(WAIT_MS):
            pid = self._watched.pop(descriptor)
            self._poll.unregister(descriptor)
            os.close(descriptor)
            self._on_death(pid)
