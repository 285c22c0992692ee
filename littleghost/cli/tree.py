"""A run's participants and their unfinished tasks, as facts and as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from littleghost.cli.escape import one_line
from littleghost.cli.facts import task_facts
from littleghost.cli.output import coloured, duration
from littleghost.journal.record import RunRecord
from littleghost.participants import participants_of
from littleghost.usage import Usage


def tree_lines(record: RunRecord, now_ms: int) -> Iterator[str]:
    """Write participants and tasks for people, each below what it belongs to."""
    tasks: dict[str, list[str]] = {}
    for name in sorted(record.tasks, key=_order):
        tasks.setdefault(str(record.tasks[name]["p"]), []).append(name)
    for facts in (item.to_json() for item in participants_of(record, now_ms)):
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


def _tokens(usage: Mapping[str, int]) -> str:
    return f"{Usage.from_json(usage).total} tokens"


def _order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]
