"""Bounds the time of a tool call in the process that runs it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from types import FrameType
from typing import TypeVar

from littleghost.errors import ToolTimeoutError

T = TypeVar("T")


def call_within(work: Callable[[], T], seconds: float | None, on_timeout: Callable[[], None]) -> T:
    """Run a tool's code for at most some seconds.

    In the main thread of a process (a prefork child, or the solo pool) the code is interrupted by a
    timer signal. In a pool of threads nothing can interrupt it: the call ends and the code runs on
    in a thread of its own until it looks at its cancellation; what it returns is dropped.

    Args:
        work: The tool's code.
        seconds: The limit; None is no limit.
        on_timeout: Called when time is up, before the error is raised.

    Raises:
        ToolTimeoutError: Time is up.
    """
    if seconds is None:
        return work()
    if threading.current_thread() is threading.main_thread():
        return _interrupted(work, seconds, on_timeout)
    return _abandoned(work, seconds, on_timeout)


def _message(seconds: float) -> str:
    return f"The tool did not finish within {seconds:g} s."


def _interrupted(work: Callable[[], T], seconds: float, on_timeout: Callable[[], None]) -> T:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        on_timeout()
        raise ToolTimeoutError(_message(seconds))

    before = signal.signal(signal.SIGALRM, ring)
    started = time.monotonic()
    # An alarm of somebody else's is put off, and set again for what was left of its time.
    others_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if others_s:
            left_s = max(0.001, others_s - (time.monotonic() - started))
            signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)


def _abandoned(work: Callable[[], T], seconds: float, on_timeout: Callable[[], None]) -> T:
    done = threading.Event()
    outcome: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - carried to the calling thread
            errors.append(error)
        finally:
            done.set()

    context = copy_context()
    threading.Thread(target=context.run, args=(body,), daemon=True, name="littleghost-tool").start()
    if not done.wait(seconds):
        on_timeout()
        raise ToolTimeoutError(_message(seconds))
    if errors:
        raise errors[0]
    return outcome[0]
