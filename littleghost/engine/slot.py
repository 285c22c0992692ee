"""Knows whether the calling code runs inside a worker task, whose slot it must not hold.

A context variable and not a thread's own: a tool with a time limit may run in another thread.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from littleghost.errors import BlockingCallError

_inside: ContextVar[bool] = ContextVar("littleghost_inside_task", default=False)


def refuse_blocking(what: str) -> None:
    """Refuse to wait for a run inside a task.

    Raises:
        BlockingCallError: The calling code belongs to a task.
    """
    if _inside.get():
        raise BlockingCallError(
            f"{what} would wait inside a worker task and hold its slot; use enqueue() and go on, "
            "or declare the other assembly as a tool or a step: the engine waits without a slot"
        )


@contextmanager
def occupied() -> Generator[None]:
    """Mark what runs in the block as a task's work."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
