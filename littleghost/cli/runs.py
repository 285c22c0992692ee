"""`littleghost runs`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from littleghost.assembly import derived_id
from littleghost.cli.escape import one_line
from littleghost.cli.facts import run_facts
from littleghost.cli.find import SEARCHED
from littleghost.cli.options import Options, verb
from littleghost.cli.output import duration, json_line, note, table
from littleghost.registry import is_built

if TYPE_CHECKING:
    from littleghost.journal.record import RunRecord
    from littleghost.wiring import Runtime

STATUSES = (
    "queued",
    "running",
    "waiting",
    "stopping",
    "completed",
    "failed",
    "partial",
    "cancelled",
)


@verb("runs")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs of this status.")
@click.option("--agent", metavar="A", help="Only runs of this assembly: name, class or id.")
@click.option("--limit", type=click.IntRange(1, SEARCHED), default=20, show_default=True)
def command(options: Options, *, status: str | None, agent: str | None, limit: int) -> None:
    """List the newest runs, the newest first."""
    work = options.connect()
    found = list(_matching(work, status, agent, limit))
    if options.as_json:
        for record in found:
            json_line(run_facts(record))
        return
    now_ms = work.workers.now_ms() if found else 0
    rows = [_row(record, now_ms) for record in found]
    if rows:
        table([("RUN", "STATUS", "AGENT", "STARTED", "TOOK", "TOKENS"), *rows], status_column=1)
    elif options.verbosity >= 0:
        note("no runs" + (" match" if status or agent else " yet"))


def _matching(
    work: Runtime, status: str | None, agent: str | None, limit: int
) -> Iterator[RunRecord]:
    # Runs expire before their entries do, and filters leave some out: look at more than is shown.
    found = 0
    for run_id, _ in work.records.recent(SEARCHED if status or agent else limit * 4):
        record = work.records.find(run_id)
        if record is None or (status and record.status != status):
            continue
        if agent and agent not in (*_names(record.assembly), _label(record)):
            continue
        yield record
        found += 1
        if found == limit:
            return


def _names(assembly: str) -> tuple[str, ...]:
    """Give what an assembly may be called; its class need not be importable here."""
    name = assembly.rpartition(":")[2].rpartition(".")[2]
    return assembly, name, derived_id(name) if name else ""


def _label(record: RunRecord) -> str:
    """Give the assembly's own id, which is all that names one that a builder made."""
    return str(record.participants.get("0", {}).get("n", ""))


def _row(record: RunRecord, now_ms: int) -> tuple[str, ...]:
    took = (record.ended_ms or now_ms) - record.created_ms
    age_s = max(0.0, (now_ms - record.created_ms) / 1000)
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created_ms / 1000))
    return (
        record.run_id,
        record.status,
        one_line(_label(record) if is_built(record.assembly) else record.assembly, 48),
        f"{duration(age_s)} ago" if age_s < 86_400 else started,
        duration(took / 1000),
        str(record.usage.total),
    )
