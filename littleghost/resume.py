"""Going on from a run in another one: what a run's handle offers for it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, Self

from littleghost.fork import fork_run
from littleghost.invocation import Invocation
from littleghost.journal.record import RunRecord
from littleghost.retry import retry_run


class Resumable:
    """What can be retried and forked; the base of `Run`."""

    id: str

    def __init__(self, run_id: str, invocation: Invocation | None = None) -> None:
        self.id = run_id
        self._invocation = invocation

    @property
    def record(self) -> RunRecord:
        """The facts as last read, in the journal's terms."""
        raise NotImplementedError

    @property
    def origin(self) -> Self | None:
        """The run that this one retries or was forked from, or None."""
        found = self.retry_of or self.forked_from
        return type(self)(found) if found else None

    @property
    def retry_of(self) -> str | None:
        """The id of the run that this one goes on from, or None."""
        return self.record.invocation.get("retry_of")

    @property
    def forked_from(self) -> str | None:
        """The id of the run whose history this one began with, or None."""
        return self.record.invocation.get("forked_from")

    def retry(
        self, *, run_id: str | None = None, deadline: datetime | timedelta | str | None = None
    ) -> Self:
        """Go on, in a new run, where this failed, cancelled or partial run ended.

        What is recorded is not done again: answers, tool results, steps that ended well. What
        failed, or was cut, is. A tool call that was cut half-way is repeated if its tool is
        idempotent, with the same idempotency key; otherwise the model is told that its outcome is
        unknown. A run of a session becomes the session's next run.

        Args:
            run_id: An id for the new run, which makes the call safe to repeat.
            deadline: When the new run must have ended: a time, or a duration from now. Without
                one, it is that of this run if it is still ahead, else none.

        Returns:
            The new run. This one stays as it is, and is the new one's `origin`.

        Raises:
            NotResumableError: This run ended well, still goes on, or has left nothing.
            SessionChangedError: Its session went on without it; fork it instead.
            SessionBusyError: Another run holds the session, or waits for it.
            DuplicateRunError: The id is taken.

        Atomic: one script. The new run's `usage` counts what it spends itself.
        """
        return type(self)(retry_run(self.id, new_id=run_id, deadline=deadline))

    async def retry_async(
        self, *, run_id: str | None = None, deadline: datetime | timedelta | str | None = None
    ) -> Self:
        """Go on from this run without blocking the event loop; see `retry`."""
        return await asyncio.to_thread(self.retry, run_id=run_id, deadline=deadline)

    def fork(self, *, at: str | int | None = None, message: Any = None, **fields: Any) -> Self:
        """Start a new run with this one's history up to a point.

        Args:
            at: The id of an event of this run, or of a task of its agent such as "0-t3"; the end
                so far unless given. A composite has no other point than that.
            message: What the new run is asked on top of that history. Without one, it takes the
                turn at that point again.
            **fields: `run_id`, `session_id` (of a session that has not begun; a fork has none
                otherwise) and `deadline_at` or `deadline` of the new run.

        Returns:
            The new run. This one stays as it is, whether it has ended or not; it is the new one's
            `origin`. Context, settings, metadata and actor are the same; limits begin anew.

        Raises:
            InvocationError: There is no such point, or nothing to do there without a message.
            DuplicateRunError: The id is taken.

        Atomic: one script creates the run.
        """
        return type(self)(*fork_run(self.id, at=at, message=message, fields=fields))

    async def fork_async(
        self, *, at: str | int | None = None, message: Any = None, **fields: Any
    ) -> Self:
        """Start a fork without blocking the event loop; see `fork`."""
        return await asyncio.to_thread(self.fork, at=at, message=message, **fields)
