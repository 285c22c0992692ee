"""What a finished run takes in Redis, over the data it is about.

python -m benchmarks.memory [--branches 1000] [--turns 1000]

Data are the texts that the run was made for: messages, results, and what events say beyond pointing
at those. Everything else is bookkeeping: headers, indexes, and what Redis adds to each entry.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from benchmarks import report
from benchmarks.bench_app import Bench, Fan
from benchmarks.rig import Rig, wait_until
from littleghost.assembly import Assembly


def measure(rig: Rig, assembly: type[Assembly], text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Run it; gives bytes by kind of key as Redis holds them, and bytes of data by kind."""
    client = rig.runtime.client
    run = assembly.enqueue(text)
    key, _ = rig.runtime.journal.place(run.id)
    wait_until(lambda: client.hget(key, "ended"))
    assert run.status == "completed", run.error
    held: dict[str, int] = defaultdict(int)
    data: dict[str, int] = defaultdict(int)
    for name in client.scan_iter(match=f"{key}*", count=1000):
        suffix = name[len(key) :].split(":")
        kind = suffix[1] if len(suffix) > 1 else "record"
        held[kind] += int(client.memory_usage(name, samples=0) or 0)
        data[kind] += _data(client, name, kind)
    rig.clear()
    return held, data


def _data(client: Any, name: str, kind: str) -> int:
    if kind == "m":
        return sum(len(row) for row in client.lrange(name, 0, -1))
    if kind in ("e", "d"):
        rows = (json.loads(fields["e"]) for _, fields in client.xrange(name))
        return sum(len(json.dumps(row.get("d", {}))) + len(row["type"]) for row in rows)
    if kind == "r":
        # A result that was moved to a list is counted there.
        return sum(len(row) for row in client.hvals(name) if not row.startswith("#"))
    if kind == "record":
        return sum(len(client.hget(name, field) or "") for field in ("inv", "text", "result"))
    return 0


def show(title: str, tasks: int, held: dict[str, int], data: dict[str, int]) -> float:
    """Print it; gives bytes held over bytes of data."""
    whole, useful = sum(held.values()), sum(data.values())
    print(
        f"{title}: {whole / 1e6:.2f} MB held, {useful / 1e6:.2f} MB of data, ratio "
        f"{whole / useful:.2f}; beyond 1.3 x data: {(whole - 1.3 * useful) / tasks:.0f} B per task"
    )
    for kind in sorted(held, key=lambda kind: -held[kind]):
        print(
            f"    {kind:8}{held[kind] / tasks:9.0f} B per task, {data[kind] / tasks:7.0f} of data"
        )
    return whole / useful


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--branches", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=1000)
    options = parser.parse_args()
    rig = Rig()
    try:
        worker = rig.worker("ours", "lg.turns,lg.tools")
        branches, turns = options.branches, options.turns
        fan = show(f"run of {branches} branches", branches, *measure(rig, Fan, f"fan {branches}"))
        agent = show(
            f"agent of {turns} turns", 2 * turns, *measure(rig, Bench, f"chain {turns - 1}")
        )
        worker.stop()
        report.write(
            options,
            [
                report.Figure(
                    f"Redis bytes of a {turns:,}-turn run over its data", agent, goal=1.3
                ),
                report.Figure(f"Redis bytes of a run of {branches:,} branches over its data", fan),
            ],
        )
    finally:
        rig.stop()


if __name__ == "__main__":
    main()
