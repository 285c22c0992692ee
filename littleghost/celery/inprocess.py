"""A Celery worker inside the calling process, for the embedded default."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from typing import Any

from celery import signals
from celery.worker import WorkController
from celery.worker import state as worker_state
from kombu.asynchronous import get_event_loop

from littleghost.celery.app import make_app
from littleghost.celery.consumer import go_round
from littleghost.errors import ConfigurationError
from littleghost.settings import Settings

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0


class InProcessWorker:
    """Threads of this process that serve every queue."""

    def __init__(
        self, settings: Settings, hand_over: Callable[[], None], concurrency: int = 16
    ) -> None:
        """Start the worker and wait until it takes messages.

        Args:
            hand_over: Cuts what runs, so that the process can end.

        Raises:
            ConfigurationError: It did not come up.
        """
        self._ready = threading.Event()
        self._hand_over = hand_over
        for name in ("celery", "kombu"):
            logging.getLogger(name).setLevel(logging.ERROR)
        app = make_app(settings, "littleghost-embedded", set_as_current=False)
        app.finalize()
        self._worker = WorkController(
            app=app,
            hostname="embedded@localhost",
            pool="threads",
            concurrency=concurrency,
            queues=settings.standard_queues(),
            loglevel="ERROR",
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
            ready_callback=self._on_ready,
        )
        self._thread = threading.Thread(
            target=self._worker.start, daemon=True, name="littleghost-worker"
        )
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise ConfigurationError("the worker inside this process did not start")
        # Before Python waits for the pool's threads, which `atexit` would come after.
        getattr(threading, "_register_atexit", atexit.register)(self.stop)

    def _on_ready(self, consumer: Any) -> None:

        signals.worker_ready.send(sender=consumer)
        self._ready.set()

    def stop(self) -> None:
        """Stop taking messages, give work back, and end the threads. Idempotent."""
        if not self._thread.is_alive():
            return

        signals.worker_shutting_down.send(sender="embedded", sig="", how="Warm", exitcode=0)
        self._hand_over()
        worker_state.should_stop = 0
        loop = get_event_loop()
        if loop is not None:
            # It would notice only when its poll is over, up to a second later.
            loop.call_soon(go_round)
        self._thread.join(STOP_TIMEOUT_S)
        worker_state.should_stop = None
