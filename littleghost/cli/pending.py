"""Shows what a run waits for, and which command answers it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from littleghost.cli.conversation import arguments_text
from littleghost.cli.escape import one_line
from littleghost.pending import Pending
from littleghost.run import Run


def pending_lines(run_id: str, pending: list[Pending]) -> Iterator[str]:
    """Write what a run waits for, for people: two lines each."""
    for item in pending:
        until = f"  until {item.expires_at:%Y-%m-%d %H:%M:%S} UTC" if item.expires_at else ""
        who = one_line(item.participant, 64)
        if item.kind == "signal":
            yield f"  {who} waits for the signal {one_line(item.id)}{until}"
        else:
            call = f"{one_line(item.tool, 64)} {arguments_text(item.arguments, 1000)}"
            yield f"  {who} asks for {call}{until}"
        yield f"      {answer_command(run_id, item.kind, item.id)}"


def answer_command(run_id: str, kind: str, pending_id: str) -> str:
    """Give the command that lets a run go on."""
    named = shlex.quote(pending_id)
    if kind == "signal":
        return f"littleghost signal {run_id} {named} JSON"
    return f"littleghost respond {run_id} {named} --approve"


def waiting_note(run: Run) -> str:
    """Say what a run waits for, as a remark; empty when it does not wait."""
    if run.status != "waiting":
        return ""
    lines = "\n".join(pending_lines(run.id, run.pending))
    return f"littleghost: {run.id} waits:\n{lines}" if lines else ""
