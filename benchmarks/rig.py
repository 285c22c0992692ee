"""A private Redis and measured worker processes for the benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from littleghost import wiring
from littleghost.embedded import find_server
from littleghost.settings import Settings

ROOT = Path(__file__).parents[1]


def wait_until(condition: Callable[[], object], timeout_s: float = 600.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the benchmark did not finish")
        time.sleep(0.002)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Worker:
    """One worker process whose CPU time is measured."""

    def __init__(self, rig: Rig, kind: str, queues: str, pool: str, slots: int, **extra: str):
        command = [sys.executable, "-m", "celery", "-A", "benchmarks.bench_app", "worker"]
        command += ["-Q", queues, "-P", pool, "-c", str(slots), "-l", "warning"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-n", f"{kind}-{time.monotonic_ns()}@%h", "--prefetch-multiplier", "4"]
        environment = {**rig.environment, "BENCH_KIND": kind, **extra}
        self.log = rig.directory / f"{kind}-{time.monotonic_ns()}.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        self.meter = psutil.Process(self.process.pid)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def cpu_s(self) -> float:
        total = 0.0
        for process in [self.meter, *self.meter.children(recursive=True)]:
            times = process.cpu_times()
            total += times.user + times.system
        return total

    def rss_mb(self) -> float:
        return self.meter.memory_info().rss / 1e6

    def stop(self) -> None:
        for process in self.meter.children(recursive=True):
            process.kill()
        self.process.kill()
        self.process.wait()


class Rig:
    """A Redis server, a shared counter, and this process as the caller."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="littleghost-bench-"))
        port = free_port()
        self.url = f"redis://127.0.0.1:{port}/0"
        self.counter_path = self.directory / "counter"
        self.counter_path.write_bytes(b"\0" * 8)
        self.options = ["--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        self.options += ["--appendonly", "yes", "--dir", str(self.directory)]
        self.model_url = ""
        self.start_redis()
        self.environment = {
            **os.environ,
            "LITTLEGHOST_REDIS_URL": self.url,
            "BENCH_COUNTER": str(self.counter_path),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
        }
        os.environ.update(LITTLEGHOST_REDIS_URL=self.url, BENCH_COUNTER=str(self.counter_path))
        self.runtime = wiring.configure(Settings.from_environment(self.environment))
        wait_until(self.answers, 10)

    def start_redis(self) -> None:
        self.server = subprocess.Popen([find_server(), *self.options], stdout=subprocess.DEVNULL)

    def answers(self) -> bool:
        try:
            return bool(self.runtime.client.ping())
        except Exception:  # noqa: BLE001 - it is starting
            return False

    def worker(
        self, kind: str, queues: str, pool: str = "threads", slots: int = 8, **extra: str
    ) -> Worker:
        worker = Worker(self, kind, queues, pool, slots, **extra)
        wait_until(
            lambda: (
                "ready." in worker.log.read_text()
                or self.runtime.client.exists(f"_kombu.binding.{queues.split(',')[-1]}")
            ),
            60,
        )
        time.sleep(1.5)
        return worker

    def live(self) -> int:
        pipeline = self.runtime.client.pipeline(transaction=False)
        for partition in range(self.runtime.settings.partitions):
            pipeline.zcard(self.runtime.journal.prefix(partition) + "live")
        return sum(pipeline.execute())

    def redis_cpu_s(self) -> float:
        times = psutil.Process(self.server.pid).cpu_times()
        return times.user + times.system

    def clear(self) -> None:
        self.runtime.client.flushall()

    def stop(self) -> None:
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
