"""Cost of the engine against plain Celery on the same broker and pool, in one run.

python -m benchmarks.engine [--runs 600]
"""

from __future__ import annotations

import argparse
import statistics
import time

from celery import chain

from benchmarks.bench_app import Bench, Counter, last, noop, step
from benchmarks.rig import Rig, wait_until

PAYLOAD = "x" * 200


def drain(rig: Rig, worker, send, is_done) -> tuple[float, float, float]:
    """Queue work before a frozen worker, let it go, and measure wall, worker CPU, Redis CPU."""
    worker.freeze()
    send()
    cpu, redis_cpu, started = worker.cpu_s(), rig.redis_cpu_s(), time.monotonic()
    worker.thaw()
    wait_until(is_done)
    return (
        time.monotonic() - started,
        worker.cpu_s() - cpu,
        rig.redis_cpu_s() - redis_cpu,
    )


def celery_rows(rig: Rig, count: int, pool: str) -> list[tuple[str, int, float, float, float]]:
    counter = Counter(rig.counter_path)
    for task in (noop, step, last):
        task.app.conf.broker_url = rig.url
    worker = rig.worker("celery", "celery", pool)
    rows = []

    def send_noops() -> None:
        counter.reset()
        for _ in range(count * 3):
            noop.apply_async((PAYLOAD,), queue="celery")

    def send_chains() -> None:
        counter.reset()
        for _ in range(count):
            chain(
                step.s(PAYLOAD).set(queue="celery"),
                step.s().set(queue="celery"),
                last.s().set(queue="celery"),
            ).apply_async(queue="celery")

    rows.append(
        (
            "celery no-op task",
            count * 3,
            *drain(rig, worker, send_noops, lambda: counter.value >= count * 3),
        )
    )
    rows.append(
        (
            "celery chain of 3",
            count * 3,
            *drain(rig, worker, send_chains, lambda: counter.value >= count),
        )
    )
    worker.stop()
    rig.clear()
    return rows


def engine_rows(rig: Rig, count: int, pool: str) -> list[tuple[str, int, float, float, float]]:
    rows = []

    def send() -> None:
        for _ in range(count):
            Bench.enqueue("chain 1")

    worker = rig.worker("ours", "lg.turns,lg.tools", pool)
    rows.append(
        ("run of 3 tasks, in place", count * 3, *drain(rig, worker, send, lambda: rig.live() == 0))
    )
    worker.stop()
    rig.clear()
    worker = rig.worker("ours", "lg.turns,lg.tools", pool, LITTLEGHOST_IN_PLACE_MAX="1")
    rows.append(
        (
            "run of 3 tasks, each queued",
            count * 3,
            *drain(rig, worker, send, lambda: rig.live() == 0),
        )
    )
    worker.stop()
    rig.clear()
    return rows


def flat_rows(rig: Rig) -> list[tuple[int, float, float]]:
    """Milliseconds of worker CPU and bytes per task at different lengths of one run."""
    rows = []
    worker = rig.worker("ours", "lg.turns,lg.tools")
    for length in (5, 50, 500):
        Bench.enqueue("chain 1").wait()
        repeat = max(1, 500 // length)
        cpu = worker.cpu_s()
        started = time.monotonic()
        for _ in range(repeat):
            run = Bench.enqueue(f"chain {length}")
            run.wait()
        tasks = repeat * (2 * length + 1)
        wall_ms = (time.monotonic() - started) * 1000 / tasks
        rows.append((2 * length, (worker.cpu_s() - cpu) * 1000 / tasks, wall_ms))
    worker.stop()
    rig.clear()
    return rows


def enqueue_cost() -> tuple[float, float]:
    for _ in range(50):
        Bench.enqueue("chain 1")
    costs = []
    for _ in range(10):
        cpu, started = time.process_time(), time.monotonic()
        for _ in range(50):
            Bench.enqueue("chain 1")
        costs.append(
            ((time.process_time() - cpu) * 1000 / 50, (time.monotonic() - started) * 1000 / 50)
        )
    return statistics.median(row[0] for row in costs), statistics.median(row[1] for row in costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--pool", default="threads")
    options = parser.parse_args()
    rig = Rig()
    try:
        rows = celery_rows(rig, options.runs, options.pool) + engine_rows(
            rig, options.runs, options.pool
        )
        chain_cpu, chain_wall = rows[1][3] / rows[1][1], rows[1][2] / rows[1][1]
        print(
            f"{'':34}{'tasks/s':>9}{'CPU ms':>9}{'Redis ms':>9}{'CPU/chain':>11}{'rate/chain':>11}"
        )
        for name, tasks, wall, cpu, redis_cpu in rows:
            print(
                f"{name:34}{tasks / wall:9.0f}{cpu * 1000 / tasks:9.3f}"
                f"{redis_cpu * 1000 / tasks:9.3f}"
                f"{cpu / tasks / chain_cpu:11.2f}{chain_wall / (wall / tasks):11.2f}"
            )
        for length, cpu_ms, wall_ms in flat_rows(rig):
            print(
                f"run of {length:5} tasks: {cpu_ms:.3f} ms worker CPU, {wall_ms:.3f} ms wall, each"
            )
        cpu_ms, wall_ms = enqueue_cost()
        print(f"enqueue: {cpu_ms:.3f} ms CPU, {wall_ms:.3f} ms wall per run")
    finally:
        rig.stop()


if __name__ == "__main__":
    main()
