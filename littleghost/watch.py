"""Waits for and reads a run's events, blocking or not; looks for workers when nothing happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import redis
import redis.asyncio
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from littleghost.errors import JournalUnavailableError, NoWorkerError, WaitTimeoutError
from littleghost.events import TERMINAL_TYPES, StreamEvent
from littleghost.journal.tail import PAGE, Stored, Tail, read_page
from littleghost.wiring import BLOCK_MS, Runtime

# A caller that needs a worker looks for one this often while nothing happens.
LOOK_S = 1.0
# How long a reader goes on trying while Redis is away.
OUTAGE_S = 60.0


class Watch:
    """Reads one run's events in the calling thread."""

    def __init__(self, work: Runtime, run_id: str, *, need_worker: bool = False) -> None:
        self._work = work
        self._run_id = run_id
        self._need_worker = need_worker
        self._tail: Tail = work.tail(run_id)

    def until_over(self, timeout_s: float | None) -> None:
        """Return when the run has ended.

        Raises:
            WaitTimeoutError: The time is up.
            NoWorkerError: Nobody serves the run's next task.
        """
        record = self._work.records.find(self._run_id)
        if record is None or record.is_over:
            return
        for _ in self._pages(record.events, timeout_s):
            pass

    def events(self, after: int) -> Iterator[StreamEvent]:
        """Yield the events behind a position, the terminal one last."""
        for page in self._pages(after, None):
            yield from self._tail.fill(page)

    def _pages(self, after: int, timeout_s: float | None) -> Iterator[list[Stored]]:
        """Yield pages until one holds the terminal event, or the run is gone."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        quiet_since, trouble_since = time.monotonic(), 0.0
        while True:
            wait_ms = self._wait_ms(deadline)
            try:
                page = self._tail.read(after, wait_ms)
                trouble_since = 0.0
            except JournalUnavailableError:
                trouble_since = trouble_since or time.monotonic()
                if time.monotonic() - trouble_since > OUTAGE_S:
                    raise
                time.sleep(0.2)
                page = []
            if page:
                after, quiet_since = page[-1][0], time.monotonic()
                yield page
                if any(event["type"] in TERMINAL_TYPES for _, event in page):
                    return
                continue
            if deadline is not None and time.monotonic() >= deadline:
                raise _timeout(self._run_id, timeout_s)
            if not trouble_since:
                self._look(time.monotonic() - quiet_since, after)
                if self._is_gone(after):
                    return

    def _wait_ms(self, deadline: float | None) -> int:
        wait_ms = LOOK_S * 1000 if self._need_worker else BLOCK_MS
        if deadline is not None:
            wait_ms = min(wait_ms, max(1.0, (deadline - time.monotonic()) * 1000))
        return round(wait_ms)

    def _is_gone(self, after: int) -> bool:
        """Whether nothing can come any more: the run has expired, or its end was read already."""
        record = self._work.records.find(self._run_id)
        return record is None or (record.is_over and record.events <= after)

    def _look(self, quiet_s: float, after: int) -> None:
        """Raise when a worker is needed, nothing has happened for a while, and there is none."""
        del after
        if self._need_worker and quiet_s >= self._work.settings.no_worker_after_s:
            require_worker(self._work, self._run_id)


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
    tail = work.tail(run_id)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    wait_ms = round(LOOK_S * 1000) if need_worker else BLOCK_MS
    quiet_since = time.monotonic()
    client = redis.asyncio.Redis.from_url(
        work.settings.redis_url or "",
        decode_responses=True,
        encoding_errors="replace",
        protocol=2,
        socket_timeout=BLOCK_MS / 1000 + 5,
        socket_connect_timeout=2.0,
    )
    async with client:
        while True:
            left_ms = None if deadline is None else (deadline - time.monotonic()) * 1000
            block = wait_ms if left_ms is None else round(max(1.0, min(wait_ms, left_ms)))
            try:
                rows = await client.xread(cast("Any", tail.streams(after)), count=PAGE, block=block)
            except (RedisConnectionError, RedisTimeoutError):
                await asyncio.sleep(0.2)
                rows = None
            page = read_page(rows)
            if page:
                after, quiet_since = page[-1][0], time.monotonic()
                if not only_end:
                    for event in await asyncio.to_thread(tail.fill, page):
                        yield event
                if any(event["type"] in TERMINAL_TYPES for _, event in page):
                    return
                continue
            if deadline is not None and time.monotonic() >= deadline:
                raise _timeout(run_id, timeout_s)
            record = await asyncio.to_thread(work.records.find, run_id)
            if record is None or (record.is_over and record.events <= after):
                return
            quiet_s = time.monotonic() - quiet_since
            if need_worker and quiet_s >= work.settings.no_worker_after_s:
                await asyncio.to_thread(require_worker, work, run_id)
