"""Shows a run live on a terminal: settled lines scroll up, what is going on stays below them."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from littleghost.cli.escape import visible
from littleghost.cli.output import STATUS_COLOURS, duration
from littleghost.cli.plain import MARKS
from littleghost.cli.progress import Line, Progress

STYLES = {
    "run": "bold",
    "start": "cyan",
    "turn": "bold cyan",
    "text": "",
    "call": "yellow",
    "result": "green",
    "error": "red",
    "retry": "yellow",
    "ask": "bold magenta",
    "answer": "magenta",
    "end": "bold",
}
# Lines of streaming text that are shown of one turn; all of it is printed when the turn is done.
TEXT_LINES = 8
# Things going on at once that are shown.
SHOWN = 12


class LiveView:
    """Prints settled lines and keeps a region below for the rest."""

    def __init__(self) -> None:
        # Nothing in a line is markup, and nothing is guessed to be a number or an emoji.
        self._console = Console(markup=False, highlight=False, emoji=False)
        self._progress = Progress()
        self._live = Live(
            get_renderable=self._region,
            console=self._console,
            refresh_per_second=12,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        self._live.stop()

    def show(self, line: Line, progress: Progress) -> None:
        """Print a settled line above the region."""
        self._progress = progress
        self._console.print(styled(line))

    def watch(self, progress: Progress) -> None:
        """Say whose doings the region shows."""
        self._progress = progress

    def _region(self) -> Group:
        now = time.monotonic()
        rows: list[Table | Text] = []
        for turn in list(self._progress.turns.values()):
            doing = "writes" if turn.text else "thinks" if turn.reasoning else "waits for the model"
            who = f"[{turn.agent}] " if turn.agent else ""
            rows.append(_spinning(f"{who}turn {turn.number} {doing}", now - turn.began, "cyan"))
            if turn.text:
                rows.append(self._last_lines(turn.text))
        for call in list(self._progress.calls.values()):
            who = f"[{call.agent}] " if call.agent else ""
            doing = "waits for a person" if call.asked else "is running"
            rows.append(_spinning(f"  {who}{call.name} {doing}", now - call.began, "yellow"))
        if not rows and not self._progress.outcome:
            rows.append(Text("… waiting", style="dim"))
        hidden = len(rows) - SHOWN
        if hidden > 0:
            rows = [*rows[:SHOWN], Text(f"… and {hidden} more", style="dim")]
        return Group(*rows)

    def _last_lines(self, text: str) -> Text:
        wide = max(20, self._console.width - 4)
        lines = Text(visible(text.strip())).wrap(self._console, wide)
        shown = Text("\n").join(lines[-TEXT_LINES:])
        return Text.assemble("    ", Text("\n    ").join(shown.split("\n")))


def styled(line: Line) -> Padding | Table:
    """Write a settled line with its colour."""
    style = STYLES[line.mark]
    if line.mark == "end":
        style = f"bold {STATUS_COLOURS.get(line.text.partition(':')[0], '')}"
    who = f"[{line.agent}] " if line.agent else ""
    if line.mark == "text":
        return Padding(Text(who + line.text, style=style), (0, 0, 0, 2))
    took = f"  {duration(line.seconds)}" if line.seconds is not None else ""
    mark = f"{MARKS[line.mark]} "
    body = Text.assemble((line.text, "" if line.mark in ("result", "call") else style))
    # Two columns, so that long lines go on below their beginning.
    grid = Table.grid()
    grid.add_column(width=len(mark), no_wrap=True)
    grid.add_column()
    grid.add_row(Text(mark, style=style), Text.assemble((who, "dim"), body, (took, "dim")))
    return grid


def _spinning(text: str, seconds: float, style: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(
        Spinner("dots", style=style), Text(text, style=style), Text(duration(seconds), style="dim")
    )
    return grid
