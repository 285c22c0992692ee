"""Proves on a live journal that every unfinished run can still end, or names those that cannot.

A run can end when something will move it on: a ready task, a task leased by a live worker (or one
that the keeper takes back from a dead one), a timer, or an earlier run of its session.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from littleghost.cli.checks import Check
from littleghost.cli.find import SEARCHED

if TYPE_CHECKING:
    from littleghost.journal.record import RunRecord
    from littleghost.wiring import Runtime

VIOLATORS_SHOWN = 20


def prove_runs(work: Runtime) -> list[Check]:
    """Look at every unfinished run; nothing is changed."""
    indexed = work.records.live()
    alive = work.workers.alive()
    verdicts: dict[str, int] = {}
    found: list[Check] = []
    for run_id in indexed:
        verdict = work.keeper.audit(run_id, mend=False)
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        problem = _problem(work, run_id, verdict, alive)
        if problem is not None:
            found.append(problem)
    found += _missing(work, set(indexed))
    failed = [check for check in found if check.status == "fail"]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    summary = f"{len(indexed)} unfinished runs ({counts or 'none'}), {len(failed)} cannot end"
    cure = "the keeper mends them within a minute; if they stay, report them" if failed else ""
    return [Check("runs", "fail" if failed else "ok", summary, cure), *found[:VIOLATORS_SHOWN]]


def _problem(work: Runtime, run_id: str, verdict: str, alive: Collection[str]) -> Check | None:
    if verdict == "abandoned":
        return Check("run", "fail", f"{run_id}: nothing is left that could move it on")
    if verdict != "leased":
        return None
    record = work.records.find(run_id)
    if record is None or record.is_over or _holders(record) & set(alive) or alive:
        # With any worker alive, one of them is the keeper and takes back what the dead ones held.
        return None
    return Check(
        "run",
        "warn",
        f"{run_id}: its worker is gone and no other is there to take its task back",
        "start a worker (littleghost worker all -A my.module)",
    )


def _holders(record: RunRecord) -> set[str]:
    return {str(task["w"]) for task in record.tasks.values() if task.get("w")}


def _missing(work: Runtime, indexed: Collection[str]) -> list[Check]:
    """Find unfinished runs among the newest that the index of unfinished runs does not have."""
    found: list[Check] = []
    for run_id, _ in work.records.recent(min(SEARCHED, 1_000)):
        if run_id in indexed:
            continue
        record = work.records.find(run_id)
        # One that began after the index was read is there now.
        if record is None or record.is_over or run_id in work.records.live():
            continue
        found.append(
            Check("run", "fail", f"{run_id}: unfinished, but not in the index of live runs")
        )
    return found
