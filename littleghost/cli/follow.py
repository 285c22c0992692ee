"""Watches a run to its end: live on a terminal, lines in a pipe, events as JSON lines."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from littleghost.cli import exits
from littleghost.cli.escape import one_line
from littleghost.cli.options import Options
from littleghost.cli.output import duration, json_line, note, say
from littleghost.cli.pending import waiting_note
from littleghost.cli.plain import PlainView
from littleghost.cli.progress import Progress
from littleghost.run import Run
from littleghost.wiring import runtime

if TYPE_CHECKING:
    from littleghost.cli.live import LiveView


def follow(run: Run, options: Options, *, after: int = 0, seen: int = 0, need_worker: bool) -> int:
    """Show a run until it has ended, and give its exit code.

    Ctrl-C ends the watching only.

    Args:
        after: The id of the last event that is not wanted any more.
        seen: The id of the last event that there was before the watching began.
        need_worker: Whether to give up when no live worker serves the run.
    """
    progress = Progress()
    told = waiting_note(run)
    if told and options.verbosity >= 0:
        note(told)
    try:
        if options.as_json:
            for event in run.events(after, need_worker=need_worker):
                json_line(event.to_json())
        else:
            _watch(run, progress, after, seen, need_worker)
    except KeyboardInterrupt:
        return leave(run)
    status, failure = run.status, run.error
    if not options.as_json:
        say(_summary(run, progress))
        if failure is not None and failure.detail:
            note(f"littleghost: {failure.type}: {one_line(failure.detail, 1000)}")
    return exits.of_run(status, failure.code if failure else "")


def leave(run: Run) -> int:
    """Stop watching a run that goes on; say how to come back to it and how to stop it.

    A run in this process's own worker cannot go on without it, so it is cancelled.
    """
    if runtime().is_embedded:
        run.cancel("its process was interrupted")
        note(f"\ncancelled {run.id}: it cannot outlive this process, whose Redis is a private one")
    else:
        note(
            f"\ndetached; the run goes on.\n  watch it again:  littleghost tail {run.id}\n"
            f"  stop it:         littleghost cancel {run.id}"
        )
    return exits.INTERRUPTED


def choose_view() -> PlainView | LiveView:
    """Give the view that suits stdout."""
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    if is_terminal and importlib.util.find_spec("rich") is not None:
        from littleghost.cli.live import LiveView

        return LiveView()
    return PlainView()


def _watch(run: Run, progress: Progress, after: int, seen: int, need_worker: bool) -> None:
    chosen: Any = choose_view()
    with chosen as view:
        view.watch(progress)
        for event in run.events(after, need_worker=need_worker):
            # Events carry no times: durations are the watcher's own, and only of what it saw.
            now = time.monotonic() if int(event.id) > seen else None
            for line in progress.feed(event, now):
                view.show(line)


def _summary(run: Run, progress: Progress) -> str:
    usage = run.usage
    out = usage.output + usage.reasoning
    parts = [f"{duration(run.duration_s)}", f"{usage.total - out} tokens in, {out} out"]
    if progress.turn_count:
        calls = _counted(progress.call_count, "tool call")
        parts.insert(1, f"{_counted(progress.turn_count, 'turn')}, {calls}")
    return f"  {' · '.join(parts)} · {run.id}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
