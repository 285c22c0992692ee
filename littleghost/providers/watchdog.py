"""Alarms: one thread for the whole process calls what is due.

A thread per request would cost more than the request. Actions must be quick: they run one after
the other in the alarm thread.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from littleghost.errors import DeadlineExceededError
from littleghost.providers.base import CallControl
from littleghost.providers.per_process import PerProcess

_logger = logging.getLogger(__name__)
# Below this many cancelled alarms the heap is not worth rebuilding.
_COMPACT_FROM = 64


class Alarm:
    """An action that is due at a moment, unless it is cancelled."""

    __slots__ = ("_watchdog", "action")

    def __init__(self, watchdog: Watchdog, action: Callable[[], None]) -> None:
        self._watchdog = watchdog
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Forget the action. Idempotent; an action that already runs is not stopped."""
        # The heap entry stays until it is due; without its action it holds nothing alive.
        if self.action is not None:
            self.action = None
            self._watchdog.forget_one()


class Watchdog:
    """Calls actions at their time from one daemon thread, started with the first alarm."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Alarm]] = []
        self._numbers = itertools.count()
        self._cancelled = 0
        self._thread: threading.Thread | None = None

    def after(self, delay_s: float, action: Callable[[], None]) -> Alarm:
        """Have `action` called in `delay_s` seconds.

        Cost: a heap push; the thread is woken only when this alarm is the next one due.
        """
        alarm = Alarm(self, action)
        due = time.monotonic() + delay_s
        with self._changed:
            heapq.heappush(self._heap, (due, next(self._numbers), alarm))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="littleghost-watchdog", daemon=True
                )
                self._thread.start()
            elif self._heap[0][2] is alarm:
                self._changed.notify()
        return alarm

    def forget_one(self) -> None:
        """Count a cancelled alarm, and drop them all once they are the greater part."""
        with self._changed:
            self._cancelled += 1
            if self._cancelled > _COMPACT_FROM and 2 * self._cancelled > len(self._heap):
                self._heap = [entry for entry in self._heap if entry[2].action is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def _run(self) -> None:
        while True:
            action = self._wait_for_next()
            try:
                action()
            except Exception:
                # One bad action must not end the thread that guards every other request.
                _logger.exception("an alarm's action failed")

    def _wait_for_next(self) -> Callable[[], None]:
        with self._changed:
            while True:
                if not self._heap:
                    self._changed.wait()
                    continue
                left = self._heap[0][0] - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                alarm = heapq.heappop(self._heap)[2]
                action, alarm.action = alarm.action, None
                if action is not None:
                    return action
                self._cancelled = max(0, self._cancelled - 1)


_watchdogs: PerProcess[Watchdog] = PerProcess(Watchdog)


def watchdog() -> Watchdog:
    """Give this process's watchdog."""
    return _watchdogs.get()


@contextmanager
def cut_at_deadline(control: CallControl) -> Generator[None, None, None]:
    """Cut `control` when its deadline comes while the block runs.

    A read timeout is not enough: a server that sends a comment every few seconds resets it.
    """
    left = control.remaining_s()
    if left is None:
        yield
        return
    error = DeadlineExceededError("the run's deadline has passed")
    alarm = watchdog().after(left, lambda: control.cut(error))
    try:
        yield
    finally:
        alarm.cancel()
