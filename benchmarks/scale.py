"""What many runs cost while they wait and while they work, and a model of larger fleets from it.

python -m benchmarks.scale [--queued 100000] [--drain 5000] [--open 10000] [--idle 60]

Queued: that many runs are created by one caller, a hundred at once; then one worker does some.
Open: that many runs wait, half of them in a sleep of a workflow and half for a person's approval.
The model prints what the measured costs allow for; its lines say that they are not measured.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.bench_app import Asking, Bench, Sleeper
from benchmarks.rig import Rig, Worker, wait_until
from benchmarks.scale_model import RUN_TASKS, Cost, foretold, model


class Look:
    """What Redis and a worker have used up until now."""

    def __init__(self, rig: Rig, worker: Worker | None = None) -> None:
        client: Any = rig.runtime.client
        found = client.info("everything")
        stats = found.get("cmdstat_evalsha", {"calls": 0})
        self.scripts: int = stats["calls"]
        self.commands: int = found["total_commands_processed"]
        self.held: int = found["used_memory"]
        self.aof: int = found["aof_current_size"]
        self.keys: int = client.dbsize()
        self.redis_s = rig.redis_cpu_s()
        self.worker_s = worker.cpu_s() if worker else 0.0
        self.at = time.monotonic()


def queued_rows(rig: Rig, count: int) -> list[report.Figure]:
    """Create runs that nobody works on yet."""
    Bench.enqueue("chain 1")
    rig.clear()
    before, cpu = Look(rig), time.process_time()
    for start in range(0, count, 1000):
        Bench.enqueue_many(["chain 1"] * min(1000, count - start), lane="batch")
    after = Look(rig)
    took, cpu = after.at - before.at, time.process_time() - cpu
    name = f"{count:,} runs queued"
    return [
        report.Figure(f"{name}: runs created per second by one caller", count / took, ""),
        report.Figure(f"{name}: caller's CPU per run", cpu * 1000 / count, "ms"),
        report.Figure(
            f"{name}: Redis CPU per run", (after.redis_s - before.redis_s) * 1000 / count, "ms"
        ),
        report.Figure(
            f"{name}: Redis memory of each", (after.held - before.held) / count / 1000, "kB"
        ),
        report.Figure(f"{name}: Redis memory of all", (after.held - before.held) / 1e6, "MB"),
        report.Figure(f"{name}: keys of each", (after.keys - before.keys) / count, ""),
    ]


def idle_rows(rig: Rig, worker: Worker, name: str, seconds: float) -> list[report.Figure]:
    """Watch what a waiting fleet of one worker costs when nothing happens."""
    before = Look(rig, worker)
    time.sleep(seconds)
    after = Look(rig, worker)
    took = after.at - before.at
    return [
        report.Figure(f"{name}: Redis CPU", (after.redis_s - before.redis_s) / took * 100, "%"),
        report.Figure(f"{name}: worker CPU", (after.worker_s - before.worker_s) / took * 100, "%"),
        report.Figure(
            f"{name}: commands per second", (after.commands - before.commands) / took, ""
        ),
    ]


def drained(rig: Rig, workers: list[Worker], runs: int) -> tuple[Cost, float]:
    """Let workers do some of the queued runs; gives the cost and the tasks per second."""
    # Runs that are half done at either end do not matter among thousands.
    start = rig.live()
    wait_until(lambda: rig.live() <= start - runs // 20)
    cpu = sum(worker.cpu_s() for worker in workers)
    first, before = rig.live(), Look(rig)
    wait_until(lambda: rig.live() <= first - runs, 3600)
    after, tasks = Look(rig), (first - rig.live()) * RUN_TASKS
    cost = Cost(
        worker_ms=(sum(worker.cpu_s() for worker in workers) - cpu) * 1000 / tasks,
        redis_ms=(after.redis_s - before.redis_s) * 1000 / tasks,
        scripts=(after.scripts - before.scripts) / tasks,
        written_bytes=(after.aof - before.aof) / tasks,
        held_bytes=(after.held - before.held) / tasks,
        keys=(after.keys - before.keys) / tasks,
    )
    return cost, tasks / (after.at - before.at)


def drain_rows(rig: Rig, queued: int, runs: int) -> tuple[list[report.Figure], Cost, float]:
    """Drain with one worker, then with two: the model has to foretell the second."""
    workers = [rig.worker("ours", "lg.turns.batch,lg.tools.batch")]
    cost, rate = drained(rig, workers, runs)
    rows = cost_rows(cost, rate, f"{runs:,} of {queued:,} runs done")
    workers.append(rig.worker("ours", "lg.turns.batch,lg.tools.batch"))
    two, both = drained(rig, workers, runs)
    for worker in workers:
        worker.stop()
    rig.clear()
    told = foretold(cost, 2, os.cpu_count() or 1)
    rows += [
        report.Figure("two workers: CPU per task over one's", two.worker_ms / cost.worker_ms),
        report.Figure("two workers: Redis CPU per task over one's", two.redis_ms / cost.redis_ms),
        report.Figure("two workers: tasks per second", both, ""),
        report.Figure("two workers: measured over what the model foretells", both / told),
    ]
    return rows, cost, rate


def cost_rows(cost: Cost, rate: float, name: str) -> list[report.Figure]:
    return [
        report.Figure(f"{name}: tasks per second of one worker", rate, ""),
        report.Figure(f"{name}: worker CPU per task", cost.worker_ms, "ms"),
        report.Figure(f"{name}: Redis CPU per task", cost.redis_ms, "ms"),
        report.Figure(f"{name}: scripts (round trips) per task", cost.scripts, ""),
        report.Figure(f"{name}: append-only file per task", cost.written_bytes / 1000, "kB"),
        report.Figure(f"{name}: Redis memory added per task", cost.held_bytes / 1000, "kB"),
    ]


def open_rows(rig: Rig, count: int, seconds: float) -> tuple[list[report.Figure], float]:
    """Open runs that wait for a time or for a person, and watch what they cost."""
    worker = rig.worker("ours", "lg.turns,lg.tools")
    wait_until(lambda: bool(rig.runtime.workers.list()), 30)
    none = idle_rows(rig, worker, "no run open", seconds / 2)
    before = Look(rig, worker)
    half = count // 2
    for kind in (Sleeper, Asking):
        for start in range(0, half, 1000):
            kind.enqueue_many(["chain 1"] * min(1000, half - start))
    wait_until(lambda: _waiting(rig) >= 2 * half, 1200)
    opened_s = time.monotonic() - before.at
    name = f"{2 * half:,} runs open"
    held = Look(rig, worker)
    # The first look at a new run comes after a minute, so it is in here when `seconds` is more;
    # from then on, one each five minutes.
    waiting = idle_rows(rig, worker, f"{name}, the next {seconds:.0f} s", seconds)
    audit_us = _audit_us(rig)
    rows = [
        *none,
        report.Figure(f"{name}: seconds until all waited", opened_s, "s"),
        report.Figure(
            f"{name}: Redis memory of each", (held.held - before.held) / (2 * half) / 1000, "kB"
        ),
        *waiting,
        report.Figure(f"{name}: time of a look at one in Redis", audit_us, "µs"),
    ]
    worker.stop()
    rig.clear()
    return rows, audit_us


def _waiting(rig: Rig) -> int:
    """Count the timers: each sleep has one, and each question that a person may answer."""
    pipeline = rig.runtime.client.pipeline(transaction=False)
    for partition in range(rig.runtime.settings.partitions):
        pipeline.zcard(rig.runtime.journal.prefix(partition) + "timers")
    return sum(pipeline.execute())


def _audit_us(rig: Rig, sample: int = 500) -> float:
    """Measure the look that each open run gets from time to time."""
    from littleghost.journal.keeper import Keeper

    journal = rig.runtime.journal
    client: Any = rig.runtime.client
    runs = client.zrange(journal.prefix(0) + "live", 0, sample - 1)
    keeper = Keeper(journal, rig.runtime.workers, lease_s=3, queue_lengths=lambda _: {})
    before = client.info("commandstats")["cmdstat_evalsha"]
    for run_id in runs:
        verdict = keeper.audit(run_id, mend=False)
        assert verdict in ("timer", "person"), verdict
    after = client.info("commandstats")["cmdstat_evalsha"]
    # Other scripts run meanwhile; they are few.
    return (after["usec"] - before["usec"]) / (after["calls"] - before["calls"])


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--drain", type=int, default=5000)
    parser.add_argument("--open", type=int, default=10_000)
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--cost", type=Path, help="write the cost per task to this file as JSON")
    options = parser.parse_args()
    rig = Rig()
    try:
        figures = queued_rows(rig, options.queued)
        drains, cost, rate = drain_rows(rig, options.queued, options.drain)
        opened, audit_us = open_rows(rig, options.open, options.idle)
        report.write(options, [*figures, *drains, *opened])
        minutes = options.queued * RUN_TASKS / rate / 60
        print(f"Extrapolated: one worker does all {options.queued:,} runs in {minutes:.1f} minutes")
        print("\n".join(model(cost, audit_us)))
        if options.cost is not None:
            options.cost.write_text(json.dumps(asdict(cost), indent=1))
    finally:
        rig.stop()


if __name__ == "__main__":
    main()
