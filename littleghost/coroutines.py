"""Running one coroutine to its end from ordinary code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any


def finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in an event loop of its own and give its result.

    Where this thread runs an event loop already, as in an async test, a thread of its own is used;
    the calling thread waits for it.

    Raises:
        RuntimeError: The coroutine was cancelled from inside.
        BaseException: Whatever the coroutine raises.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine)
    answers: list[Any] = []
    errors: list[BaseException] = []
    surroundings = contextvars.copy_context()

    def work() -> None:
        try:
            answers.append(surroundings.run(_run, coroutine))
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            errors.append(error)

    thread = threading.Thread(target=work, name="littleghost-coroutine", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        return asyncio.run(coroutine)
    except asyncio.CancelledError as error:
        # Not an Exception, so it would end the worker's task instead of the call.
        raise RuntimeError("the coroutine was cancelled") from error
