"""Shows a run as lines, for pipes and logs."""

from __future__ import annotations

from types import TracebackType

import click

from littleghost.cli.output import duration
from littleghost.cli.progress import Line, Progress

MARKS = {
    "run": "run",
    "start": "+",
    "turn": "+",
    "text": " ",
    "call": "  →",
    "result": "  ←",
    "error": "  ✗",
    "retry": "  !",
    "way": ">",
    "step": "✓",
    "ask": "  ?",
    "answer": "  ·",
    "end": "=",
}


class PlainView:
    """Writes each settled line at once; text that is still streaming is not shown."""

    def __enter__(self) -> PlainView:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace

    def watch(self, progress: Progress) -> None:
        """Do nothing: what is going on is not shown."""
        del progress

    def show(self, line: Line) -> None:
        """Write a line."""
        click.echo(plain_text(line))


def plain_text(line: Line) -> str:
    """Write a settled line as text."""
    mark = MARKS[line.mark]
    who = f"[{line.agent}] " if line.agent else ""
    took = f"  ({duration(line.seconds)})" if line.seconds is not None else ""
    body = f"{who}{line.text}{took}"
    if line.mark == "text":
        body = body.replace("\n", "\n    ")
        return f"    {body}"
    return f"{mark} {body}"
