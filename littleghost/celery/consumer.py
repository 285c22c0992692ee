"""Has a threads worker take its next message as soon as a slot is free.

A worker without prefetching (`worker_disable_prefetch`) stops reading while all slots are busy. A
slot of a threads pool becomes free in its own thread, which Celery's event loop notices only when
it wakes by itself, up to a second later.
"""

from __future__ import annotations

import threading

from kombu.asynchronous import get_event_loop

# The slot counts as free only after the task's function has returned.
SOON_S = 0.001


def wake_consumer() -> None:
    """Have the event loop look for messages in a moment; does nothing in its own thread."""
    loop = get_event_loop()
    if loop is None or threading.current_thread() is threading.main_thread():
        return
    loop.call_soon(loop.call_later, SOON_S, go_round)


def go_round() -> None:
    """The loop reads messages on every round; a due timer makes it go round."""
