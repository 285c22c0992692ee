"""The same work done by other systems and by this one, on this machine, in one run.

python -m benchmarks.peers [--quick] [--only celery,dbos] [--out benchmarks/peers.md]

Others are installed into a virtual environment of their own (`.venv-peers`, ignored by git), with
the package index that pip is configured for. One that cannot be installed or run is listed so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks import report
from benchmarks.peers import table
from benchmarks.rig import ROOT, Rig

VENV = ROOT / ".venv-peers"
RESULTS = ROOT / "benchmarks" / "peers.md"
_TIMEOUT_S = 1200


@dataclass(frozen=True)
class Entry:
    """A system: its module, the module's arguments, and what pip installs for it."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


ENTRIES = (
    Entry("littleghost", "littleghost_runs"),
    Entry("celery", "celery_canvas", ("early",), ("celery[redis]>=5.7,<5.8",)),
    Entry("celery-late", "celery_canvas", ("late",), ("celery[redis]>=5.7,<5.8",)),
    Entry("dramatiq", "dramatiq_groups", (), ("dramatiq[redis]",)),
    Entry("pydocket", "pydocket_tasks", (), ("pydocket",)),
    Entry("dbos", "dbos_sqlite", (), ("dbos",)),
    Entry(
        "langgraph-sqlite",
        "langgraph_savers",
        ("sqlite",),
        ("langgraph", "langgraph-checkpoint-sqlite"),
    ),
    Entry(
        "langgraph-plainredis",
        "langgraph_savers",
        ("plainredis",),
        ("langgraph", "langgraph-checkpoint-plainredis"),
    ),
    Entry(
        "langgraph-redis",
        "langgraph_savers",
        ("redis",),
        ("langgraph", "langgraph-checkpoint-redis"),
    ),
)


@dataclass
class Sizes:
    """How much of the work is done."""

    singles: int = 60
    many: int = 200
    repeat: int = 3
    widths: list[int] = field(default_factory=lambda: [100, 1000])
    turns: list[int] = field(default_factory=lambda: [10, 100, 1000])

    @classmethod
    def quick(cls) -> Sizes:
        """Give sizes for a look at whether all works."""
        return cls(10, 20, 1, [20], [10, 50])


def install(entries: list[Entry], python: Path) -> dict[str, str]:
    """Install what the entries need; gives the reasons of those that cannot be had, by name."""
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    refused = {}
    for entry in entries:
        if not entry.packages:
            continue
        command = [python, "-m", "pip", "install", "--quiet", "psutil", *entry.packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            refused[entry.name] = "not installed: " + (lines or ["pip failed"])[-1][:200]
    return refused


def run(entry: Entry, python: Path, environment: Mapping[str, str], sizes: Sizes) -> dict[str, Any]:
    """Let one system do its work on a Redis of its own; gives what its process printed."""
    rig = Rig()
    load = os.getloadavg()[0]
    place = {
        **vars(sizes),
        "redis_url": rig.url,
        "redis_pid": rig.server.pid,
        "directory": str(rig.directory),
    }
    command = [python if entry.packages else sys.executable, "-m"]
    command += [f"benchmarks.peers.{entry.module}", *entry.arguments]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**environment, "PEER_WORK": json.dumps(place), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told, complaints = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {_TIMEOUT_S} s"}
    finally:
        end(process)
        rig.stop()
    for line in told.splitlines():
        if line.startswith("PEER "):
            return {**json.loads(line[5:]), "load": (load, os.getloadavg()[0])}
    last = [line for line in complaints.splitlines() if line.strip()][-1:] or ["it said nothing"]
    return {"failed": f"does not run here: {last[0].strip()[:200]}"}


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process that is still there, and the workers it started."""
    if process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does it all work?")
    parser.add_argument("--only", help="beginnings of systems' names, commas between")
    parser.add_argument("--out", type=Path, help="where to write the comparison")
    parser.add_argument("--python", type=Path, help="a Python that has the packages already")
    options = parser.parse_args()
    wanted = tuple((options.only or "").split(","))
    entries = [entry for entry in ENTRIES if entry.name.startswith(wanted)]
    # A rig changes this process's environment.
    environment = dict(os.environ)
    rig = Rig()
    facts = report.surroundings(rig.runtime.client)
    rig.stop()
    python = options.python or VENV / "bin" / "python"
    refused = {} if options.python else install(entries, python)
    sizes = Sizes.quick() if options.quick else Sizes()
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        print(f"{entry.name} …", file=sys.stderr, flush=True)
        reason = refused.get(entry.name)
        found[entry.name] = {"failed": reason} if reason else run(entry, python, environment, sizes)
    text = table.write(found, vars(sizes), facts)
    print(text)
    out = options.out or (None if options.quick or options.only else RESULTS)
    if out is not None:
        out.write_text(text, "utf-8")
        print(f"written to {out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
