"""What a process pays that only starts runs: processor time per call, memory, and its import.

python -m benchmarks.caller [--repeat 10]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import psutil

from benchmarks import report
from benchmarks.rig import ROOT, Rig

_IMPORT = "import time; t = time.perf_counter(); import littleghost; print(time.perf_counter() - t)"
_ENQUEUE = "from benchmarks.caller_app import enqueue_some; enqueue_some(1000)"


def cost(work: Callable[[], object], runs: int, repeat: int) -> tuple[list[float], list[float]]:
    """Milliseconds of this process's CPU, and of time, per run."""
    cpus: list[float] = []
    walls: list[float] = []
    work()
    for _ in range(repeat):
        cpu, started = time.process_time(), time.monotonic()
        work()
        cpus.append((time.process_time() - cpu) * 1000 / runs)
        walls.append((time.monotonic() - started) * 1000 / runs)
    return cpus, walls


def call_rows(rig: Rig, repeat: int) -> list[report.Figure]:
    from benchmarks.caller_app import Asked

    def single() -> None:
        for number in range(100):
            Asked.enqueue(f"row {number}")

    def many() -> None:
        Asked.enqueue_many([f"row {number}" for number in range(100)])

    single_cpu, single_wall = cost(single, 100, repeat)
    many_cpu, many_wall = cost(many, 100, repeat)
    rig.clear()
    return [
        report.median_of("enqueue: caller's CPU per call", single_cpu, "ms", most=0.7),
        report.median_of("enqueue: time per call", single_wall, "ms"),
        report.median_of(
            "enqueue_many, 100 at once: caller's CPU per run", many_cpu, "ms", most=0.15
        ),
        report.median_of("enqueue_many, 100 at once: time per run", many_wall, "ms"),
    ]


def memory_row(rig: Rig) -> report.Figure:
    child = subprocess.Popen(
        [sys.executable, "-c", _ENQUEUE],
        cwd=ROOT,
        env=rig.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "done\n"
    rss_mb = psutil.Process(child.pid).memory_info().rss / 1e6
    child.communicate("\n")
    rig.clear()
    return report.Figure("memory (RSS) of a caller after 1,000 enqueues", rss_mb, "MB", 60)


def import_row(rig: Rig, repeat: int) -> report.Figure:
    took = []
    for _ in range(repeat + 1):
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT],
            cwd=ROOT,
            env=rig.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        took.append(float(done.stdout))
    # The first one may have to compile.
    return report.median_of("import littleghost", took[1:], "s", most=0.25)


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    rig = Rig()
    try:
        figures = [
            *call_rows(rig, options.repeat),
            memory_row(rig),
            import_row(rig, options.repeat),
        ]
        report.write(options, figures)
    finally:
        rig.stop()


if __name__ == "__main__":
    main()
