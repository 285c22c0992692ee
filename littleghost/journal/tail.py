"""Follows a run's events from any position, and fills in what an event only names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from littleghost.errors import CleanupError, RunNotFoundError
from littleghost.events import (
    ASSEMBLY_TYPES,
    PERSON_TYPES,
    RAW_AGENT_TYPES,
    TERMINAL_TYPES,
    StreamEvent,
)
from littleghost.failure import Failure
from littleghost.journal.connection import Client, read_streams
from littleghost.journal.contents import tree_key
from littleghost.journal.headers import read_header
from littleghost.journal.record import RunRecord, find_record
from littleghost.journal.scripts import guarded
from littleghost.journal.store import RedisJournal
from littleghost.messages import Message, ToolResult

PAGE = 256
Stored = tuple[int, dict[str, Any]]


def read_page(rows: Any) -> list[Stored]:
    """Merge the durable and the live stream by number.

    A stream that was cut by the page size may hide numbers below the other's newest, so nothing
    beyond the end of a cut stream is given out.
    """
    merged: list[Stored] = []
    limit: int | None = None
    for _name, entries in rows or ():
        for entry_id, fields in entries:
            merged.append((int(entry_id.partition("-")[0]), json.loads(fields["e"])))
        if len(entries) >= PAGE:
            limit = merged[-1][0] if limit is None else min(limit, merged[-1][0])
    merged.sort(key=lambda item: item[0])
    return merged if limit is None else [item for item in merged if item[0] <= limit]


class Tail:
    """Reads one run's events. Readers keep nothing in Redis and slow nobody."""

    def __init__(
        self, journal: RedisJournal, reader: Client, run_id: str, *, whole: bool = False
    ) -> None:
        """Look at a run.

        Args:
            reader: A client whose reads may block for several seconds.
            whole: Whether to give agents' events that the caller of the run does not want.
        """
        self._journal = journal
        self._reader = reader
        self._run_id = run_id
        self._whole = whole
        self._key, _ = journal.place(run_id)
        self._participants: dict[str, dict[str, Any]] = {}
        self._invocation: Mapping[str, Any] | None = None

    def streams(self, after: int) -> dict[str, str]:
        """Give the arguments of XREAD for what comes behind a position."""
        return {f"{self._key}:e": f"{after}-0", f"{self._key}:d": f"{after}-0"}

    def read(self, after: int, block_ms: int | None) -> list[Stored]:
        """Read a page of stored events behind a position; waits for one at most `block_ms`."""
        rows = guarded(lambda: read_streams(self._reader, self.streams(after), PAGE, block_ms))
        return read_page(rows)

    def fill(self, page: Sequence[Stored]) -> list[StreamEvent]:
        """Turn stored events into what a watcher sees; one or two round trips for a page."""
        records, results = self._named(page)
        return [
            event
            for number, stored in page
            if (event := self._event(number, stored, records, results)) is not None
        ]

    def _named(self, page: Sequence[Stored]) -> tuple[dict[tuple[str, int], Any], dict[str, Any]]:
        client = self._journal.client
        self._learn({event["p"] for _, event in page if "p" in event})
        wanted = {(event["p"], event["m"]) for _, event in page if "m" in event}
        tasks = sorted({event["r"] for _, event in page if "r" in event})
        results: dict[str, Any] = {}
        if tasks:
            rows = guarded(lambda: client.hmget(f"{self._key}:r", tasks))
            for task, row in zip(tasks, cast("list[str | None]", rows), strict=True):
                if row and row.startswith("#"):
                    place = (task.partition("-")[0], int(row[1:]))
                    wanted.add(place)
                    results[task] = place
                elif row:
                    results[task] = json.loads(row)
        pipeline = client.pipeline(transaction=False)
        order = sorted(wanted)
        for participant, index in order:
            pipeline.lindex(self._participants[participant]["m"], index)
        found = cast("list[str | None]", guarded(pipeline.execute)) if order else []
        records = {place: json.loads(row) for place, row in zip(order, found, strict=True) if row}
        for task, value in results.items():
            if isinstance(value, tuple):
                results[task] = records.get(cast("tuple[str, int]", value))
        return records, results

    def _learn(self, names: set[str]) -> None:
        missing = sorted(names - self._participants.keys())
        if not missing and self._invocation is not None:
            return
        pipeline = self._journal.client.pipeline(transaction=False)
        pipeline.hget(self._key, "inv")
        if missing:
            pipeline.hmget(tree_key(self._key), [f"p:{name}" for name in missing])
        asked, *more = guarded(pipeline.execute)
        self._invocation = json.loads(asked) if asked else {}
        for name, row in zip(missing, more[0] if more else (), strict=True):
            self._participants[name] = read_header(self._key, name, row or '{"n": "", "a": ""}')

    def _event(
        self,
        number: int,
        stored: dict[str, Any],
        records: Mapping[tuple[str, int], Any],
        results: Mapping[str, Any],
    ) -> StreamEvent | None:
        kind = stored["type"]
        if "p" not in stored:
            return StreamEvent(str(number), kind, self._run_data(kind))
        participant = stored["p"]
        record = records.get((participant, stored.get("m", -1)))
        data = dict(stored.get("d", {}))
        extra: dict[str, Any] = {}
        if kind == "invocation_start":
            data["agent_id"] = self._participants[participant]["n"]
            extra["input"] = record
        elif kind == "model_stop":
            data["response"] = {"message": record, "finish": data.get("finish")}
        elif kind == "tool_start":
            data = {"tool_use": _use(record, data["index"])}
        elif kind == "approval_requested":
            index = data.pop("index")
            data["tool_use"] = _use(record, index)
        elif kind == "tool_stop":
            data = _stopped_call(data, results.get(stored["r"]))
        elif kind in RAW_AGENT_TYPES and participant == "0":
            return StreamEvent(str(number), kind, self._invocation_data(kind, record))
        if kind == "subagent":
            event = {"event": data, "source": self._source(participant)}
            return StreamEvent(str(number), kind, event)
        if kind in PERSON_TYPES or kind in ASSEMBLY_TYPES:
            return StreamEvent(str(number), kind, {**data, "source": self._source(participant)})
        if not (self._whole or (self._invocation or {}).get("include_agent_events", True)):
            return None
        wrapped = {"source": self._source(participant), "event": {"type": kind, "data": data}}
        return StreamEvent(str(number), "agent_stream", {**wrapped, **extra})

    def _source(self, participant: str) -> dict[str, Any]:
        header = self._participants[participant]
        return {
            "agent_id": header["n"],
            "agent_path": [header["n"]],
            "operation_id": f"{self._run_id}:{participant}",
            "parent_operation_id": f"{self._run_id}:{header['up']}" if "up" in header else None,
            "assembly_path": header.get("path", []),
        }

    def _facts(self) -> RunRecord:
        record = find_record(self._journal, self._run_id)
        if record is None:
            raise RunNotFoundError(f"no run {self._run_id!r}: it has expired meanwhile")
        return record

    def _run_data(self, kind: str) -> dict[str, Any]:
        if kind == "run_start":
            self._learn(set())
            session = (self._invocation or {}).get("session_id", self._run_id)
            told = {"run_id": self._run_id, "thread_id": session}
            links = ("retry_of", "forked_from")
            return told | {k: v for k, v in (self._invocation or {}).items() if k in links}
        if kind not in TERMINAL_TYPES:
            return {}
        record = self._facts()
        data: dict[str, Any] = {"outcome": record.status}
        failure = Failure.from_json(record.error or {})
        error = {"code": failure.code, "message": failure.message, "type": failure.type}
        if kind == "run_error":
            return {
                **data,
                "error": error,
                "message": failure.message,
                "cleanup_failed": failure.code == CleanupError.code,
            }
        data["response"] = record.text
        if kind == "run_stop":
            data["result"] = {**(record.result or {}), "usage": record.usage.to_json()}
        else:
            data["error"] = error
        return data

    def _invocation_data(self, kind: str, message: Any) -> dict[str, Any]:
        record = self._facts()
        if kind == "invocation_stop":
            return {"result": {"message": message, "usage": record.usage.to_json()}, "metadata": {}}
        failure = Failure.from_json(record.error or {})
        error = {"code": failure.code, "message": failure.message, "type": failure.type}
        return {"error": error, "usage": record.usage.to_json(), "metadata": {}}


def _use(record: Any, index: int) -> dict[str, Any] | None:
    uses = Message.from_json(record).tool_uses if record else ()
    return uses[index].to_json() if index < len(uses) else None


def _stopped_call(data: Mapping[str, Any], record: Any) -> dict[str, Any]:
    """Give a tool_stop's data: the call it answers, and the result."""
    blocks = Message.from_json(record).content if record else ()
    result = blocks[0] if blocks and isinstance(blocks[0], ToolResult) else None
    use = {"id": result.tool_use_id if result else "", "name": data.get("name", "")}
    shape = result.to_json() if result else {"status": data.get("status")}
    return {"tool_use": {"type": "tool_use", **use}, "result": shape}
