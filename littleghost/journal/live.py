"""Appends live text to event streams: many streams, one thread, one round trip for all of them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from littleghost.engine.commands import Emit
from littleghost.engine.ports import Lease
from littleghost.errors import ControlError, LittleGhostError
from littleghost.journal.control import stop_error
from littleghost.journal.plan import live_event
from littleghost.journal.scripts import guarded
from littleghost.journal.store import RedisJournal
from littleghost.providers.base import CallControl

logger = logging.getLogger("littleghost.journal")
# Seconds that pieces of text are collected for; a reader sees text this much later at most.
INTERVAL_S = 0.04
# The first text of an attempt waits only this long: an answer that is complete by then is appended
# by its commit, without a round trip of its own.
FIRST_S = 0.003
# Between tries while Redis does not answer.
AGAIN_S = 0.25
_JOINED = {"text_delta": "text", "reasoning_delta": "text", "tool_call_delta": "arguments"}


class Writer:
    """Collects the live events of one attempt."""

    def __init__(self, owner: LiveEvents, lease: Lease, control: CallControl) -> None:
        self.lease = lease
        self.control = control
        self._owner = owner
        self._lock = threading.Lock()
        self._events: list[tuple[str, dict[str, Any]]] = []
        self._is_open = True
        self._has_flushed = False
        # The append whose answer is awaited: its name, and how many of the first events it has.
        self._doubt, self._doubtful = "", 0

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add an event; adjacent pieces of one text become one event."""
        with self._lock:
            joined = _JOINED.get(kind)
            if joined and len(self._events) > self._doubtful:
                last_kind, last = self._events[-1]
                if last_kind == kind and last.get("index") == data.get("index"):
                    last[joined] += data[joined]
                    return
            self._events.append((kind, dict(data)))
        self._owner.touch(self, at_once=not self._has_flushed and kind == "text_delta")

    def pending(self) -> tuple[str, list[str]]:
        """Give what is to be appended now, and the append's name; to be called under `hold`.

        An append whose answer never came is made again as it was, under its name: Redis may have
        done it.
        """
        if not self._doubt:
            self._doubt, self._doubtful = os.urandom(6).hex(), len(self._events)
        told = self._events[: self._doubtful]
        return self._doubt, [live_event(kind, self.lease.participant, data) for kind, data in told]

    def appended(self) -> bool:
        """Forget what was pending, and say whether more has come; to be called under `hold`."""
        del self._events[: self._doubtful]
        self._doubt, self._doubtful = "", 0
        self._has_flushed = True
        return bool(self._events)

    def rest(self) -> list[Emit]:
        """Close, and give what was not appended; waits for an append that is under way."""
        with self._lock:
            self._is_open = False
            events, self._events = self._events, []
        self._owner.drop(self)
        return [
            Emit(kind, data, live=True, doubt=self._doubt if number < self._doubtful else "")
            for number, (kind, data) in enumerate(events)
        ]

    def hold(self) -> bool:
        """Keep `rest` waiting while an append is under way; False when it is closed."""
        self._lock.acquire()
        if self._is_open and self._events:
            return True
        self._lock.release()
        return False

    def let_go(self) -> None:
        """End `hold`."""
        self._lock.release()


class LiveEvents:
    """Appends what all writers of this process collected, every few hundredths of a second."""

    def __init__(self, journal: RedisJournal, stale: Callable[[], ControlError]) -> None:
        """Prepare; the thread starts with the first writer.

        Args:
            stale: Makes the error that cuts an attempt which is no longer current.
        """
        self._journal = journal
        self._stale = stale
        self._lock = threading.Lock()
        self._dirty: set[Writer] = set()
        self._wake = threading.Event()
        self._urgent = threading.Event()
        self._pid = 0

    def open(self, lease: Lease, control: CallControl) -> Writer:
        """Begin to collect for an attempt."""
        return Writer(self, lease, control)

    def touch(self, writer: Writer, *, at_once: bool) -> None:
        """Have a writer's events appended soon; the first text of an attempt at once."""
        with self._lock:
            self._dirty.add(writer)
            if self._pid != os.getpid():
                # A thread does not survive a fork: each process has its own.
                self._pid = os.getpid()
                threading.Thread(target=self._loop, daemon=True, name="littleghost-live").start()
        self._wake.set()
        if at_once:
            self._urgent.set()

    def drop(self, writer: Writer) -> None:
        """Forget a writer."""
        with self._lock:
            self._dirty.discard(writer)

    def _loop(self) -> None:
        pid = os.getpid()
        is_well = True
        while pid == os.getpid():
            self._wake.wait()
            if self._urgent.wait(INTERVAL_S):
                time.sleep(FIRST_S)
            self._urgent.clear()
            self._wake.clear()
            started = time.monotonic()
            try:
                self.flush()
                is_well = True
            except LittleGhostError as error:
                # Once per outage. A model may say nothing more for long, so it is tried again.
                if is_well:
                    logger.warning("live text not appended yet: %s", error)
                is_well = False
                time.sleep(AGAIN_S)
                self._wake.set()
            except Exception:
                logger.exception("live text not appended")
            # Appending must not take the whole of a busy process.
            spent = time.monotonic() - started
            if spent > INTERVAL_S:
                time.sleep(min(spent, 0.25))

    def flush(self) -> None:
        """Append what there is, in one round trip."""
        with self._lock:
            writers, self._dirty = self._dirty, set()
        held = [writer for writer in writers if writer.hold()]
        if not held:
            return
        try:
            pipeline = self._journal.client.pipeline(transaction=False)
            for writer in held:
                self._journal.queue_emit(pipeline, writer.lease, *writer.pending())
            answers = guarded(lambda: pipeline.execute(raise_on_error=False))
            more = {
                writer
                for writer, answer in zip(held, answers, strict=True)
                if not isinstance(answer, Exception) and writer.appended()
            }
        except LittleGhostError:
            with self._lock:
                self._dirty.update(held)
            raise
        finally:
            for writer in held:
                writer.let_go()
        if any(isinstance(answer, Exception) for answer in answers):
            # Most likely a restarted Redis that lost the script; the text stays pending.
            self._journal.scripts.load()
            more.update(held)
        if more:
            with self._lock:
                self._dirty.update(more)
            self._wake.set()
        for writer, answer in zip(held, answers, strict=True):
            if answer == 0:
                writer.control.cut(self._stale())
            elif isinstance(answer, str):
                # The run is being stopped: the attempt lets go, and says what it had said.
                writer.control.cut(stop_error(answer))
