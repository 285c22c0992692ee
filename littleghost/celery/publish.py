"""Sends task messages through kombu, for a broker that is not the journal's Redis.

Best effort and bounded: the journal is the truth, and the keeper publishes what was not sent.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any, cast

from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.exceptions import KombuError
from kombu.messaging import Producer

from littleghost.celery.envelope import arguments, headers
from littleghost.engine.ports import ReadyTask

logger = logging.getLogger("littleghost.celery")
# Seconds without another try after the broker failed, so that an outage costs callers nothing.
PAUSE_S = 2.0
TIMEOUT_S = 1


class BrokerPublisher:
    """One process's connection to the broker. Thread-safe; made anew after a fork."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._declared: set[str] = set()
        self._pid = 0
        self._quiet_until = 0.0

    def publish(self, ready: Sequence[ReadyTask]) -> None:
        """Send messages over one channel; what fails is left to the keeper."""
        with self._lock:
            if time.monotonic() < self._quiet_until:
                return
            try:
                producer = Producer(self._channel(), auto_declare=False)
                for task in ready:
                    self._declare(task.queue)
                    producer.publish(
                        arguments(task.run_id, task.task_id, task.at_ms),
                        exchange="",
                        routing_key=task.queue,
                        headers=headers(task.kind, task.run_id, task.task_id),
                        serializer="json",
                        delivery_mode=2,
                        retry=False,
                    )
            except (OSError, KombuError, *self._errors()) as error:
                self._fail(error)

    def close(self) -> None:
        """Close the connection; it opens again when needed."""
        with self._lock:
            connection, self._connection = self._connection, None
            self._declared.clear()
            if connection is not None:
                connection.release()

    def lengths(self, queues: Collection[str]) -> dict[str, int]:
        """Give the number of messages waiting in some queues; 0 when the broker cannot say."""
        with self._lock:
            try:
                return {queue: self._length(queue) for queue in queues}
            except (OSError, KombuError, *self._errors()) as error:
                self._fail(error)
                # "Not empty" would leave lost messages lost; a second message does no harm.
                return dict.fromkeys(queues, 0)

    def _errors(self) -> tuple[type[Exception], ...]:
        if self._connection is None:
            return (RuntimeError,)
        return (
            *self._connection.connection_errors,
            *self._connection.channel_errors,
            RuntimeError,
        )

    def _fail(self, error: Exception) -> None:
        logger.warning("broker: %s; the keeper will publish", error)
        self._quiet_until = time.monotonic() + PAUSE_S
        connection, self._connection = self._connection, None
        self._declared.clear()
        if connection is not None:
            try:
                cast("Any", connection).collect(socket_timeout=TIMEOUT_S)
            except (OSError, KombuError):
                logger.debug("broken broker connection did not close", exc_info=True)

    def _channel(self) -> Any:
        if self._connection is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._declared.clear()
            self._connection = Connection(
                self._url,
                connect_timeout=TIMEOUT_S,
                transport_options={
                    "socket_timeout": TIMEOUT_S,
                    "socket_connect_timeout": TIMEOUT_S,
                    "max_retries": 1,
                },
            )
            self._connection.ensure_connection(
                max_retries=1, interval_start=0, interval_step=0, interval_max=0
            )
        return self._connection.default_channel

    def _queue(self, queue: str) -> Queue:
        return Queue(queue, Exchange(queue), routing_key=queue)(self._channel())

    def _declare(self, queue: str) -> None:
        """Declare a queue once, as Celery's workers do, so that a message has a place to wait."""
        if queue not in self._declared:
            self._queue(queue).declare()
            self._declared.add(queue)

    def _length(self, queue: str) -> int:
        self._declare(queue)
        try:
            return int(self._queue(queue).queue_declare(passive=True).message_count)
        except self._channel().connection.client.channel_errors:
            # kombu's Redis transport knows no empty queue.
            return 0
