"""One Redis and one worker for the command line's tests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from littleghost.journal.workers import Workers
from tests.acceptance.processes import environment, littleghost, started
from tests.support.redis_server import Server, wait_until

SHOP = "tests.acceptance.shop"


class Place:
    """A Redis with what is needed to use it as a user."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.env = environment(LITTLEGHOST_REDIS_URL=server.url)
        self.client = server.client()

    def wait_for_workers(self, count: int, log: Path) -> None:
        """Wait until so many workers are in the register and ready."""
        workers = Workers(self.client, 3.0)
        wait_until(
            lambda: len(workers.alive()) == count and log.read_text().count(" ready.") >= 1,
            f"{count} workers serve, see {log}",
            timeout_s=60,
        )


def printed_command(*arguments: str, env: dict[str, str]) -> list[str]:
    """Give the command that `littleghost worker … --print` prints, split as a shell does."""
    done = littleghost("worker", *arguments, "--print", env=env)
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout)


def run_printed(line: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Split a printed command into the command and its environment."""
    index = next(i for i, word in enumerate(line) if "=" not in word)
    return line[index:], {**env, **dict(word.split("=", 1) for word in line[:index])}


@pytest.fixture
def place(redis_server: Server) -> Iterator[Place]:
    """An empty journal without workers."""
    made = Place(redis_server)
    made.client.flushall()
    yield made
    made.client.flushall()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A journal and one worker that knows the shop's agents."""
    server = Server(appendonly="yes").start()
    made = Place(server)
    log = tmp_path_factory.mktemp("fleet") / "all.log"
    line = printed_command("all", "-A", SHOP, "-c", "8", env=made.env)
    command, env = run_printed(line, made.env)
    try:
        with started(command, log, env=env):
            made.wait_for_workers(1, log)
            yield made
    finally:
        server.stop()


def newest_run(client: redis.Redis) -> str:
    """Give the id of the newest run."""
    rows = [
        row
        for key in client.scan_iter("lg:{*}:runs")
        for row in client.zrange(key, 0, -1, withscores=True)
    ]
    return max(rows, key=lambda row: row[1])[0] if rows else ""
