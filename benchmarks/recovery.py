"""Recovery times: kill -9 and SIGTERM on an idle queue and under load, Redis restart, deadline.

python -m benchmarks.recovery [--times 10] [--load 50]
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from typing import Any

from benchmarks import report
from benchmarks.rig import ROOT, Rig, Worker, free_port, wait_until
from benchmarks.streams import listening


def owner(rig: Rig, run: Any) -> str:
    record = run.refresh().record
    return next((task["w"] for task in record.tasks.values() if task["s"] == "leased"), "")


def elsewhere(rig: Rig, stream: Any, workers: list[Worker], number: signal.Signals) -> float:
    """Milliseconds from a signal to the worker that streams, to the run streaming elsewhere."""
    run = stream.enqueue("400 0.02")
    next(event for event in run.events() if event.text)
    first = owner(rig, run)
    pid = next(facts.pid for facts in rig.runtime.workers.list() if facts.id == first)
    started = time.monotonic()
    os.kill(pid, number)
    wait_until(lambda: owner(rig, run) not in ("", first), 60)
    took = (time.monotonic() - started) * 1000
    run.cancel()
    run.wait(20)
    gone = next(worker for worker in workers if worker.process.pid == pid)
    gone.process.wait(30)
    workers.remove(gone)
    return took


def restart(rig: Rig, stream: Any) -> float:
    """Milliseconds from Redis answering again to new text of a run that was streaming."""
    run = stream.enqueue("400 0.02")
    next(event for event in run.events() if event.text)
    rig.server.kill()
    rig.server.wait()
    rig.start_redis()
    wait_until(rig.answers, 20)
    before, started = run.refresh().record.events, time.monotonic()
    wait_until(lambda: run.refresh().record.events > before, 60)
    took = (time.monotonic() - started) * 1000
    run.cancel()
    run.wait(20)
    return took


def deadline(stream: Any) -> float:
    """Milliseconds from a run's deadline to its end, by the journal's clock."""
    run = stream.enqueue("400 0.02", deadline=timedelta(seconds=1))
    record = run.wait(20).record
    assert record.status == "partial", record.status
    assert run.response, "it had said something"
    return float(record.ended_ms - record.deadline_ms)


class Load:
    """Other runs, started at a steady rate by a thread, so that workers and queue are busy."""

    def __init__(self, agent: Any, per_second: int) -> None:
        self._agent, self._per_second = agent, per_second
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self) -> Load:
        if self._per_second:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._per_second:
            self._thread.join()

    def _feed(self) -> None:
        while not self._stop.wait(0.1):
            self._agent.enqueue_many(["leaf 0"] * max(1, self._per_second // 10))


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--load", type=int, default=50, help="runs per second beside it")
    options = parser.parse_args()
    times = options.times
    port = free_port()
    os.environ["BENCH_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
    from benchmarks.bench_app import Leaf, Stream

    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.model_server", str(port)], cwd=ROOT
    )
    rig = Rig()
    workers: list[Worker] = []

    def two_workers() -> None:
        while len(workers) < 2:
            extra = {"BENCH_BASE_URL": os.environ["BENCH_BASE_URL"]}
            workers.append(rig.worker("ours", "lg.turns", LITTLEGHOST_DRAIN_TIMEOUT_S="0", **extra))
        wait_until(lambda: len(rig.runtime.workers.list()) == len(workers), 30)

    try:
        wait_until(lambda: listening(port), 10)
        took: dict[signal.Signals, list[float]] = {}
        busy: dict[signal.Signals, list[float]] = {}
        for number in (signal.SIGKILL, signal.SIGTERM):
            for load, found in ((0, took), (options.load, busy)):
                found[number] = []
                with Load(Leaf, load):
                    for _ in range(times):
                        two_workers()
                        found[number].append(elsewhere(rig, Stream, workers, number))
        two_workers()
        deadlines = [deadline(Stream) for _ in range(times)]
        restarts = [restart(rig, Stream) for _ in range(max(3, times // 2))]
        killed = took[signal.SIGKILL]
        report.write(
            options,
            [
                report.Figure(
                    f"kill -9 of a worker to running elsewhere, the longest of {times}",
                    max(killed),
                    "ms",
                    5000,
                ),
                report.median_of("kill -9 of a worker to running elsewhere", killed, "ms"),
                report.median_of(
                    "SIGTERM, drain_timeout_s=0, to running elsewhere", took[signal.SIGTERM], "ms"
                ),
                report.Figure(
                    f"kill -9 under load ({options.load} runs/s), the longest of {times}",
                    max(busy[signal.SIGKILL]),
                    "ms",
                    5000,
                ),
                report.Figure(
                    f"SIGTERM under load ({options.load} runs/s), the longest of {times}",
                    max(busy[signal.SIGTERM]),
                    "ms",
                    1000,
                ),
                report.Figure(
                    f"deadline to the partial result, the longest of {times}",
                    max(deadlines),
                    "ms",
                    1000,
                ),
                report.median_of("Redis restart: its first answer to progress", restarts, "ms"),
            ],
        )
    finally:
        for worker in workers:
            worker.stop()
        rig.stop()
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
