"""Figures that the benchmarks measure: as JSON for `python -m benchmarks`, and as one table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import redis

PACKAGES = ("littleghost", "celery", "kombu", "redis", "hiredis", "pydantic", "httpx")


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    Attributes:
        name: What was measured, and over what when it is a ratio.
        measured: The median, or the only value.
        unit: `x` for a ratio, else ms, s, kB, MB or nothing.
        goal: The value to reach, if there is one.
        most: Whether the goal is the most allowed; else it is the least.
        low: The smallest of the repeats.
        high: The largest of the repeats.
        count: How many repeats or samples there were.
    """

    name: str
    measured: float
    unit: str = "x"
    goal: float | None = None
    most: bool = True
    low: float | None = None
    high: float | None = None
    count: int = 1

    @property
    def margin(self) -> float | None:
        """How far the goal is surpassed: 1 is just met, 2 is twice as good."""
        if self.goal is None or not self.measured:
            return None
        return self.goal / self.measured if self.most else self.measured / self.goal


def median_of(
    name: str,
    values: Sequence[float],
    unit: str = "x",
    *,
    most: float | None = None,
    least: float | None = None,
) -> Figure:
    """Make a figure of repeats, with the most or the least that it may be."""
    return Figure(
        name,
        statistics.median(values),
        unit,
        most if most is not None else least,
        least is None,
        min(values),
        max(values),
        len(values),
    )


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """Make a benchmark's parser, with the option that all have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser


def write(options: argparse.Namespace, figures: Sequence[Figure]) -> None:
    """Print the figures, and write them where `--json` says."""
    print()
    for figure in figures:
        print(f"  {figure.name}: {measured(figure)}{_goal_said(figure)}")
    print(flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1))


def read(path: Path) -> list[Figure]:
    """Read what `write` wrote."""
    return [Figure(**row) for row in json.loads(path.read_text("utf-8"))]


def number(value: float) -> str:
    """Write a number with three digits that mean something."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if size >= 10 else 2 if size >= 1 or not size else 3}f}"


def measured(figure: Figure) -> str:
    """Write what was measured, with the smallest and largest of the repeats."""
    text = _with_unit(figure.measured, figure.unit)
    if figure.low is not None and figure.high is not None and figure.count > 1:
        text += f" ({number(figure.low)} to {number(figure.high)}, n={figure.count})"
    return text


def _with_unit(value: float, unit: str) -> str:
    return number(value) + (f" {unit}" if unit not in ("", "x") else unit)


def goal(figure: Figure) -> str:
    """Write the goal, or a dash."""
    if figure.goal is None:
        return "-"
    return ("≤ " if figure.most else "≥ ") + _with_unit(figure.goal, figure.unit)


def _goal_said(figure: Figure) -> str:
    margin = figure.margin
    if margin is None:
        return ""
    return f", goal {goal(figure)}: {'met' if margin >= 1 else 'MISSED'} ({margin:.2f})"


def table(rows: Sequence[tuple[Figure, str]]) -> str:
    """Write the table: figures, and the command of each."""
    lines = [
        "| figure | measured | goal | ratio | command |",
        "| --- | --- | --- | --- | --- |",
    ]
    for figure, command in rows:
        margin = figure.margin
        ratio = "-" if margin is None else f"{margin:.2f}{'' if margin >= 1 else ' **missed**'}"
        lines.append(
            f"| {figure.name} | {measured(figure)} | {goal(figure)} | {ratio} | `{command}` |"
        )
    return "\n".join(lines)


def processor() -> str:
    """Give the model and the number of processors."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        model = next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, IndexError):
        pass
    return f"{model}, {os.cpu_count()} processors"


def surroundings(client: redis.Redis) -> list[str]:
    """Give lines that say when, with what and on what it was measured."""
    server = client.info("server")
    kind = "Valkey" if "valkey_version" in server else "Redis"
    release = server.get("valkey_version") or server["redis_version"]
    found = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        f"- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"- Python {platform.python_version()}, {found}",
        f"- Server: {kind} {release}, append-only file, `everysec`, on the same machine",
        f"- Machine: {processor()}, {platform.system()}; load at the start {load}",
    ]
