"""Reads what a run that did not end well has left, and begins the run that goes on from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from littleghost.errors import RunNotFoundError, SessionBusyError, SessionChangedError
from littleghost.journal.plan import Plan
from littleghost.journal.scripts import guarded
from littleghost.journal.store import RedisJournal, duplicate, ready_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """All of an ended run that another one needs to go on from it.

    Attributes:
        key: The key of its record.
        fields: Its record, as it is.
        results: Its results by task and participant: a record, or `#n` for a place in a list.
        tails: By participant, what was appended to its list after `f:` was noted.
    """

    key: str
    fields: Mapping[str, str]
    results: Mapping[str, str]
    tails: Mapping[str, Sequence[Any]]

    def headers(self, mark: str) -> dict[str, dict[str, Any]]:
        """Give the JSON fields of the record whose names begin with a mark, by the rest of it."""
        return {
            name[len(mark) :]: json.loads(value)
            for name, value in self.fields.items()
            if name.startswith(mark)
        }

    def notes(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Give where participants stood: the length of the list, and the decider's state."""
        return {name: read_note(text) for name, text in _notes(self.fields).items()}


def read_note(text: str) -> tuple[int, dict[str, Any]]:
    """Read a field `f:`."""
    length, _, state = text.partition(",")
    return int(length), json.loads(state)


def _notes(fields: Mapping[str, str]) -> dict[str, str]:
    return {name[2:]: value for name, value in fields.items() if name.startswith("f:")}


def read_remains(journal: RedisJournal, run_id: str) -> Remains | None:
    """Read what a run has left; None when there is no such run."""
    key, _ = journal.place(run_id)
    pipeline = journal.client.pipeline(transaction=False)
    pipeline.hgetall(key)
    pipeline.hgetall(f"{key}:r")
    fields, results = cast("list[dict[str, str]]", guarded(pipeline.execute))
    if not fields:
        return None
    # Only of these is what they appended looked at; of others it is simply cut off.
    wanted = {
        name: (json.loads(fields[f"p:{name}"]), read_note(text)[0])
        for name, text in _notes(fields).items()
    }
    wanted = {
        name: (header, length)
        for name, (header, length) in wanted.items()
        if name == "0" or header["k"] == "workflow"
    }
    pipeline = journal.client.pipeline(transaction=False)
    for header, length in wanted.values():
        pipeline.lrange(header["m"], length, -1)
    rows = guarded(pipeline.execute) if wanted else []
    tails = {
        name: [json.loads(row) for row in tail] for name, tail in zip(wanted, rows, strict=True)
    }
    return Remains(key=key, fields=fields, results=results, tails=tails)


def begin_again(journal: RedisJournal, run_id: str, old_id: str, plan: Plan) -> None:
    """Create a run that goes on where another one of its partition ended.

    Raises:
        DuplicateRunError: The id is taken.
        RunNotFoundError: The other run has expired, or is not the one that was read.
        SessionBusyError: Another run holds the session, or waits for it.
        SessionChangedError: The session went on without the other run.
        JournalUnavailableError: Redis did not take it; no run exists, or the next try finds it.

    Atomic: one script. Idempotent: yes, for the same plan. The other run is only read.
    """
    key, prefix = journal.place(run_id)
    answer = journal.scripts.run("revive", key, prefix, run_id, *plan.arguments())
    if answer[0] == "duplicate":
        raise duplicate(run_id)
    if answer[0] == "gone":
        raise RunNotFoundError(f"run {old_id!r} has expired meanwhile")
    if answer[0] == "busy":
        raise SessionBusyError(
            f"another run holds the session of run {old_id!r}, or waits for it; retry when it has "
            "ended",
            field="session_id",
        )
    if answer[0] == "changed":
        raise SessionChangedError(
            f"the session of run {old_id!r} went on without it, or has expired; fork the run "
            "instead"
        )
    journal.publish(ready_tasks(answer[2]))
