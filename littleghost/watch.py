"""Waits for and reads a run's events, blocking or not; looks for workers when nothing happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

from littleghost.errors import JournalUnavailableError, NoWorkerError, WaitTimeoutError
from littleghost.events import TERMINAL_TYPES, StreamEvent
from littleghost.journal.connection import (
    BLOCK_MS,
    REDIS_ERRORS,
    AsyncClient,
    connect_async,
    read_streams_async,
)
from littleghost.journal.scripts import translate
from littleghost.journal.tail import PAGE, Stored, Tail, read_page
from littleghost.wiring import Runtime

# A caller that needs a worker looks for one this often while nothing happens.
LOOK_S = 1.0
# How long a reader goes on trying while Redis is away.
OUTAGE_S = 60.0
RETRY_S = 0.2


class Outage:
    """Bears with a Redis that is away, but not for ever."""

    def __init__(self) -> None:
        self._since: float | None = None

    def met(self, error: Exception) -> None:
        """Note that Redis did not answer.

        Raises:
            Exception: The error itself, when this has gone on for too long.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > OUTAGE_S:
            raise error

    def over(self) -> None:
        """Note that Redis answered."""
        self._since = None


class Watch:
    """Reads one run's events in the calling thread."""

    def __init__(
        self, work: Runtime, run_id: str, *, need_worker: bool = False, whole: bool = False
    ) -> None:
        """Watch a run.

        Args:
            whole: Whether to see agents' events even if the caller of the run wants none.
        """
        self._work = work
        self._run_id = run_id
        self._need_worker = need_worker
        self._tail: Tail = work.tail(run_id, whole=whole)

    def until_over(self, timeout_s: float | None) -> None:
        """Return when the run has ended.

        Raises:
            WaitTimeoutError: The time is up.
            NoWorkerError: Nobody serves the run's next task.
        """
        record = self._work.records.find(self._run_id)
        if record is None or record.is_over:
            return
        for _ in self.pages(record.events, timeout_s, only_end=True):
            pass

    def events(self, after: int) -> Iterator[StreamEvent]:
        """Yield the events behind a position, the terminal one last."""
        if after and self.is_over(after):
            return
        for page in self.pages(after, None):
            yield from page

    def pages(
        self, after: int, timeout_s: float | None, *, only_end: bool = False
    ) -> Iterator[list[StreamEvent]]:
        """Yield pages until one holds the terminal event, or the run is gone.

        Args:
            only_end: Yield empty pages, for one who only wants to know when it has ended.

        Raises:
            WaitTimeoutError: The time is up.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        quiet_since, outage = time.monotonic(), Outage()
        while True:
            page: list[Stored] = []
            filled: list[StreamEvent] = []
            try:
                page = self._tail.read(after, self._wait_ms(deadline))
                filled = [] if only_end else self.fill(page)
                if not page and self.is_idle_end(after, quiet_since):
                    return
                outage.over()
            except JournalUnavailableError as error:
                # The page is read again, so that none is lost when it cannot be filled.
                page = []
                outage.met(error)
                time.sleep(RETRY_S)
            if page:
                after, quiet_since = page[-1][0], time.monotonic()
                yield filled
                if _has_end(page):
                    return
            elif deadline is not None and time.monotonic() >= deadline:
                raise _timeout(self._run_id, timeout_s)

    def _wait_ms(self, deadline: float | None) -> int:
        wait_ms = LOOK_S * 1000 if self._need_worker else BLOCK_MS
        if deadline is not None:
            wait_ms = min(wait_ms, max(1.0, (deadline - time.monotonic()) * 1000))
        return round(wait_ms)

    async def read_async(
        self, client: AsyncClient, after: int, deadline: float | None
    ) -> list[Stored]:
        """Read a page as `Watch` does, without blocking the event loop."""
        streams, wait_ms = self._tail.streams(after), self._wait_ms(deadline)
        try:
            return read_page(await read_streams_async(client, streams, PAGE, wait_ms))
        except REDIS_ERRORS as error:
            raise translate(error) from error

    def fill(self, page: list[Stored]) -> list[StreamEvent]:
        """Turn stored events into what a watcher sees."""
        return self._tail.fill(page)

    def is_over(self, after: int) -> bool:
        """Whether a reader who has seen this much has seen the end; False while Redis is away."""
        try:
            return self.is_idle_end(after, time.monotonic())
        except JournalUnavailableError:
            return False

    def is_idle_end(self, after: int, quiet_since: float) -> bool:
        """Whether nothing can come any more: the run has expired, or its end was read already.

        Raises:
            NoWorkerError: A worker is needed, nothing has happened for a while, there is none.
        """
        quiet_s = time.monotonic() - quiet_since
        if self._need_worker and quiet_s >= self._work.settings.no_worker_after_s:
            require_worker(self._work, self._run_id)
        record = self._work.records.find(self._run_id)
        return record is None or (record.is_over and record.events <= after)


def require_worker(work: Runtime, run_id: str) -> None:
    """Make sure that somebody serves what a run is waiting for.

    Raises:
        NoWorkerError: A ready task of the run is in a queue that no live worker serves.
    """
    record = work.records.find(run_id)
    if record is None or record.is_over:
        return
    queues = {task["q"] for task in record.tasks.values() if task.get("s") == "ready"}
    for queue in work.workers.unserved(queues):
        raise NoWorkerError(
            f"run {run_id!r} waits in queue {queue!r}, which no live worker serves; start one "
            f"that does (littleghost worker all -A your.module, or celery … worker -Q {queue}) and "
            f"the run goes on, or cancel it "
            f"(littleghost cancel {run_id})",
            run_id=run_id,
            queue=queue,
        )


def _timeout(run_id: str, timeout_s: float | None) -> WaitTimeoutError:
    return WaitTimeoutError(f"run {run_id!r} has not ended within {timeout_s} s; it goes on")


def _has_end(page: list[Stored]) -> bool:
    return any(event["type"] in TERMINAL_TYPES for _, event in page)


async def watch_async(
    work: Runtime,
    run_id: str,
    after: int,
    *,
    need_worker: bool = False,
    timeout_s: float | None = None,
    only_end: bool = False,
) -> AsyncIterator[StreamEvent]:
    """Yield a run's events without blocking the event loop.

    The waiting is native; the short look-ups run in threads. The connection belongs to this watch
    and to the running loop, and closes with it.

    Args:
        only_end: Yield nothing, only return at the end.

    Raises:
        WaitTimeoutError, NoWorkerError: As for `Watch`.
    """
    # Its look-ups are those of a watch in a thread; only the waiting is different.
    watch = Watch(work, run_id, need_worker=need_worker)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    quiet_since, outage = time.monotonic(), Outage()
    if after and not only_end and await asyncio.to_thread(watch.is_over, after):
        return
    async with connect_async(work.settings.redis_url or "") as client:
        while True:
            page: list[Stored] = []
            filled: list[StreamEvent] = []
            try:
                page = await watch.read_async(client, after, deadline)
                if page and not only_end:
                    filled = await asyncio.to_thread(watch.fill, page)
                elif not page and await asyncio.to_thread(watch.is_idle_end, after, quiet_since):
                    return
                outage.over()
            except JournalUnavailableError as error:
                page = []
                outage.met(error)
                await asyncio.sleep(RETRY_S)
            if page:
                after, quiet_since = page[-1][0], time.monotonic()
                for event in filled:
                    yield event
                if _has_end(page):
                    return
            elif deadline is not None and time.monotonic() >= deadline:
                raise _timeout(run_id, timeout_s)
