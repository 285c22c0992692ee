"""Writes results to stdout and remarks to stderr."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from littleghost.cli.escape import visible

STATUS_COLOURS = {
    "completed": "green",
    "ok": "green",
    "failed": "red",
    "fail": "red",
    "partial": "yellow",
    "cancelled": "yellow",
    "warn": "yellow",
    "stopping": "yellow",
    "running": "cyan",
    "queued": "cyan",
    "waiting": "magenta",
}


def json_line(value: Any) -> None:
    """Write one JSON value on a line of stdout; plain ASCII, harmless on a terminal."""
    click.echo(json.dumps(value, separators=(", ", ": "), default=str))


def say(text: str = "") -> None:
    """Write text to stdout; what a terminal would obey is escaped."""
    click.echo(visible(text))


def note(text: str) -> None:
    """Write a remark to stderr."""
    click.echo(visible(text), err=True)


def coloured(text: str, width: int = 0) -> str:
    """Pad a status word and colour it; the colour is dropped where stdout is no terminal."""
    return click.style(text.ljust(width), fg=STATUS_COLOURS.get(text))


def table(rows: Sequence[Sequence[str]], status_column: int) -> None:
    """Write rows in columns; the cells must be on one line and safe.

    Args:
        status_column: The column whose words are coloured.
    """
    if not rows:
        return
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        cells = [
            coloured(cell, width) if index == status_column else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def duration(seconds: float | None) -> str:
    """Write a duration for people: 0.42 s, 12.3 s, 4 min 10 s, 3 h 2 min."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
