"""Proves on a live journal that every unfinished run can still end, or names those that cannot.

A run can end when something will move it on: a ready task, a task leased by a live worker (or one
that the keeper takes back from a dead one), a timer, a person or a signal that it waits for, or an
earlier run of its session.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from littleghost.cli.checks import Check
from littleghost.cli.find import SEARCHED

if TYPE_CHECKING:
    from littleghost.wiring import Runtime

VIOLATORS_SHOWN = 20


def prove_runs(work: Runtime) -> list[Check]:
    """Look at every unfinished run; nothing is changed."""
    indexed = work.records.live()
    workers = work.workers.list()
    served = {queue for worker in workers for queue in worker.queues}
    verdicts: dict[str, int] = {}
    found: list[Check] = []
    for run_id in indexed:
        verdict = work.keeper.audit(run_id, mend=False)
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        if verdict == "abandoned":
            found.append(Check("run", "fail", f"{run_id}: nothing is left that could move it on"))
        elif verdict in ("ready", "leased"):
            found += _held_up(work, run_id, served)
    found += _missing(work, set(indexed))
    found.sort(key=lambda check: check.status != "fail")
    failed = sum(check.status == "fail" for check in found)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    summary = f"{len(indexed)} unfinished runs ({counts or 'none'}), {failed} cannot end"
    cure = "the keeper mends them within a minute; if they stay, report them" if failed else ""
    return [Check("runs", "fail" if failed else "ok", summary, cure), *found[:VIOLATORS_SHOWN]]


def _held_up(work: Runtime, run_id: str, served: Collection[str]) -> list[Check]:
    """Find a run that could go on if there were workers for it."""
    record = work.records.find(run_id)
    if record is None or record.is_over:
        return []
    cure = "start one (littleghost worker all -A my.module)"
    queues = {str(task["q"]) for task in record.tasks.values() if task.get("s") == "ready"}
    found = [
        Check("run", "warn", f"{run_id}: waits in {queue}, which no live worker serves", cure)
        for queue in sorted(queues - set(served))
    ]
    # With any worker alive, one of them is the keeper and takes back what the dead ones held.
    if not served and any(task.get("w") for task in record.tasks.values()):
        detail = f"{run_id}: its worker is gone and no other is there to take its task back"
        found.append(Check("run", "warn", detail, cure))
    return found


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
