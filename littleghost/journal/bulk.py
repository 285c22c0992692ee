"""Creates many runs with few round trips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.exceptions import NoScriptError, RedisError

from littleghost.engine.ports import ReadyTask
from littleghost.errors import DuplicateRunError
from littleghost.journal.plan import Plan
from littleghost.journal.scripts import guarded, translate
from littleghost.journal.store import RedisJournal

# Runs in one round trip: Redis serves others between two scripts, and a reply stays small.
CHUNK = 100


def create_many(journal: RedisJournal, runs: Sequence[tuple[str, Plan]]) -> None:
    """Create runs in order; one whose id is taken is left as it is.

    Raises:
        JournalUnavailableError: Redis did not take them all; the first ones may exist.
        JournalError: Redis refused one.

    Atomic: each run by itself. Idempotent: yes, for the same plans. Cost: one round trip for each
    hundred.
    """
    for start in range(0, len(runs), CHUNK):
        chunk = runs[start : start + CHUNK]
        answers = _send(journal, chunk)
        if any(isinstance(answer, NoScriptError) for answer in answers):
            # Redis was restarted. What it did take, it answers again by its nonce.
            journal.scripts.load()
            answers = _send(journal, chunk)
        ready: list[ReadyTask] = []
        failed: RedisError | None = None
        for (run_id, _), answer in zip(chunk, answers, strict=True):
            if isinstance(answer, RedisError):
                failed = failed or answer
                continue
            try:
                ready += journal.created(run_id, answer)
            except DuplicateRunError:
                continue
        # Also when one failed: the others of its chunk exist.
        journal.publish(ready)
        if failed is not None:
            raise translate(failed) from failed


def _send(journal: RedisJournal, chunk: Sequence[tuple[str, Plan]]) -> list[Any]:
    pipeline = journal.client.pipeline(transaction=False)
    for run_id, plan in chunk:
        key, prefix = journal.place(run_id)
        journal.scripts.queue(pipeline, "create", key, prefix, run_id, *plan.arguments())
    return guarded(lambda: pipeline.execute(raise_on_error=False))
