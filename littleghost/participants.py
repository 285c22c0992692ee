"""Who took part in a run: agents, composites, tools that are assemblies, subagents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from littleghost.journal.record import RunRecord
from littleghost.usage import Usage, sums_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """One activation of an assembly inside a run.

    JSON: `{"id", "parent"?, "agent", "name", "kind", "status", "attempt", "started_at",
    "ended_at"?, "duration_s", "usage"}`; times are ISO 8601 in UTC, what is not known is null.

    Attributes:
        id: "0" for the root; a child's begins with its parent's and a dot.
        parent_id: Who started it; None for the root.
        assembly_id: The assembly's own id.
        name: What it is called where it works, such as a graph's node.
        kind: agent, workflow, swarm, graph, or subagents for what directs an agent's subagents.
        status: running, waiting (for a person or a signal), completed, failed or cancelled; of the
            root, the run's.
        attempt: Which attempt at its step it is, from 1.
        started_at: In the journal's time, as is the end.
        finished_at: None while it runs.
        duration_s: Seconds it took, or has taken so far.
        usage: Tokens, those of everything below it included.
    """

    id: str
    parent_id: str | None
    assembly_id: str
    name: str
    kind: str
    status: str
    attempt: int
    started_at: datetime
    finished_at: datetime | None
    duration_s: float
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "id": self.id,
            "parent": self.parent_id,
            "agent": self.assembly_id,
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "attempt": self.attempt,
            "started_at": self.started_at.isoformat(timespec="milliseconds"),
            "ended_at": self.finished_at.isoformat(timespec="milliseconds")
            if self.finished_at
            else None,
            "duration_s": self.duration_s,
            "usage": self.usage.to_json(),
        }


def participants_of(record: RunRecord, now_ms: int) -> list[Participant]:
    """List a run's participants, each behind the one that started it.

    Args:
        now_ms: The journal's time, for what is not over.
    """
    usage = sums_of(record.usage_of)
    tasks: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for task in record.tasks.values():
        tasks[task["p"]].append(task)
    found: list[Participant] = []
    for name in sorted(record.participants, key=_order):
        header = record.participants[name]
        step = header.get("step") or {}
        begun, ended, status = _span(record, name, tasks.get(name, ()))
        found.append(
            Participant(
                id=name,
                parent_id=header.get("up"),
                assembly_id=str(header.get("n", name)),
                name=str(step.get("name") or header.get("n", name)),
                kind=str(header.get("k", "")),
                status=status,
                attempt=int(step.get("attempt", 1)),
                started_at=_time(begun),
                finished_at=_time(ended) if ended else None,
                duration_s=((ended or now_ms) - begun) / 1000,
                usage=usage.get(name, Usage()),
            )
        )
    return found


def _span(record: RunRecord, name: str, tasks: Any) -> tuple[int, int, str]:
    """Give start and end in ms (0 is not yet) and status of a participant."""
    begun = int(record.participants[name].get("b", record.created_ms))
    if name == "0":
        return begun, record.ended_ms, record.status
    if name in record.ends:
        return record.ends[name]
    if record.is_over:
        # The run ended over its head.
        return begun, record.ended_ms, "cancelled"
    asks = any("sg" in task or ("ap" in task and "an" not in task) for task in tasks)
    is_idle = all(task["s"] == "wait" for task in tasks)
    return begun, 0, "waiting" if asks and is_idle else "running"


def _order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
