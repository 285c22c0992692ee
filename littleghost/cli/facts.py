"""A run's facts in the JSON form that every verb prints."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from littleghost.failure import Failure
from littleghost.journal.record import RunRecord


def run_facts(record: RunRecord, *, with_traceback: bool = False) -> dict[str, Any]:
    """Give the facts of a run.

    JSON: `{"id", "status", "assembly", "created_at", "started_at"?, "ended_at"?, "deadline_at"?,
    "duration_s"?, "session_id"?, "actor_id"?, "retry_of"?, "forked_from"?, "response", "usage",
    "events", "error"?}`; times are ISO 8601 in UTC, what is not known yet is null.
    """
    invocation = record.invocation
    duration_s = (record.ended_ms - record.created_ms) / 1000 if record.ended_ms else None
    return {
        "id": record.run_id,
        "status": record.status,
        "assembly": record.assembly,
        "created_at": _time(record.created_ms),
        "started_at": _time(record.started_ms),
        "ended_at": _time(record.ended_ms),
        "deadline_at": _time(record.deadline_ms),
        "duration_s": duration_s,
        "session_id": invocation.get("session_id"),
        "actor_id": invocation.get("actor_id"),
        "retry_of": invocation.get("retry_of"),
        "forked_from": invocation.get("forked_from"),
        "response": record.text if record.is_over else "",
        "usage": record.usage.to_json(),
        "events": record.events,
        "error": error_facts(record.error, with_traceback=with_traceback),
    }


def error_facts(
    error: Mapping[str, Any] | None, *, with_traceback: bool = False
) -> dict[str, str] | None:
    """Give a failure's JSON form, without the traceback unless it is wanted."""
    if not error:
        return None
    facts = Failure.from_json(error).to_json()
    if not with_traceback:
        facts.pop("traceback", None)
    return facts


def task_facts(task_id: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Give a task's facts.

    JSON: `{"id", "participant", "kind", "status", "queue", "attempt", "lost", "worker"?}`.
    """
    return {
        "id": task_id,
        "participant": task.get("p"),
        "kind": task.get("k"),
        "status": {"wait": "waiting"}.get(str(task.get("s")), task.get("s")),
        "queue": task.get("q"),
        "attempt": task.get("a", 0),
        "lost": task.get("l", 0),
        "worker": task.get("w"),
    }


def _time(ms: int) -> str | None:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds") if ms else None
