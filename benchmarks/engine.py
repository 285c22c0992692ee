"""Cost of the engine against plain Celery on the same broker and pool, in one run.

python -m benchmarks.engine [--runs 600] [--repeat 3] [--pool prefork]

Each round measures Celery and us one after the other; ratios are taken within a round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from celery import chain

from benchmarks import report
from benchmarks.bench_app import Bench, Counter, last, noop, step
from benchmarks.rig import Rig, Worker, wait_until

PAYLOAD = "x" * 200
RUN_TASKS = 3
# Tasks of one run; an agent's task is a turn or a call, and its last turn makes the number odd.
LENGTHS = (10, 100, 1000)


@dataclass(frozen=True)
class Drain:
    """What emptying a queue took.

    Attributes:
        tasks: How many tasks there were.
        wall_s: From letting the worker go to the last one's end.
        cpu_s: CPU time of the worker with its children.
        redis_s: CPU time of Redis.
    """

    tasks: int
    wall_s: float
    cpu_s: float
    redis_s: float

    @property
    def rate(self) -> float:
        """Tasks per second."""
        return self.tasks / self.wall_s

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of worker CPU per task."""
        return self.cpu_s * 1000 / self.tasks

    @property
    def redis_ms(self) -> float:
        """Milliseconds of Redis CPU per task."""
        return self.redis_s * 1000 / self.tasks


def drain(
    rig: Rig,
    worker: Worker,
    runs: int,
    send: Callable[[int], None],
    is_done: Callable[[int], bool],
) -> Drain:
    """Queue runs before a frozen worker, let it go, and measure; a few before that warm it up."""
    warming = max(10, runs // 10)
    send(warming)
    wait_until(lambda: is_done(warming))
    worker.freeze()
    send(runs)
    cpu, redis_cpu, started = worker.cpu_s(), rig.redis_cpu_s(), time.monotonic()
    worker.thaw()
    wait_until(lambda: is_done(runs))
    took = time.monotonic() - started
    return Drain(runs * RUN_TASKS, took, worker.cpu_s() - cpu, rig.redis_cpu_s() - redis_cpu)


def celery_drains(rig: Rig, count: int, pool: str) -> dict[str, Drain]:
    """Measure Celery with its defaults: single tasks, and chains of 3."""
    counter = Counter(rig.counter_path)
    for task in (noop, step, last):
        task.app.conf.broker_url = rig.url
    worker = rig.worker("celery", "celery", pool)

    def send_noops(runs: int) -> None:
        counter.reset()
        for _ in range(runs * RUN_TASKS):
            noop.apply_async((PAYLOAD,), queue="celery")

    def send_chains(runs: int) -> None:
        counter.reset()
        for _ in range(runs):
            chain(
                step.s(PAYLOAD).set(queue="celery"),
                step.s().set(queue="celery"),
                last.s().set(queue="celery"),
            ).apply_async(queue="celery")

    found = {
        "celery no-op task": drain(
            rig, worker, count, send_noops, lambda runs: counter.value >= runs * RUN_TASKS
        ),
        "celery chain of 3": drain(
            rig, worker, count, send_chains, lambda runs: counter.value >= runs
        ),
    }
    worker.stop()
    rig.clear()
    return found


def our_drains(rig: Rig, count: int, pool: str) -> dict[str, Drain]:
    """Measure runs of 3 tasks, with the next task run in place and with each queued."""
    found = {}
    counter = Counter(rig.counter_path)

    def send(runs: int) -> None:
        counter.reset()
        for _ in range(runs):
            Bench.enqueue("chain 1")

    def is_done(runs: int) -> bool:
        # Redis is asked only at the end, since Celery's chains are waited for without it.
        return counter.value >= runs and rig.live() == 0

    for name, extra in (
        ("run of 3 tasks, in place", {}),
        ("run of 3 tasks, each queued", {"LITTLEGHOST_IN_PLACE_MAX": "1"}),
    ):
        worker = rig.worker("ours", "lg.turns,lg.tools", pool, **extra)
        found[name] = drain(rig, worker, count, send, is_done)
        worker.stop()
        rig.clear()
    return found


def flat_costs(rig: Rig) -> dict[int, tuple[float, float]]:
    """Milliseconds of worker CPU and of time per task, at different lengths of one run."""
    found = {}
    worker = rig.worker("ours", "lg.turns,lg.tools")
    Bench.enqueue("chain 50").wait()
    for length in LENGTHS:
        cpu, started = worker.cpu_s(), time.monotonic()
        repeat = max(1, LENGTHS[-1] // length)
        for _ in range(repeat):
            Bench.enqueue(f"chain {length // 2}").wait()
        tasks = repeat * (length + 1)
        wall_ms = (time.monotonic() - started) * 1000 / tasks
        found[length] = ((worker.cpu_s() - cpu) * 1000 / tasks, wall_ms)
    worker.stop()
    rig.clear()
    return found


def show(rounds: list[dict[str, Drain]]) -> None:
    chains = [each["celery chain of 3"] for each in rounds]
    print(f"{'':34}{'tasks/s':>9}{'CPU ms':>9}{'Redis ms':>9}{'CPU/chain':>11}{'rate/chain':>11}")
    for name in rounds[0]:
        rows = [each[name] for each in rounds]
        pairs = list(zip(rows, chains, strict=True))
        print(
            f"{name:34}{statistics.median(row.rate for row in rows):9.0f}"
            f"{statistics.median(row.cpu_ms for row in rows):9.3f}"
            f"{statistics.median(row.redis_ms for row in rows):9.3f}"
            f"{statistics.median(row.cpu_ms / link.cpu_ms for row, link in pairs):11.2f}"
            f"{statistics.median(row.rate / link.rate for row, link in pairs):11.2f}"
        )


def figures_of(rounds: list[dict[str, Drain]]) -> list[report.Figure]:
    found = []
    for name, most in (("run of 3 tasks, each queued", 0.5), ("run of 3 tasks, in place", 0.3)):
        pairs = [(each[name], each["celery chain of 3"]) for each in rounds]
        found += [
            report.median_of(
                f"worker CPU per task, {name}, over a step of a Celery chain",
                [ours.cpu_ms / link.cpu_ms for ours, link in pairs],
                most=most,
            ),
            report.median_of(
                f"rate, {name}, over Celery chains of 3",
                [ours.rate / link.rate for ours, link in pairs],
                least=2,
            ),
            report.median_of(f"worker CPU per task, {name}", [o.cpu_ms for o, _ in pairs], "ms"),
            report.median_of(f"Redis CPU per task, {name}", [o.redis_ms for o, _ in pairs], "ms"),
        ]
    links = [each["celery chain of 3"] for each in rounds]
    found += [
        report.median_of("worker CPU per step, Celery chain", [o.cpu_ms for o in links], "ms"),
        report.median_of("Redis CPU per step, Celery chain", [o.redis_ms for o in links], "ms"),
    ]
    return found


def flat_figures(rounds: list[dict[int, tuple[float, float]]]) -> list[report.Figure]:
    first = LENGTHS[0]
    # Flat: what is left of growth is less than the noise between two rounds.
    return [
        report.median_of(
            f"worker CPU per task in a run of {length:,} tasks, over one of {first}",
            [each[length][0] / each[first][0] for each in rounds],
            most=1.15,
        )
        for length in LENGTHS[1:]
    ]


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pool", default="threads")
    options = parser.parse_args()
    rig = Rig()
    try:
        rounds = [
            celery_drains(rig, options.runs, options.pool)
            | our_drains(rig, options.runs, options.pool)
            for _ in range(options.repeat)
        ]
        show(rounds)
        flat = [flat_costs(rig) for _ in range(options.repeat)]
        for length in LENGTHS:
            costs = [each[length] for each in flat]
            cpu_ms, wall_ms = (statistics.median(pair) for pair in zip(*costs, strict=True))
            print(f"run of {length:5} tasks: {cpu_ms:.3f} ms worker CPU, {wall_ms:.3f} ms, each")
        report.write(options, [*figures_of(rounds), *flat_figures(flat)])
    finally:
        rig.stop()


if __name__ == "__main__":
    main()
