"""How the participants of a composite run followed each other."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from littleghost.usage import Usage, sums_of

# A step's output is kept in a result up to this size, as text or as JSON.
MAX_OUTPUT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a step.

    Attributes:
        number: From 1.
        status: completed, failed, cancelled, or running.
        finished_at: None while it runs.
        usage: Tokens, those of everything below it included.
        error: The class name of what it failed with, or None.
    """

    number: int
    status: str
    started_at: datetime
    finished_at: datetime | None
    usage: Usage
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The record of one participant of a composite.

    Attributes:
        id: Unique in the run.
        parent_id: The step around it: that of its composite, or of the agent one of whose tools is
            its composite; None at the top.
        predecessor_ids: The steps it followed.
        branch_id: The first participant of its branch, in a graph.
        participant: Its name in the composite.
        status: completed, failed, cancelled, or running: that of the last attempt.
        usage: Tokens of all attempts.
        output: Text or value, up to 64 KiB; None when it has none or it was cut. Of a swarm's
            member that handed off, the handoff: `{to, message, context}`.
        output_truncated: Whether the output was too large to be kept here.
    """

    id: str
    parent_id: str | None
    predecessor_ids: tuple[str, ...]
    branch_id: str | None
    participant: str
    assembly_id: str
    assembly_kind: str
    status: str
    attempts: tuple[Attempt, ...]
    usage: Usage
    output: Any = None
    output_truncated: bool = False


class Trajectory:
    """The steps of a run and how they hang together; iterating gives them in order of start."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self._by_id = {step.id: step for step in self.steps}

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def step(self, step_id: str) -> Step:
        """Give a step by its id.

        Raises:
            KeyError: There is none.
        """
        return self._by_id[step_id]

    def children(self, step_id: str | None) -> list[Step]:
        """Give the steps inside a step; None gives those at the top."""
        return [step for step in self.steps if step.parent_id == step_id]

    def attempts_for(self, step_id: str) -> tuple[Attempt, ...]:
        """Give the attempts at a step."""
        return self._by_id[step_id].attempts

    @property
    def transitions(self) -> list[tuple[str, str]]:
        """Pairs of step ids: predecessor and successor."""
        return [(before, step.id) for step in self.steps for before in step.predecessor_ids]

    def concurrent(self, first: str, second: str) -> bool:
        """Say whether any attempts at two steps overlapped in time."""
        return any(
            one.started_at < (other.finished_at or datetime.max.replace(tzinfo=UTC))
            and other.started_at < (one.finished_at or datetime.max.replace(tzinfo=UTC))
            for one in self.attempts_for(first)
            for other in self.attempts_for(second)
        )


def steps_of(
    participants: Mapping[str, Mapping[str, Any]],
    ends: Mapping[str, tuple[int, int, str]],
    usage_of: Mapping[str, Usage],
    records: Mapping[str, Mapping[str, Any]],
) -> list[Step]:
    """Put the steps of a run together from its participants.

    Args:
        participants: Headers by participant.
        ends: Start and end in journal milliseconds, and status, by participant.
        usage_of: Tokens by participant.
        records: What each participant gave back: `{r: result}` or `{x: error}`.
    """
    sums = sums_of(usage_of)
    tries: dict[str, list[str]] = defaultdict(list)
    for pid, header in participants.items():
        if header.get("step"):
            tries[header["step"]["id"]].append(pid)
    steps = [
        _step(step_id, pids, participants, ends, sums, records) for step_id, pids in tries.items()
    ]
    return sorted(steps, key=lambda step: (step.attempts[0].started_at, _order(step.id)))


def _order(pid: str) -> tuple[int, ...]:
    return tuple(int(part) for part in pid.split("."))


def _step(
    step_id: str,
    pids: Sequence[str],
    participants: Mapping[str, Mapping[str, Any]],
    ends: Mapping[str, tuple[int, int, str]],
    usage_of: Mapping[str, Usage],
    records: Mapping[str, Mapping[str, Any]],
) -> Step:
    attempts = [
        _attempt(pid, participants[pid], ends.get(pid), usage_of, records.get(pid, {}))
        for pid in pids
    ]
    attempts.sort(key=lambda attempt: attempt.number)
    newest = max(pids, key=lambda pid: participants[pid]["step"]["attempt"])
    header = participants[newest]
    parent = _around(header, participants)
    output, is_cut = _output(records.get(newest, {}))
    told = header["step"]
    return Step(
        id=step_id,
        parent_id=parent,
        predecessor_ids=tuple(told["predecessors"]),
        branch_id=told.get("branch"),
        participant=told["name"],
        assembly_id=header["n"],
        assembly_kind=header["k"],
        status=attempts[-1].status,
        attempts=tuple(attempts),
        usage=sum((attempt.usage for attempt in attempts), Usage()),
        output=output,
        output_truncated=is_cut,
    )


def _around(header: Mapping[str, Any], participants: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Give the nearest step around a participant; one that a tool call started is no step."""
    while "up" in header:
        header = participants[header["up"]]
        if header.get("step"):
            return header["step"]["id"]
    return None


def _attempt(
    pid: str,
    header: Mapping[str, Any],
    end: tuple[int, int, str] | None,
    usage_of: Mapping[str, Usage],
    record: Mapping[str, Any],
) -> Attempt:
    return Attempt(
        number=header["step"]["attempt"],
        status=end[2] if end else "running",
        started_at=datetime.fromtimestamp((end[0] if end else header["b"]) / 1000, UTC),
        finished_at=datetime.fromtimestamp(end[1] / 1000, UTC) if end else None,
        usage=usage_of.get(pid, Usage()),
        error=record["x"].get("type") if "x" in record else None,
    )


def _output(record: Mapping[str, Any]) -> tuple[Any, bool]:
    result = record.get("r") or {}
    # What a member of a swarm hands over is what it gave, whatever it said beside that.
    output = result.get("handoff", result.get("value", result.get("output")))
    if output is None:
        return None, False
    text = output if isinstance(output, str) else json.dumps(output)
    return (None, True) if len(text.encode()) > MAX_OUTPUT_BYTES else (output, False)
