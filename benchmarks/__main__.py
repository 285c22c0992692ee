"""Every benchmark, one after the other, and one table of what they measured.

python -m benchmarks [--quick] [--only engine,fanout] [--out benchmarks/results.md]

Writes `benchmarks/results.md` unless it is quick or partial; `--out` writes in any case.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import report
from benchmarks.rig import ROOT, Rig

RESULTS = ROOT / "benchmarks" / "results.md"
# Each module, and its options when the machine is too busy for more than a look.
MODULES: dict[str, list[str]] = {
    "engine": ["--runs", "100", "--repeat", "1"],
    "caller": ["--repeat", "3"],
    "fanout": ["--counts", "100,1000", "--repeat", "1"],
    "replay": ["--children", "100"],
    "memory": ["--branches", "200", "--turns", "1000"],
    "streams": ["--calls", "50", "--times", "20"],
    "recovery": ["--times", "2"],
}

_HEAD = """# Measured

Written by `make bench`. Ratios (x) are taken in one run on one machine, against Celery with its
defaults, the same pool, slots and Redis; they say more than the absolute figures. Repeats are given
as median (smallest to largest). *ratio* is how far the goal is surpassed: 1 is just met, 2 is twice
as good, less than 1 is missed.
"""


def collect(
    names: list[str], environment: dict[str, str], *, quick: bool
) -> tuple[list[tuple[report.Figure, str]], list[str]]:
    """Run the modules; gives figures with their commands, and the commands that failed."""
    rows: list[tuple[report.Figure, str]] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            options = MODULES[name] if quick else []
            command = " ".join(["python -m", f"benchmarks.{name}", *options])
            print(f"$ {command}", flush=True)
            path = Path(folder) / f"{name}.json"
            done = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}", *options, "--json", path],
                cwd=ROOT,
                env=environment,
                check=False,
            )
            if done.returncode or not path.exists():
                failed.append(command)
                continue
            rows += [(figure, command) for figure in report.read(path)]
    return rows, failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does it all work?")
    parser.add_argument("--only", default=",".join(MODULES), help="modules, commas between")
    parser.add_argument("--out", type=Path, help="where to write the table")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(MODULES):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    # A rig changes this process's, and each benchmark makes one of its own.
    environment = dict(os.environ)
    rig = Rig()
    facts = report.surroundings(rig.runtime.client)
    rig.stop()
    rows, failed = collect(names, environment, quick=options.quick)
    parts = [_HEAD, "\n".join(facts), "", report.table(rows)]
    if failed:
        parts += ["", "Failed: " + ", ".join(f"`{command}`" for command in failed) + "."]
    text = "\n".join(parts) + "\n"
    print(text)
    out = options.out
    if out is None and not options.quick and set(names) == set(MODULES):
        out = RESULTS
    if out is not None:
        out.write_text(text, "utf-8")
        print(f"written to {out}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
