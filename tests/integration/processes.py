"""Workers of any Celery app as real processes; each is ended by its own process id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from littleghost import wiring
from littleghost.settings import Settings
from tests.faults.fleet import ROOT, RedisServer, wait_until

QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


class CeleryWorker:
    """One `celery -A app worker` process."""

    def __init__(
        self, app: str, environment: Mapping[str, str], log: Path, arguments: Sequence[str] = ()
    ) -> None:
        self.log = log
        command = [sys.executable, "-m", "celery", "-A", app, "worker", "-l", "info", *arguments]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=dict(environment), stdout=output, stderr=output
            )

    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def wait_ready(self) -> CeleryWorker:
        def is_ready() -> bool:
            assert self.process.poll() is None, self.text()[-3000:]
            return "ready." in self.text()

        wait_until(is_ready, f"the worker serves, see {self.log}", 60)
        return self

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def stop(self) -> None:
        """Ask it to end, and insist."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.kill()


class Site:
    """A Redis server, workers on it, and this process as their caller."""

    def __init__(self, directory: Path, **variables: str) -> None:
        self.directory = directory
        (directory / "redis").mkdir(parents=True)
        self.redis = RedisServer(directory / "redis")
        self.environment = {
            **{name: value for name, value in os.environ.items() if "LITTLEGHOST" not in name},
            "LITTLEGHOST_REDIS_URL": self.redis.url,
            "PYTHONPATH": str(ROOT),
            "SITE_DIRECTORY": str(directory),
            **variables,
        }
        self.workers: list[CeleryWorker] = []

    def settings(self, **changes: Any) -> Settings:
        return Settings.from_environment(self.environment).with_(**changes)

    def worker(
        self, *arguments: str, app: str = "tests.integration.site_app", **variables: str
    ) -> CeleryWorker:
        """Start a worker; it may not be ready yet."""
        number = len(self.workers)
        log = self.directory / f"worker-{number}.log"
        named = (*arguments, "-n", f"worker-{number}@%h")
        made = CeleryWorker(app, {**self.environment, **variables}, log, named)
        self.workers.append(made)
        return made

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.redis.kill()


@contextmanager
def site(directory: Path, **variables: str) -> Iterator[Site]:
    """Be the caller of a new fleet; everything ends with the block."""
    made = Site(directory, **variables)
    before: Any = wiring._current
    wiring.configure(made.settings())
    try:
        yield made
    finally:
        work = wiring.runtime()
        work.close()
        connection = work._broker and work._broker._connection
        if connection is not None:
            connection.release()
        wiring._current = before
        made.stop()
