"""The work that every system does, and how it is measured; needs nothing but psutil.

A system's file makes a `Peer` and calls `measure`, which prints one JSON object. Sizes and places
come from `PEER_WORK`, a JSON object that `python -m benchmarks.peers` writes.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

PAYLOAD = "x" * 200
STEPS = 3
# Slots of the one worker: threads, or tasks at once in one process.
SLOTS = 8
_WAIT_S = 300


class Place:
    """Where to work, and how much."""

    def __init__(self) -> None:
        found: dict[str, Any] = json.loads(os.environ["PEER_WORK"])
        self.redis_url: str = found["redis_url"]
        self.redis_pid: int = found["redis_pid"]
        self.directory = Path(found["directory"])
        self.singles: int = found["singles"]
        self.many: int = found["many"]
        self.repeat: int = found["repeat"]
        self.widths: list[int] = found["widths"]
        self.turns: list[int] = found["turns"]


class Peer:
    """One system at work. What it cannot do raises NotImplementedError, whose text says why."""

    name = ""
    packages: tuple[str, ...] = ()
    # What is on disk or in the server when a step is done, and what happens if the process dies.
    stores = ""
    workers = f"1 worker process, {SLOTS} threads"

    def __init__(self, place: Place) -> None:
        self.place = place
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start what works."""

    def run(self, count: int) -> None:
        """Start some runs of three steps at once, and wait until all are done."""
        raise NotImplementedError

    def fan(self, width: int) -> None:
        """Run some steps at once, then one that gets all their results; wait for it."""
        raise NotImplementedError

    def converse(self, turns: int) -> int:
        """Run an agent's turns, each an answer and a call's result; gives bytes stored for it."""
        raise NotImplementedError

    def spawn(self, *command: str, **environment: str) -> None:
        """Start a worker process of this Python."""
        path = self.place.directory / f"{self.name.replace(' ', '-')}.log"
        with path.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, *command],
                env={**os.environ, **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)

    def stop(self) -> None:
        """Stop what was started."""
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def at_work(self) -> list[psutil.Process]:
        """Give the processes that do the steps: the workers, or this one."""
        found: list[psutil.Process] = []
        for process in self.processes:
            parent = psutil.Process(process.pid)
            found += [parent, *parent.children(recursive=True)]
        return found or [psutil.Process()]


def _cpu_s(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


class _Clock:
    """Time, CPU of worker and caller, and CPU of Redis, from now on."""

    def __init__(self, peer: Peer) -> None:
        self._redis = [psutil.Process(peer.place.redis_pid)]
        here = psutil.Process()
        # Those that work are this process itself when there is no worker.
        self._all = [here, *(each for each in peer.at_work() if each.pid != here.pid)]
        self._cpu, self._server = _cpu_s(self._all), _cpu_s(self._redis)
        self._begun = time.perf_counter()

    def read(self) -> tuple[float, float, float]:
        """Give seconds of time, of processes' CPU, and of Redis' CPU."""
        took = time.perf_counter() - self._begun
        return took, _cpu_s(self._all) - self._cpu, _cpu_s(self._redis) - self._server


def _attempt(found: dict[str, Any], part: str, work: Callable[[], Any]) -> None:
    """Keep what a part measured, or the reason for which it could not."""
    try:
        found[part] = work()
    except NotImplementedError as reason:
        found["missing"][part] = str(reason) or "it has no such thing"
    except Exception as error:  # noqa: BLE001 - one part must not hide the others
        found["missing"][part] = f"failed: {type(error).__name__}: {error}"[:300]


def _singles(peer: Peer) -> dict[str, float]:
    took = []
    for _ in range(peer.place.singles):
        begun = time.perf_counter()
        peer.run(1)
        took.append((time.perf_counter() - begun) * 1000 / STEPS)
    return {"median": statistics.median(took), "p95": sorted(took)[int(len(took) * 0.95) - 1]}


def _many(peer: Peer) -> dict[str, float]:
    rows = []
    steps = peer.place.many * STEPS
    for _ in range(peer.place.repeat):
        clock = _Clock(peer)
        peer.run(peer.place.many)
        rows.append([value * 1000 / steps for value in clock.read()])
    wall, cpu, server = (statistics.median(each) for each in zip(*rows, strict=True))
    return {"ms": wall, "cpu_ms": cpu, "redis_cpu_ms": server}


def _fan(peer: Peer, width: int) -> dict[str, float]:
    rows = []
    for _ in range(peer.place.repeat):
        clock = _Clock(peer)
        peer.fan(width)
        rows.append(clock.read())
    wall, cpu, _ = (statistics.median(each) for each in zip(*rows, strict=True))
    return {"s": wall, "cpu_ms": cpu * 1000 / width}


def measure(peer: Peer) -> None:
    """Do all parts and print what they took."""
    found: dict[str, Any] = {
        "name": peer.name,
        "stores": peer.stores,
        "workers": peer.workers,
        "versions": {name: version(name) for name in peer.packages},
        "missing": {},
    }
    try:
        peer.start()
        peer.run(1)
        peer.run(SLOTS * 2)
        _attempt(found, "singles", lambda: _singles(peer))
        _attempt(found, "many", lambda: _many(peer))
        for width in peer.place.widths:
            _attempt(found, f"fan {width}", lambda width=width: _fan(peer, width))
        found["rss_mb"] = sum(each.memory_info().rss for each in peer.at_work()) / 1e6
        for turns in peer.place.turns:
            _attempt(found, f"turns {turns}", lambda turns=turns: peer.converse(turns))
    finally:
        peer.stop()
    print("PEER " + json.dumps(found), flush=True)
    # Threads of a system that does not end by itself must not hold up the others.
    os._exit(0)


def sqlite_bytes(path: Path) -> int:
    """Give the size of a SQLite database with its log written back."""
    import sqlite3

    connection = sqlite3.connect(path, timeout=30)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    return (pages - free) * size
