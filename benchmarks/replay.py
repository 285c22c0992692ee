"""What a workflow's replay costs as its run grows: its code runs from the top at each advance.

python -m benchmarks.replay [--children 1000]
"""

from __future__ import annotations

import statistics
import time

from benchmarks import report
from benchmarks.bench_app import Leaf, Line
from benchmarks.rig import Rig, wait_until
from littleghost import Workflow
from tests.support.stage import Stage, started

PLACES = (10, 100, 400, 1000)


def advances(count: int) -> dict[int, float]:
    """Milliseconds of CPU of one decision around some children of a run, without a journal."""

    def perform(self: Workflow) -> int:
        for _ in range(count):
            self.invoke(Leaf, input="leaf 0").result  # noqa: B018 - reading it waits for it
        return count

    stage, costs = Stage(perform), []
    for _ in range(count + 1):
        cpu = time.process_time()
        found = stage.advance()
        costs.append((time.process_time() - cpu) * 1000)
        for child in started(found):
            stage.answer(child, "x" * 200)
    near = {place: costs[max(0, place - 5) : place + 5] for place in PLACES if place <= count}
    return {place: statistics.median(some) for place, some in near.items()}


def run_rows(rig: Rig, counts: list[int]) -> list[tuple[int, float, float]]:
    """Milliseconds of worker CPU and wall time per child of whole runs."""
    rows = []
    worker = rig.worker("ours", "lg.turns,lg.tools")
    for count in [5, *counts]:
        cpu, begun = worker.cpu_s(), time.monotonic()
        run = Line.enqueue(f"line {count}")
        key, _ = rig.runtime.journal.place(run.id)
        wait_until(lambda key=key: rig.runtime.client.hget(key, "ended"))
        wall_ms = (time.monotonic() - begun) * 1000 / count
        assert run.status == "completed", run.error
        rows.append((count, (worker.cpu_s() - cpu) * 1000 / count, wall_ms))
        rig.clear()
    worker.stop()
    return rows[1:]


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--children", type=int, default=1000)
    options = parser.parse_args()
    count = options.children
    costs = advances(count)
    for place, cost in costs.items():
        print(f"advance at child {place:5}: {cost:.2f} ms CPU, {cost * 1000 / place:.1f} µs each")
    rig = Rig()
    try:
        rows = run_rows(rig, sorted({count // 10, count}))
        for length, cpu_ms, wall_ms in rows:
            print(
                f"run of {length:5} children in a row: {cpu_ms:.2f} ms worker CPU, "
                f"{wall_ms:.2f} ms wall, each"
            )
        last = max(costs)
        report.write(
            options,
            [
                report.Figure(f"CPU of a workflow's advance at child {last:,}", costs[last], "ms"),
                *(
                    report.Figure(
                        f"worker CPU per child, workflow of {length:,} children in a row",
                        cpu_ms,
                        "ms",
                    )
                    for length, cpu_ms, _ in rows
                ),
            ],
        )
    finally:
        rig.stop()


if __name__ == "__main__":
    main()
