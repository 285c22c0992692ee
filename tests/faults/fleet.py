"""Real servers and workers for the fault tests; each is ended by its own process id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import redis

from littleghost.embedded import find_server

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str, timeout_s: float = 30.0) -> T:
    """Wait for a named condition and give its value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RedisServer:
    """A Redis server with an append-only file, to be killed and started again.

    It comes back on the same port, with what it had written.
    """

    def __init__(self, directory: Path, appendfsync: str = "everysec") -> None:
        self.directory = directory
        self.appendfsync = appendfsync
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.directory),
            "save": "",
            "appendonly": "yes",
            "appendfsync": self.appendfsync,
        }
        command = [find_server()]
        for name, value in options.items():
            command += [f"--{name}", value]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(self.answers, "Redis answers")

    def answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, socket_timeout=1, retry=None) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, decode_responses=True, protocol=2)


class WorkerProcess:
    """One Celery worker, in a process group of its own."""

    def __init__(self, kind: str, environment: dict[str, str], log: Path, slots: int) -> None:
        queues = {
            "turns": "lg.turns,lg.turns.batch",
            "tools": "lg.tools,lg.tools.batch",
            "all": "lg.turns,lg.tools",
        }
        pool = "prefork" if kind == "tools" else "threads"
        command = [sys.executable, "-m", "celery", "-A", "tests.faults.fleet_app", "worker"]
        command += ["-Q", queues[kind], "-P", pool, "-c", str(slots), "-l", "info"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-n", f"{kind}-{time.monotonic_ns()}@%h"]
        self.kind, self.slots, self.log = kind, slots, log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Whether it takes tasks; it fails the test when it ended by itself before."""
        assert self.is_alive, self.log.read_text()[-3000:]
        return "ready." in self.log.read_text()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill its main process; the children of its pool are left to notice."""
        self.process.kill()
        self.process.wait(10)

    def kill_group(self) -> None:
        """Kill it with the children of its pool, all in one moment, as the kernel would."""
        # While its main process is not waited for, no other group can have its number.
        if self.is_alive:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait(10)


class Fleet:
    """A Redis server and the workers on it."""

    def __init__(self, directory: Path, *, appendfsync: str = "everysec", **settings: str) -> None:
        (directory / "redis").mkdir()
        self.directory = directory
        self.redis = RedisServer(directory / "redis", appendfsync)
        self.effects_file = directory / "effects.txt"
        self.effects_file.touch()
        self.environment = {
            **{name: value for name, value in os.environ.items() if "LITTLEGHOST" not in name},
            "LITTLEGHOST_REDIS_URL": self.redis.url,
            "FAULTS_EFFECTS": str(self.effects_file),
            "PYTHONPATH": str(ROOT),
            **{f"LITTLEGHOST_{name.upper()}": value for name, value in settings.items()},
        }
        self.workers: list[WorkerProcess] = []

    def launch(self, kind: str, slots: int = 4) -> WorkerProcess:
        """Start a worker without waiting for it."""
        log = self.directory / f"{kind}-{len(self.workers)}.log"
        worker = WorkerProcess(kind, self.environment, log, slots)
        self.workers.append(worker)
        return worker

    def start(self, kind: str, slots: int = 4) -> WorkerProcess:
        """Start a worker and wait until it serves."""
        worker = self.launch(kind, slots)
        self.wait_ready(worker)
        return worker

    def wait_ready(self, *workers: WorkerProcess) -> None:
        for worker in workers:
            wait_until(
                lambda worker=worker: worker.is_ready,
                f"{worker.kind} worker serves, see {worker.log}",
                timeout_s=60,
            )

    def power_off(self) -> list[WorkerProcess]:
        """Kill everything, as if the machines had lost power; gives the workers that lived."""
        lived = [worker for worker in self.workers if worker.is_alive]
        for worker in lived:
            worker.kill_group()
        self.redis.kill()
        return lived

    def power_on(self, lived: Sequence[WorkerProcess]) -> list[WorkerProcess]:
        """Start Redis again, on the same port and data, and a worker like each that lived."""
        self.redis.start()
        workers = [self.launch(worker.kind, worker.slots) for worker in lived]
        self.wait_ready(*workers)
        return workers

    def effects(self) -> list[str]:
        return self.effects_file.read_text().splitlines()

    def open_gate(self, name: str) -> None:
        (self.directory / name).touch()

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill_group()
        self.redis.kill()
