"""Fan-out and join of instant children against a Celery chord, on the same kind of worker.

python -m benchmarks.fanout [--counts 100,1000,10000] [--only ours]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from celery import Celery, chord
from celery.result import AsyncResult

from benchmarks import bench_app, report
from benchmarks.bench_app import Counter
from benchmarks.rig import Rig, Worker, wait_until
from littleghost.assembly import Assembly

PAYLOAD = "x" * 200
Fan = Callable[[int], None]
_SLOW_US = 1000


@dataclass(frozen=True)
class Row:
    name: str
    count: int
    wall_s: float
    cpu_s: float
    redis_s: float
    # Milliseconds and name of the longest command or script.
    longest_ms: float
    longest: str


class Slowlog:
    """The commands that took Redis longest."""

    def __init__(self, rig: Rig) -> None:
        self._client = rig.runtime.client
        self._client.config_set("slowlog-log-slower-than", _SLOW_US)
        self._client.config_set("slowlog-max-len", 100_000)
        scripts = rig.runtime.journal.scripts
        names = ("create", "claim", "commit", "emit", "sweep", "audit", "reclaim", "stop")
        self._names = {scripts._script(name)[0]: name for name in names}  # noqa: SLF001

    def reset(self) -> None:
        self._client.slowlog_reset()

    def rows(self) -> list[tuple[float, str]]:
        """Give milliseconds and names, the longest first."""
        found = []
        for entry in self._client.slowlog_get(100_000):
            name, *words = bytes(entry["command"]).decode("utf-8", "replace").split(" ")
            if name.upper() == "EVALSHA":
                name = self._names.get(words[0], "script")
            found.append((entry["duration"] / 1000, name))
        return sorted(found, reverse=True)


def measure(rig: Rig, worker: Worker, name: str, count: int, fan: Fan, repeat: int) -> list[Row]:
    slow, rows = Slowlog(rig), []
    for _ in range(repeat if count <= 1000 else 1):
        slow.reset()
        cpu, redis_cpu, started = worker.cpu_s(), rig.redis_cpu_s(), time.monotonic()
        fan(count)
        wall = time.monotonic() - started
        longest = slow.rows()[:1] or [(0.0, "-")]
        cpu, redis_cpu = worker.cpu_s() - cpu, rig.redis_cpu_s() - redis_cpu
        rows.append(Row(name, count, wall, cpu, redis_cpu, *longest[0]))
        rig.clear()
    return rows


def chord_rows(rig: Rig, counts: list[int], pool: str, repeat: int) -> list[Row]:
    counter = Counter(rig.counter_path)
    app = Celery("bench", broker=rig.url, backend=rig.url)
    step, join = (app.signature(name, queue="celery") for name in ("bench.step", "bench.join"))
    worker = rig.worker("celery", "celery", pool, BENCH_RESULTS="1")
    rows: list[Row] = []
    # Kept, since a collected one talks to its backend.
    results: list[AsyncResult] = []

    def fan(count: int) -> None:
        counter.reset()
        results.append(chord([step.clone((PAYLOAD,)) for _ in range(count)])(join.clone()))
        wait_until(lambda: counter.value == 1)

    fan(10)
    for count in counts:
        rows += measure(rig, worker, "celery chord", count, fan, repeat)
    worker.stop()
    for result in results:
        result.forget()
    rig.clear()
    return rows


def fan_of(rig: Rig, assembly: type[Assembly], width: str = "") -> Fan:
    def fan(count: int) -> None:
        run = assembly.enqueue(f"fan {count} {width}")
        key, _ = rig.runtime.journal.place(run.id)
        # One small command each time: the chord is waited for without any.
        wait_until(lambda: rig.runtime.client.hget(key, "ended"))
        assert run.status == "completed", run.error

    return fan


def our_rows(rig: Rig, counts: list[int], pool: str, repeat: int) -> list[Row]:
    worker = rig.worker("ours", "lg.turns,lg.tools", pool)
    rows: list[Row] = []
    workflow = fan_of(rig, bench_app.Fan)
    workflow(10)
    for count in counts:
        rows += measure(rig, worker, "workflow", count, workflow, repeat)
        rows += measure(rig, worker, "16 at once", count, fan_of(rig, bench_app.Fan, "16"), repeat)
        graph = getattr(bench_app, f"Fan{count}Graph", None)
        if graph is not None:
            rows += measure(rig, worker, "graph", count, fan_of(rig, graph), repeat)
    worker.stop()
    rig.clear()
    return rows


def show(rows: list[Row]) -> None:
    print(
        "All children may run at once, but in the rows `16 at once`, whose tasks need no message."
    )
    print(
        f"{'':14}{'children':>9}{'wall s':>9}{'ms/child':>9}{'CPU ms':>9}{'Redis ms':>9}"
        f"{'over chord':>11}  longest in Redis"
    )
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.count, row.name), []).append(row)
    for (count, name), group in sorted(groups.items()):
        wall = statistics.median(row.wall_s for row in group)
        cpu = statistics.median(row.cpu_s for row in group)
        redis_cpu = statistics.median(row.redis_s for row in group)
        # A busy machine only adds to it.
        least = min(group, key=lambda row: row.longest_ms)
        chords = groups.get((count, "celery chord"))
        ratio = statistics.median(row.wall_s for row in chords) / wall if chords else float("nan")
        print(
            f"{name:14}{count:9}{wall:9.2f}{wall * 1000 / count:9.3f}{cpu * 1000 / count:9.3f}"
            f"{redis_cpu * 1000 / count:9.3f}{ratio:11.2f}"
            f"  {least.longest_ms:.1f} ms {least.longest}"
        )


def figures_of(rows: list[Row]) -> list[report.Figure]:
    walls: dict[tuple[str, int], list[float]] = {}
    cpus: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        walls.setdefault((row.name, row.count), []).append(row.wall_s)
        cpus.setdefault((row.name, row.count), []).append(row.cpu_s * 1000 / row.count)
    found = []
    for (name, count), took in walls.items():
        chords = walls.get(("celery chord", count))
        if chords is None or name == "celery chord":
            continue
        chord_s = statistics.median(chords)
        found.append(
            report.median_of(
                f"fan-out of {count:,} and join, {name}, speed over a Celery chord",
                [chord_s / each for each in took],
                least=2,
            )
        )
    counts = sorted({count for _, count in cpus})
    for name in ("workflow", "graph"):
        first = cpus.get((name, counts[0]))
        for count in counts[1:]:
            costs = cpus.get((name, count))
            if costs and first:
                found.append(
                    report.median_of(
                        f"worker CPU per child, {name} of {count:,}, over one of {counts[0]:,}",
                        [each / statistics.median(first) for each in costs],
                        most=1.15,
                    )
                )
    return found


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--counts", default="100,1000,10000")
    parser.add_argument("--pool", default="threads")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=["chord", "ours"])
    options = parser.parse_args()
    counts = [int(item) for item in options.counts.split(",")]
    rig = Rig()
    try:
        rows: list[Row] = []
        if options.only != "ours":
            rows += chord_rows(rig, counts, options.pool, options.repeat)
        if options.only != "chord":
            rows += our_rows(rig, counts, options.pool, options.repeat)
        show(rows)
        report.write(options, figures_of(rows))
    finally:
        rig.stop()


if __name__ == "__main__":
    main()
