"""Reads what a run that did not end well has left, and begins the run that goes on from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from littleghost.errors import RunNotFoundError, SessionBusyError, SessionChangedError
from littleghost.journal.contents import left_key, marked, open_key, read_hash, tree_key
from littleghost.journal.headers import read_header
from littleghost.journal.plan import Plan
from littleghost.journal.record import OVER
from littleghost.journal.scripts import guarded
from littleghost.journal.store import RedisJournal, duplicate, ready_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """All of an ended run that another one needs to go on from it.

    Attributes:
        key: The key of its record.
        fields: Its record, with what is kept of its participants and of what it had open.
        results: Its results by task and participant: a record, or `#n` for a place in a list.
        tails: By participant, what was appended to its list after `f:` was noted.
    """

    key: str
    fields: Mapping[str, str]
    results: Mapping[str, str]
    tails: Mapping[str, Sequence[Any]]

    def participants(self) -> dict[str, dict[str, Any]]:
        """Give the headers of its participants."""
        found = marked(self.fields, "p:")
        return {name: read_header(self.key, name, text) for name, text in found.items()}

    def headers(self, mark: str) -> dict[str, dict[str, Any]]:
        """Give the JSON fields of the record whose names begin with a mark, by the rest of it."""
        return {name: json.loads(text) for name, text in marked(self.fields, mark).items()}

    def notes(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Give where participants stood: the length of the list, and the decider's state."""
        return {name: read_note(text) for name, text in marked(self.fields, "f:").items()}


def read_note(text: str) -> tuple[int, dict[str, Any]]:
    """Read a field `f:`."""
    length, _, state = text.partition(",")
    return int(length), json.loads(state)


def read_remains(journal: RedisJournal, run_id: str) -> Remains | None:
    """Read what a run has left; None when there is no such run."""
    key, _ = journal.place(run_id)
    record = cast("dict[str, str]", guarded(lambda: journal.client.hgetall(key)))
    if not record:
        return None
    # What it had open is moved to its place piece by piece; a run that goes on is not retried.
    while record["status"] in OVER and not journal.clear(run_id, pieces=1000):
        pass
    parts = [tree_key(key), open_key(key), left_key(key), f"{key}:r"]
    tree, still, left, results = [read_hash(journal.client, name) for name in parts]
    fields = {**record, **tree, **still, **left}
    # Only of these is what they appended looked at; of others it is simply cut off.
    wanted = {
        name: (read_header(key, name, fields[f"p:{name}"]), read_note(text)[0])
        for name, text in marked(fields, "f:").items()
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
