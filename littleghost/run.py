"""A handle on one run: look at it, wait for it, watch it, cancel it, from any process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from littleghost.engine.slot import refuse_blocking
from littleghost.errors import CancelledError, InvocationError, RunNotFoundError
from littleghost.events import StreamEvent
from littleghost.failure import Failure
from littleghost.ids import check_run_id
from littleghost.invocation import Invocation
from littleghost.journal.record import RunRecord
from littleghost.messages import Message
from littleghost.participants import Participant, participants_of
from littleghost.reach import Reachable
from littleghost.result import RunResult
from littleghost.resume import Resumable
from littleghost.start import create_run, create_runs
from littleghost.usage import Usage
from littleghost.watch import Watch, watch_async

if TYPE_CHECKING:
    from littleghost.assembly import Assembly


class Run(Reachable, Resumable):
    """One top-level execution of an assembly, durable from the moment it exists.

    A handle holds what it last read; `refresh`, `wait` and the like read anew. Facts of a run that
    has ended do not change any more.
    """

    def __init__(self, run_id: str, invocation: Invocation | None = None) -> None:
        """Make a handle without reading anything; use `Run.get` for a run of another process."""
        self.id = run_id
        self._invocation = invocation
        self._record: RunRecord | None = None

    @classmethod
    def get(cls, run_id: str) -> Run:
        """Find a run by its id.

        Args:
            run_id: Any text; one that no run can have is simply not found.

        Raises:
            RunNotFoundError: There is none, or it has expired.
        """
        try:
            check_run_id(run_id)
        except InvocationError as error:
            raise RunNotFoundError(f"no run {run_id!r:.80}: no id looks like this") from error
        return cls(run_id).refresh()

    def __repr__(self) -> str:
        status = self._record.status if self._record else "not read yet"
        return f"<Run {self.id} {status}>"

    @property
    def record(self) -> RunRecord:
        """The facts as last read, in the journal's terms."""
        if self._record is None:
            self.refresh()
        assert self._record is not None
        return self._record

    def refresh(self) -> Run:
        """Read the run's facts again. Returns the run itself.

        Raises:
            RunNotFoundError: It does not exist, or has expired.
        """
        record = self._work.records.find(self.id)
        if record is None:
            raise RunNotFoundError(
                f"no run {self.id!r}: the id is wrong, or the run ended longer ago than it is kept"
            )
        self._record = record
        return self

    @property
    def invocation(self) -> Invocation:
        """What the caller asked for."""
        if self._invocation is None:
            self._invocation = Invocation.from_json(self.record.invocation)
        return self._invocation

    @property
    def assembly(self) -> str:
        """The registered name of the assembly."""
        return self.record.assembly

    @property
    def status(self) -> str:
        """queued, running, waiting, stopping, or the outcome; read anew until it has ended.

        A run is waiting when only a person's answer or a signal can move it; see `pending`.
        """
        if not self.record.is_over:
            self.refresh()
        return self.record.status

    @property
    def outcome(self) -> str | None:
        """completed, failed, partial or cancelled; None while the run goes on."""
        status = self.status
        return status if self.record.is_over else None

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended."""
        return self.outcome is not None

    @property
    def is_completed(self) -> bool:
        """Whether the run ended well."""
        return self.outcome == "completed"

    @property
    def is_failed(self) -> bool:
        """Whether the run ended with an error."""
        return self.outcome == "failed"

    @property
    def is_partial(self) -> bool:
        """Whether the run's deadline came before its end."""
        return self.outcome == "partial"

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return self.outcome == "cancelled"

    @property
    def response(self) -> str:
        """The answer's text; for a partial run what it had said so far; else empty."""
        return self.record.text if self.outcome in ("completed", "partial") else ""

    @property
    def usage(self) -> Usage:
        """Tokens used so far by all participants."""
        return self.record.usage

    @property
    def participants(self) -> list[Participant]:
        """Who takes part in the run, the root first, each with its own tokens; read anew."""
        self.refresh()
        return participants_of(self.record, self._work.workers.now_ms())

    @property
    def error(self) -> Failure | None:
        """Why the run did not complete, or None."""
        _ = self.outcome
        return Failure.from_json(self.record.error) if self.record.error else None

    @property
    def created_at(self) -> datetime:
        """When the run was created, in the journal's time."""
        return datetime.fromtimestamp(self.record.created_ms / 1000, UTC)

    @property
    def duration_s(self) -> float | None:
        """Seconds from creation to the end; None while the run goes on."""
        if not self.is_finished:
            return None
        return (self.record.ended_ms - self.record.created_ms) / 1000

    @property
    def result(self) -> RunResult | None:
        """The result of a completed run, else None."""
        if not self.is_completed or self.record.result is None:
            return None
        record, result = self.record, self.record.result
        participant = str(result.get("participant", "0"))
        records = self._work.records
        return RunResult(
            message=Message.from_json(
                records.message(record, int(result["message"]), participant) or self.response
            ),
            stop_reason=str(result.get("stop_reason", "")),
            value=result.get("value"),
            usage=self.usage,
            load_messages=lambda: [
                Message.from_json(item)
                for item in records.messages(record, participant)
                # A composite's list also holds what its participants gave back.
                if "role" in item
            ],
            load_steps=lambda: records.steps(record),
            load_state=lambda: {
                key[2:]: value
                for key, value in records.state(record, participant).items()
                if key.startswith("c/")
            },
        )

    def cancel(self, reason: str = "") -> Run:
        """Stop the run: nothing new starts, what runs is cut. Returns the run itself.

        Args:
            reason: For the run's error; the application's own words.

        Idempotent: yes; a run that has ended stays as it is. Does not wait; `wait` does.
        """
        error = CancelledError(reason or "the run was cancelled")
        status = self._work.journal.stop_run(self.id, "cancel", Failure.of(error).to_json())
        if not status:
            raise RunNotFoundError(f"no run {self.id!r} to cancel")
        return self.refresh()

    def wait(self, timeout_s: float | None = None, *, need_worker: bool = False) -> Run:
        """Wait until the run has ended. Returns the run itself.

        Args:
            timeout_s: Seconds to wait at most; None waits as long as it takes.
            need_worker: Give up when no live worker serves the run's next task.

        Raises:
            WaitTimeoutError: The time is up; the run goes on.
            NoWorkerError: Nobody serves the run's queue; the run stays in the journal.
            BlockingCallError: Called inside a worker task, whose slot it would hold.
        """
        refuse_blocking("Run.wait()")
        Watch(self._work, self.id, need_worker=need_worker).until_over(timeout_s)
        return self.refresh()

    async def wait_async(self, timeout_s: float | None = None, *, need_worker: bool = False) -> Run:
        """Wait without blocking the event loop; see `wait`."""
        refuse_blocking("Run.wait_async()")
        async for _ in watch_async(
            self._work, self.id, 0, need_worker=need_worker, timeout_s=timeout_s, only_end=True
        ):
            pass
        return self.refresh()

    def events(self, after: str | int = 0, *, need_worker: bool = False) -> Iterator[StreamEvent]:
        """Watch the run from any position to its terminal event.

        Args:
            after: The id of the last event already seen; 0 begins at the beginning.

        Yields:
            Events in order. Any number of readers may watch; none slows the run.
        """
        refuse_blocking("Run.events()")
        return Watch(self._work, self.id, need_worker=need_worker).events(_position(after))

    def events_async(
        self, after: str | int = 0, *, need_worker: bool = False
    ) -> AsyncIterator[StreamEvent]:
        """Watch the run with `async for`; see `events`."""
        return watch_async(self._work, self.id, _position(after), need_worker=need_worker)


def start_run(cls: type[Assembly], message: object, lane: str, fields: Mapping[str, Any]) -> Run:
    """Check a call and create its run; see `Assembly.enqueue`."""
    return Run(*create_run(cls, message, lane, fields))


def start_runs(
    cls: type[Assembly],
    messages: Iterable[object],
    run_ids: Iterable[str] | None,
    lane: str,
    fields: Mapping[str, Any],
) -> list[Run]:
    """Check many calls and create their runs; see `Assembly.enqueue_many`."""
    return [Run(*made) for made in create_runs(cls, messages, run_ids, lane, fields)]


async def start_run_async(
    cls: type[Assembly], message: object, lane: str, fields: Mapping[str, Any]
) -> Run:
    """Do the same in a thread, since a call waits for Redis and the first may start it."""
    return await asyncio.to_thread(start_run, cls, message, lane, fields)


def _position(after: str | int) -> int:
    try:
        position = int(after)
    except ValueError:
        position = -1
    if position < 0:
        raise InvocationError(
            f"after is {after!r:.80}; use the id of an event, or 0 for the beginning", field="after"
        )
    return position


class RunStream:
    """The events of a run that was just started; iterate it once or many times.

    Attributes:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def __iter__(self) -> Iterator[StreamEvent]:
        return self.run.events(need_worker=True)


class AsyncRunStream:
    """The events of a run that starts when the iteration does.

    Attributes:
        run: The run; None before the iteration.
    """

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Run]]) -> None:
        self._start = start
        self.run: Run | None = None

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        if self.run is None:
            self.run = await self._start()
        async for event in self.run.events_async(need_worker=True):
            yield event
