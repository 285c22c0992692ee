"""The comparison as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers.work import PAYLOAD, SLOTS, STEPS
from benchmarks.report import number

Found = Mapping[str, Mapping[str, Any]]

_HEAD = f"""# Beside other systems

Written by `make bench-peers`: the same work on the same machine, one system after the other, each
with a Redis of its own (append-only file, `everysec`) or a SQLite file. A step takes and gives
{len(PAYLOAD)} bytes and does nothing. Each system has {SLOTS} slots and the mode that its
documentation calls durable. Systems that work inside the caller's process have no queue between
caller and work, and no other process that goes on when it dies. CPU is that of caller and worker
together. Absolute figures depend on the machine; compare within a column.
"""


def _cell(row: Mapping[str, Any], part: str, key: str) -> str:
    value = row.get(part)
    return "-" if value is None else number(value[key])


def _speed(found: Found, sizes: Mapping[str, Any]) -> list[str]:
    widths: Sequence[int] = sizes["widths"]
    heads = [
        "system",
        "alone, ms per step (p95)",
        "many, ms per step",
        "CPU ms per step",
        "Redis CPU ms",
        *(f"fan-out of {width:,}, s" for width in widths),
        *(f"CPU ms per child of {width:,}" for width in widths),
        "MB",
    ]
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join(["---"] * len(heads)) + " |"]
    for row in found.values():
        if "failed" in row:
            continue
        cells = [
            row["name"],
            f"{_cell(row, 'singles', 'median')} ({_cell(row, 'singles', 'p95')})",
            _cell(row, "many", "ms"),
            _cell(row, "many", "cpu_ms"),
            _cell(row, "many", "redis_cpu_ms"),
            *(_cell(row, f"fan {width}", "s") for width in widths),
            *(_cell(row, f"fan {width}", "cpu_ms") for width in widths),
            number(row["rss_mb"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _storage(found: Found, sizes: Mapping[str, Any]) -> list[str]:
    turns: Sequence[int] = sizes["turns"]
    heads = ["system", *(f"{count:,} turns" for count in turns)]
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join(["---"] * len(heads)) + " |"]
    for row in found.values():
        stored = [row.get(f"turns {count}") for count in turns]
        if all(value is None for value in stored):
            continue
        cells = [
            "-" if value is None else f"{number(value / count)} B"
            for value, count in zip(stored, turns, strict=True)
        ]
        lines.append("| " + " | ".join([row["name"], *cells]) + " |")
    return lines


def _facts(found: Found) -> list[str]:
    lines = [
        "| system | versions | what is stored | where it works | load of the machine |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in found.values():
        if "failed" not in row:
            versions = ", ".join(f"{name} {text}" for name, text in row["versions"].items())
            before, after = row["load"]
            cells = [row["name"], versions, row["stores"], row["workers"]]
            lines.append("| " + " | ".join([*cells, f"{before:.1f} to {after:.1f}"]) + " |")
    return lines


def _missing(found: Found) -> list[str]:
    lines = []
    for name, row in found.items():
        if "failed" in row:
            lines.append(f"- {name}: {row['failed']}")
            continue
        reasons: dict[str, list[str]] = {}
        for part, reason in row["missing"].items():
            reasons.setdefault(reason, []).append(part)
        lines += [f"- {row['name']}, {', '.join(parts)}: {why}" for why, parts in reasons.items()]
    return lines


def write(found: Found, sizes: Mapping[str, Any], facts: Sequence[str]) -> str:
    """Write the page."""
    speed = (
        f"*alone*: a run of {STEPS} steps at a time, median of {sizes['singles']}. *many*: "
        f"{sizes['many']} such runs started at once, until the last one's end; median of "
        f"{sizes['repeat']}. Fan-outs end when one place has all results. *MB*: memory (RSS) "
        "of the processes that do the steps, afterwards."
    )
    storage = (
        f"Bytes stored per turn of an agent; a turn is an answer and a call's result of "
        f"{len(PAYLOAD)} bytes each, so {2 * len(PAYLOAD)} bytes are data."
    )
    parts = [
        [_HEAD.rstrip()],
        facts,
        ["## Speed", "", speed, "", *_speed(found, sizes)],
        ["## Storage", "", storage, "", *_storage(found, sizes)],
        ["## What they are", "", *_facts(found)],
        ["## What is missing", "", *(_missing(found) or ["Nothing."])],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"
