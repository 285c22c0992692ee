"""Tells running tasks to stop: a message on a channel, and a note beside it as the second net."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, cast

from littleghost.engine.ports import Lease
from littleghost.errors import (
    CancelledError,
    ControlError,
    DeadlineExceededError,
    JournalError,
    LittleGhostError,
    StaleAttemptError,
)
from littleghost.ids import partition_of
from littleghost.journal import keys
from littleghost.journal.connection import REDIS_ERRORS, Client
from littleghost.providers.base import CallControl

logger = logging.getLogger("littleghost.control")
# Seconds between looks at the notes, in case a message was lost.
NOTES_S = 1.0
_Key = tuple[str, str, int]


class RunningTasks:
    """The tasks this process works on, each with what cuts it. Thread-safe."""

    def __init__(
        self,
        client: Callable[[], Client],
        worker_id: Callable[[], str],
        partitions: int,
        on_drain: Callable[[], None],
        give_back: Callable[[Lease], None],
    ) -> None:
        """Prepare; the listening thread starts with the first task.

        Args:
            client: Makes a client whose reads may block for seconds.
            worker_id: The worker this process belongs to.
            partitions: How many partitions the journal has.
            on_drain: Called when the worker is to hand its tasks over.
            give_back: Gives back a task that nobody works on any more.
        """
        self._client = client
        self._on_drain = on_drain
        self._give_back = give_back
        self._abandoned: list[Lease] = []
        self._worker_id = worker_id
        self._partitions = partitions
        self._lock = threading.Lock()
        self._tasks: dict[_Key, tuple[Lease, CallControl]] = {}
        self._pid = 0
        self._closed = threading.Event()
        self._is_well = True

    def close(self) -> None:
        """Stop listening, for a runtime that is no longer used."""
        self._closed.set()

    def enter(self, lease: Lease, control: CallControl) -> None:
        """Make a task known."""
        with self._lock:
            self._tasks[(lease.run_id, lease.task_id, lease.attempt)] = (lease, control)
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(
                    target=self._listen, daemon=True, name="littleghost-control"
                ).start()

    def leave(self, lease: Lease) -> None:
        """Forget a task."""
        with self._lock:
            self._tasks.pop((lease.run_id, lease.task_id, lease.attempt), None)

    def abandon(self, lease: Lease) -> None:
        """Give a task back as soon as the journal can be reached."""
        with self._lock:
            self._abandoned.append(lease)

    def count(self) -> int:
        """How many tasks this process works on."""
        return len(self._tasks)

    def each(self) -> list[tuple[Lease, CallControl]]:
        """Give the tasks this process works on."""
        with self._lock:
            return list(self._tasks.values())

    def cut(self, run_id: str, task_id: str, attempt: int, why: str) -> None:
        """Stop one task, if this process works on that attempt."""
        with self._lock:
            found = self._tasks.get((run_id, task_id, attempt))
        if found is not None:
            found[1].cut(stop_error(why))

    def _listen(self) -> None:
        pid = os.getpid()
        while pid == os.getpid() and not self._closed.is_set():
            try:
                self._follow(pid)
            except (*REDIS_ERRORS, JournalError, OSError) as error:
                # Once per outage: it is tried again twice a second.
                if self._is_well and not self._closed.wait(0.5):
                    logger.warning("control channel: %s; connecting again", error)
                self._is_well = False
                self._closed.wait(0.5)

    def _follow(self, pid: int) -> None:
        client = self._client()
        channel = client.pubsub(ignore_subscribe_messages=True)
        try:
            channel.subscribe(keys.control(self._worker_id()))
            self._is_well = True
            checked = time.monotonic()
            while pid == os.getpid() and not self._closed.is_set():
                message = channel.get_message(timeout=NOTES_S)
                if message and message.get("type") == "message":
                    self._hear(str(message["data"]))
                if time.monotonic() - checked >= NOTES_S:
                    checked = time.monotonic()
                    self._read_notes(client)
                    self._give_back_abandoned()
        finally:
            channel.close()
            client.close()

    def _give_back_abandoned(self) -> None:
        with self._lock:
            abandoned, self._abandoned = self._abandoned, []
        for index, lease in enumerate(abandoned):
            try:
                self._give_back(lease)
            except LittleGhostError as error:
                logger.warning("task %s not given back yet: %s", lease.task_id, error)
                with self._lock:
                    self._abandoned.extend(abandoned[index:])
                return

    def _hear(self, text: str) -> None:
        try:
            note = json.loads(text)
            if note.get("drain") is True:
                self._on_drain()
                return
            self.cut(note["run"], note["task"], int(note["attempt"]), note["why"])
        except (ValueError, KeyError, TypeError, AttributeError):
            logger.warning("control channel: ignored a message that is not ours: %.200r", text)

    def _read_notes(self, client: Client) -> None:
        """Read the notes of the partitions that this process has tasks in."""
        with self._lock:
            names = {partition_of(key[0], self._partitions) for key in self._tasks}
        if not names:
            return
        worker = self._worker_id()
        pipeline = client.pipeline(transaction=False)
        for partition in names:
            pipeline.hgetall(f"{keys.prefix(partition)}control:{worker}")
        for notes in cast("list[dict[str, Any]]", pipeline.execute()):
            for name, why in notes.items():
                run_id, task_id, attempt = name.rsplit("|", 2)
                self.cut(run_id, task_id, int(attempt), str(why))


def stop_error(why: str) -> ControlError:
    """Make the error that cuts a task of a run which is being stopped, or of one that goes on."""
    if why == "stale":
        return StaleAttemptError("the participant was stopped")
    if why == "deadline":
        return DeadlineExceededError("the run's deadline has passed")
    return CancelledError("the run was cancelled")
