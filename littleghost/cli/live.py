"""Shows a run live on a terminal: settled lines scroll up, what is going on stays below them.

Of a composite, the whole tree stays below, and remains when the run has ended.
"""

from __future__ import annotations

import time
from types import TracebackType

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from littleghost.cli.escape import visible
from littleghost.cli.live_rows import Row, fit, going_on
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
    "way": "magenta",
    "step": "green",
    "ask": "bold magenta",
    "answer": "magenta",
    "end": "bold",
}
# What is said in a line though the tree shows it, too: people copy it.
BESIDE_TREE = frozenset({"run", "ask", "answer"})
FINAL_ROWS = 100
# Rows of the terminal that the region leaves free, for the line that scrolls and for the cursor.
SPARE_ROWS = 2


class LiveView:
    """Prints settled lines and keeps a region below for the rest."""

    def __init__(self, console: Console | None = None) -> None:
        """Take a console; stdout unless given.

        Args:
            console: One without markup, highlighting and emoji codes.
        """
        # Nothing in a line is markup, and nothing is guessed to be a number or an emoji.
        self._console = console or Console(markup=False, highlight=False, emoji=False)
        self._progress = Progress()
        self._level = 0
        self._end: Line | None = None
        self._live = Live(
            get_renderable=self.region,
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
        if self._progress.tree.is_composite:
            rows, _ = fit(self._progress.tree, None, FINAL_ROWS)
            self._console.print(self._drawn(rows))
            if self._progress.answer:
                self._console.print(Padding(Text(self._progress.answer), (1, 0, 1, 2)))
        if self._end is not None:
            self._console.print(styled(self._end))

    def watch(self, progress: Progress) -> None:
        """Say whose doings the region shows."""
        self._progress = progress

    def show(self, line: Line) -> None:
        """Print a settled line above the region, unless the tree says it all."""
        if line.mark == "end":
            self._end = line
        elif line.mark in BESIDE_TREE or not self._progress.tree.is_composite:
            self._console.print(styled(line))

    def region(self) -> Group:
        """Draw what is going on."""
        now, height = time.monotonic(), max(3, self._console.height - SPARE_ROWS)
        tree = self._progress.tree
        if tree.is_composite:
            rows, self._level = fit(tree, now, height, self._level)
        else:
            rows = going_on(tree, now, height)
            if not rows and not self._progress.outcome:
                rows = [Row((("… waiting for a worker", "dim"),))]
        return self._drawn(rows)

    def _drawn(self, rows: list[Row]) -> Group:
        return Group(*(self._cut(row) for row in rows))

    def _cut(self, row: Row) -> Text:
        """Write a row within the terminal's width."""
        text = Text.assemble(*row.parts, no_wrap=True, overflow="ellipsis")
        room = self._console.width - text.cell_len
        if not row.newest or room < 1:
            return text
        if row.lines == 1:
            return text.append(_ending(row.newest, room))
        lines = Text(visible(row.newest.strip())).wrap(self._console, max(20, room))
        shown = "\n".join(line.plain.rstrip() for line in lines[-row.lines :])
        indent = text.plain
        return Text(indent + shown.replace("\n", f"\n{indent}"), no_wrap=True, overflow="ellipsis")


def _ending(text: str, room: int) -> str:
    """Give the end of a text, cut at its beginning to so many cells."""
    if cell_len(text) <= room:
        return text
    text = text[-room:]
    while text and cell_len(text) > room - 1:
        text = text[1:]
    return f"…{text}"


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
