"""Starts what a user would start, and ends it by its process id."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLI = [sys.executable, "-c", "from littleghost.cli import main; main()"]
# What would make a run leave this machine, or this test's Redis.
_FOREIGN = re.compile(r"LITTLEGHOST_|OPENAI_|OPENROUTER_|WORKER_|NO_COLOR|FORCE_COLOR|COLUMNS")


def environment(**values: str) -> dict[str, str]:
    """Give an environment without settings of the machine."""
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **values}


def littleghost(
    *arguments: str,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    text: str | None = None,
    timeout_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, in pipes."""
    return subprocess.run(
        [*CLI, *arguments],
        cwd=cwd,
        env=environment() if env is None else env,
        input="" if text is None else text,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@contextmanager
def started(
    command: list[str], log: Path, *, env: dict[str, str], cwd: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process whose output goes to a file; it is stopped at the end, gently first."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=output, stderr=output)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path = ROOT) -> None:
        main, side = pty.openpty()
        self._main = main
        self.output = ""
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            # A shell that starts the tests in the background has children ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        os.close(side)

    def read_until(self, condition: Callable[[str], object], what: str, timeout_s: float = 30):
        """Read what appears until it satisfies a named condition."""
        deadline = time.monotonic() + timeout_s
        while not condition(self.output):
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}\n{self.output}"
            if not self._read(0.2) and self.process.poll() is not None:
                break
        assert condition(self.output), f"ended before: {what}\n{self.output}"

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._main, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self, timeout_s: float = 30) -> int:
        """Read to the end and give the exit code."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not self._read(0.1) and self.process.poll() is not None:
                break
        code = self.process.wait(20)
        os.close(self._main)
        return code

    def close(self) -> None:
        """End the process, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def _read(self, wait_s: float) -> bool:
        readable, _, _ = select.select([self._main], [], [], wait_s)
        if not readable:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:
            return False
        self.output += data.decode("utf-8", "replace")
        return bool(data)


def without_styles(text: str) -> str:
    """Take the terminal's own sequences out."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
