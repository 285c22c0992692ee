"""What a run waits for from outside: approvals of tool calls, and signals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from littleghost.journal.record import RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Something that a run waits for.

    Attributes:
        id: What `Run.approve`, `reject` and `edit` take; for a signal, its name.
        kind: approval or signal.
        participant: Which participant waits, by its assembly's id.
        tool: The tool that is to be called; empty for a signal.
        arguments: Exactly what it is to be called with; empty for a signal.
        expires_at: When it counts as rejected, or the wait as over; None is never.
    """

    id: str
    kind: Literal["approval", "signal"]
    participant: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expires_at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form: the same names, the time in ISO 8601 or null."""
        return {
            "id": self.id,
            "kind": self.kind,
            "participant": self.participant,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }


def pending_of(record: RunRecord) -> list[Pending]:
    """List what a run waits for, in the order of the participants and their calls."""
    found: list[Pending] = []
    if record.status == "stopping":
        return found
    for task_id, task in sorted(record.tasks.items(), key=_order):
        label = str(record.participants[task["p"]]["n"])
        if "sg" in task and task["s"] == "wait":
            at = _time(task.get("su"))
            found.append(Pending(id=task["sg"], kind="signal", participant=label, expires_at=at))
        elif "ap" in task and "an" not in task:
            use = json.loads(record.payloads[task_id])
            found.append(
                Pending(
                    id=task_id,
                    kind="approval",
                    participant=label,
                    tool=use["name"],
                    arguments=use["input"],
                    expires_at=_time(task["ap"]),
                )
            )
    return found


def _order(item: tuple[str, Any]) -> list[int]:
    """Sort by participant, turn and place: "0.1-c2.3" comes before "0.1-c10.0"."""
    return [int(number) for number in re.findall(r"\d+", item[0])]


def _time(at_ms: float | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
