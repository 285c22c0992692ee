"""Reads a run's record: its facts, its conversation and its events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from littleghost.journal.contents import Contents, tree_key
from littleghost.journal.scripts import guarded
from littleghost.journal.store import RedisJournal
from littleghost.trajectory import Step, steps_of
from littleghost.usage import Usage

OVER = frozenset({"completed", "failed", "partial", "cancelled"})


@dataclass(frozen=True, kw_only=True, eq=False)
class RunRecord:
    """The facts of a run at one moment.

    What grows with the number of participants is read when it is first asked for, and is as new as
    that.

    Attributes:
        status: queued, running, waiting (for a person or a signal), stopping, or the outcome.
        created_ms: Journal time; so are the other times. 0 is not yet.
        usage: Tokens of all participants.
        events: How many events there are.
        waits_for_session: Whether an earlier run of the session goes first.
        last_record: Index of the root's last record when the run ended; -1 is the newest.
        base: How many records of the root's list are older than the run.
        lane: "" or "batch".
        contents: Gives what is kept of participants, and what is still to be done.
    """

    run_id: str
    status: str
    assembly: str
    invocation: Mapping[str, Any]
    created_ms: int
    started_ms: int
    ended_ms: int
    deadline_ms: int
    text: str
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    usage: Usage
    events: int
    waits_for_session: bool
    last_record: int
    fingerprint: str
    base: int
    lane: str
    contents: Contents

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status in OVER

    @property
    def outcome(self) -> str | None:
        """How the run ended, or None."""
        return self.status if self.is_over else None

    @property
    def participants(self) -> Mapping[str, Mapping[str, Any]]:
        """Headers by participant."""
        return self.contents.participants

    @property
    def ends(self) -> Mapping[str, tuple[int, int, str]]:
        """Start and end in ms and status, by participant below the root."""
        return self.contents.ends

    @property
    def usage_of(self) -> Mapping[str, Usage]:
        """Tokens by participant."""
        return self.contents.usage_of

    @property
    def tasks(self) -> Mapping[str, Mapping[str, Any]]:
        """Headers of the tasks that are not done, by id."""
        return {} if self.is_over else self.contents.tasks

    @property
    def payloads(self) -> Mapping[str, str]:
        """What those of them that are tool calls call, JSON text by id."""
        return {} if self.is_over else self.contents.payloads


def parse_record(run_id: str, fields: Mapping[str, str], contents: Contents) -> RunRecord:
    """Read a run's small hash."""

    def number(name: str) -> int:
        return int(fields.get(name) or 0)

    def document(name: str) -> Any:
        return json.loads(fields[name]) if name in fields else None

    return RunRecord(
        run_id=run_id,
        status=_status(fields["status"], contents),
        assembly=fields.get("asm", ""),
        invocation=document("inv") or {},
        created_ms=number("created"),
        started_ms=number("started"),
        ended_ms=number("ended"),
        deadline_ms=number("deadline"),
        text=fields.get("text", ""),
        result=document("result"),
        error=document("error"),
        usage=contents.usage,
        events=number("ev"),
        waits_for_session="sw" in fields,
        last_record=int(fields.get("last", -1)),
        fingerprint=fields.get("fp", ""),
        base=number("base"),
        lane=fields.get("ln", ""),
        contents=contents,
    )


def _status(status: str, contents: Contents) -> str:
    """Say that a run waits when only people or other programs can move it."""
    if status != "running" or contents.leased > 0:
        return status
    tasks = contents.tasks.values()
    if any(task["s"] != "wait" for task in tasks):
        return status
    waits = any("sg" in task or ("ap" in task and "an" not in task) for task in tasks)
    return "waiting" if waits else status


def find_record(journal: RedisJournal, run_id: str) -> RunRecord | None:
    """Read a run's facts; None when there is no such run.

    Cost: one round trip, whatever the number of participants; more only for a run that no worker
    has a task of.
    """
    key, _ = journal.place(run_id)
    pipeline = journal.client.pipeline(transaction=False)
    pipeline.hgetall(key)
    pipeline.hmget(tree_key(key), ["u:0", "w:0"])
    pipeline.scard(f"{key}:l")
    fields, counts, leased = cast("tuple[Any, list[str | None], int]", guarded(pipeline.execute))
    if not fields:
        return None
    return parse_record(run_id, fields, Contents(journal.client, key, counts, leased))


class Records:
    """Reads runs; writes nothing."""

    def __init__(self, journal: RedisJournal) -> None:
        self._journal = journal
        self._client = journal.client

    def find(self, run_id: str) -> RunRecord | None:
        """Read a run's facts; None when there is no such run."""
        return find_record(self._journal, run_id)

    def messages(self, record: RunRecord, participant: str = "0") -> list[Any]:
        """Read the records of a participant's list that the run saw, JSON values."""
        header = record.participants[participant]
        end = self._end(record, participant)
        rows = guarded(lambda: self._client.lrange(header["m"], 0, end))
        return [json.loads(row) for row in cast("Sequence[str]", rows)]

    def message(self, record: RunRecord, index: int, participant: str = "0") -> Any:
        """Read one record of a participant's list, or None."""
        header = record.participants[participant]
        row = guarded(lambda: self._client.lindex(header["m"], index))
        return json.loads(cast("str", row)) if row else None

    def steps(self, record: RunRecord) -> list[Step]:
        """Read the steps of a composite run."""
        names = [name for name, header in record.participants.items() if header.get("step")]
        key = f"{self._journal.place(record.run_id)[0]}:r"
        rows = cast(
            "list[str | None]", guarded(lambda: self._client.hmget(key, names)) if names else []
        )
        given = dict(zip(names, rows, strict=True))
        places = {name: int(row[1:]) for name, row in given.items() if row and row[0] == "#"}
        pipeline = self._client.pipeline(transaction=False)
        for name, index in places.items():
            # A join has moved the record to the parent's list, and left its place.
            pipeline.lindex(record.participants[record.participants[name]["up"]]["m"], index)
        moved = dict(zip(places, guarded(pipeline.execute) if places else [], strict=True))
        records = {
            name: json.loads(text)
            for name, row in given.items()
            if (text := moved.get(name, row)) and text[0] != "#"
        }
        return steps_of(record.participants, record.ends, record.usage_of, records)

    def state(self, record: RunRecord, participant: str = "0") -> dict[str, Any]:
        """Read a participant's working state, all keys with their prefixes."""
        key = record.participants[participant]["s"]
        if record.is_over and participant == "0":
            # A session's state goes on changing; the run kept what it left.
            key = f"{self._journal.place(record.run_id)[0]}:s:0"
        rows = guarded(lambda: self._client.hgetall(key))
        return {key: json.loads(value) for key, value in cast("dict[str, str]", rows).items()}

    def recent(self, limit: int) -> list[tuple[str, int]]:
        """List the newest runs of all partitions: id and creation time in ms."""
        pipeline = self._client.pipeline(transaction=False)
        for partition in range(self._journal.partitions):
            pipeline.zrevrange(
                self._journal.prefix(partition) + "runs", 0, limit - 1, withscores=True
            )
        rows = cast("list[list[tuple[str, float]]]", guarded(pipeline.execute))
        merged = sorted((row for part in rows for row in part), key=lambda row: -row[1])
        return [(run_id, int(at)) for run_id, at in merged[:limit]]

    def live(self, limit: int = 100_000) -> list[str]:
        """List the runs that have not ended."""
        pipeline = self._client.pipeline(transaction=False)
        for partition in range(self._journal.partitions):
            pipeline.zrange(self._journal.prefix(partition) + "live", 0, limit)
        return [name for part in guarded(pipeline.execute) for name in part][:limit]

    def held(self, worker_id: str) -> list[tuple[str, str]]:
        """List the tasks leased by a worker: run and task."""
        pipeline = self._client.pipeline(transaction=False)
        for partition in range(self._journal.partitions):
            pipeline.smembers(f"{self._journal.prefix(partition)}held:{worker_id}")
        names = [name for part in guarded(pipeline.execute) for name in part]
        return [(name.partition("|")[0], name.partition("|")[2]) for name in names]

    @staticmethod
    def _end(record: RunRecord, participant: str) -> int:
        """Where the run's part of a session's conversation ends; -1 is the end of the list."""
        result = record.result or {}
        if "message" in result and result.get("participant", "0") == participant:
            return int(result["message"])
        return record.last_record if participant == "0" else -1
