"""A run's participants and their unfinished tasks, as facts and as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from littleghost.cli.escape import one_line
from littleghost.cli.facts import task_facts
from littleghost.cli.output import coloured, duration
from littleghost.journal.record import RunRecord
from littleghost.usage import Usage


def participant_facts(record: RunRecord, now_ms: int) -> list[dict[str, Any]]:
    """Give the facts of a run's participants, each behind the one that started it.

    JSON: `{"id", "parent"?, "agent", "name", "kind", "status", "attempt", "started_at",
    "ended_at"?, "duration_s", "usage"}`; `agent` is the assembly's id, `name` what it is called
    where it works, and usage includes everything below it.

    Args:
        now_ms: The journal's time, for what is not over.
    """
    return [_facts(record, name, now_ms) for name in sorted(record.participants, key=_order)]


def tree_lines(record: RunRecord, now_ms: int) -> Iterator[str]:
    """Write participants and tasks for people, each below what it belongs to."""
    tasks: dict[str, list[str]] = {}
    for name in sorted(record.tasks, key=_order):
        tasks.setdefault(str(record.tasks[name]["p"]), []).append(name)
    for facts in participant_facts(record, now_ms):
        depth = facts["id"].count(".") + 1
        called = one_line(facts["name"], 64)
        if facts["name"] != facts["agent"]:
            called += f" ({one_line(facts['agent'], 64)})"
        tries = f"  attempt {facts['attempt']}" if facts["attempt"] > 1 else ""
        kind, status = one_line(facts["kind"]), coloured(one_line(facts["status"]))
        yield (
            f"{'  ' * depth}{called}  {kind}  {status}{tries}  "
            f"{duration(facts['duration_s'])}  {_tokens(facts['usage'])}"
        )
        for name in tasks.get(facts["id"], ()):
            yield "  " * (depth + 1) + _task_line(name, record.tasks[name])


def _task_line(name: str, task: Mapping[str, Any]) -> str:
    facts = task_facts(name, task)
    kind, status, queue = (one_line(str(facts[key])) for key in ("kind", "status", "queue"))
    words = [one_line(name), kind, coloured(status), queue]
    if facts["attempt"]:
        words.append(f"attempt {facts['attempt']}")
    if facts["lost"]:
        words.append(f"lost {facts['lost']}")
    if facts["worker"]:
        words.append(f"on {one_line(str(facts['worker']), 64)}")
    return "  ".join(words)


def _facts(record: RunRecord, name: str, now_ms: int) -> dict[str, Any]:
    header = record.participants[name]
    step = header.get("step") or {}
    begun, ended, status = _span(record, name)
    below = [
        used
        for other, used in record.usage_of.items()
        if other == name or other.startswith(name + ".")
    ]
    return {
        "id": name,
        "parent": header.get("up"),
        "agent": str(header.get("n", name)),
        "name": str(step.get("name") or header.get("n", name)),
        "kind": str(header.get("k", "")),
        "status": status,
        "attempt": int(step.get("attempt", 1)),
        "started_at": _time(begun),
        "ended_at": _time(ended) if ended else None,
        "duration_s": ((ended or now_ms) - begun) / 1000,
        "usage": sum(below, Usage()).to_json(),
    }


def _span(record: RunRecord, name: str) -> tuple[int, int, str]:
    """Give start and end in ms (0 is not yet) and status of a participant."""
    begun = int(record.participants[name].get("b", record.created_ms))
    if name == "0":
        return begun, record.ended_ms, record.status
    if name in record.ends:
        return record.ends[name]
    if record.is_over:
        # The run ended over its head.
        return begun, record.ended_ms, "cancelled"
    own = [task for task in record.tasks.values() if task["p"] == name]
    asks = any("sg" in task or ("ap" in task and "an" not in task) for task in own)
    is_idle = all(task["s"] == "wait" for task in own)
    return begun, 0, "waiting" if asks and is_idle else "running"


def _tokens(usage: Mapping[str, int]) -> str:
    return f"{Usage.from_json(usage).total} tokens"


def _order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
