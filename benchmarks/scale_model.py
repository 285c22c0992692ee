"""What measured costs of a task allow for: a model without a machine.

A task takes `worker_ms` of a worker process, which has one core for Python, and `redis_ms` of the
one thread that Redis runs scripts in. Whichever is used up first sets the rate. Models and tools
take no time here; while real ones are waited for they use neither, but hold slots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from redis.crc import key_slot

# Redis works in one thread; above this share of it answers become slow.
BUSY = 0.7
FLEETS = (1, 10, 100)
# A turn, a call and a turn.
RUN_TASKS = 3
# Seconds between two looks at an open run, as audit.lua sets them.
AUDIT_EVERY_S = 300
_SLOTS = 16_384


@dataclass(frozen=True)
class Cost:
    """What one task takes.

    Attributes:
        worker_ms: CPU of the worker.
        redis_ms: CPU of Redis.
        scripts: Calls of scripts, each a round trip.
        written_bytes: What the append-only file grew by.
        held_bytes: What Redis holds afterwards.
        keys: Keys there are afterwards.
    """

    worker_ms: float
    redis_ms: float
    scripts: float
    written_bytes: float
    held_bytes: float
    keys: float


def foretold(cost: Cost, workers: int, cores: int) -> float:
    """Tasks per second: bounded by workers, by Redis' one thread, and by the machine."""
    return min(
        workers * 1000 / cost.worker_ms,
        1000 / cost.redis_ms,
        cores * 1000 / (cost.worker_ms + cost.redis_ms),
    )


def busiest(nodes: int, partitions: int, *, placed: bool) -> float:
    """Share of the partitions on the fullest node; slots in equal ranges, or placed by hand."""
    if placed:
        return math.ceil(partitions / nodes) / partitions
    counts = [0] * nodes
    for partition in range(partitions):
        counts[key_slot(f"{partition:02d}".encode()) * nodes // _SLOTS] += 1
    return max(counts) / partitions


def nodes_for(tasks: float, of_one: float, partitions: int) -> str:
    """Say how many nodes carry so many tasks per second with so many partitions."""
    found = []
    for placed in (False, True):
        enough = (
            nodes
            for nodes in range(1, partitions + 1)
            if tasks * busiest(nodes, partitions, placed=placed) <= of_one
        )
        found.append(str(next(enough, f">{partitions}")))
    return " or ".join(dict.fromkeys(found))


def model(cost: Cost, audit_us: float) -> list[str]:
    """Say what the costs allow for, if a worker process has a core and Redis has one."""
    of_worker, of_redis = 1000 / cost.worker_ms, 1000 / cost.redis_ms * BUSY
    scripts, written_mb = of_redis * cost.scripts, of_redis * cost.written_bytes / 1e6
    lines = [
        "",
        "Extrapolated (a core for each worker process, another for each Redis, no network):",
        f"  one Redis at {BUSY:.0%} of its thread: {of_redis:,.0f} tasks/s",
        f"  that is {of_redis / RUN_TASKS:,.0f} runs/s of {RUN_TASKS} tasks",
        f"  it then answers {scripts:,.0f} scripts/s and writes {written_mb:,.1f} MB/s to its file",
        f"  worker processes that fill it when models take no time: {of_redis / of_worker:.1f}",
    ]
    lines.append("  nodes: slots in equal ranges, or each partition's slot placed by hand")
    for workers in FLEETS:
        wanted = workers * of_worker
        lines.append(
            f"  {workers:3} busy worker processes want {wanted:,.0f} tasks/s; one Redis gives "
            f"{min(wanted, of_redis):,.0f}; nodes with 16 partitions "
            f"{nodes_for(wanted, of_redis, 16)}, with 100 {nodes_for(wanted, of_redis, 100)}"
        )
    lines += [
        f"  model calls of {seconds:2} s, a tool call after each: one Redis feeds "
        f"{of_redis / 2 * seconds:,.0f} at once"
        for seconds in (1, 5, 20)
    ]
    hourly_s = 10_000 * 3600 / AUDIT_EVERY_S * audit_us / 1e6
    lines.append(
        f"  10,000 open runs: {hourly_s:.0f} s of Redis CPU per hour ({hourly_s / 36:.1f} %), a "
        f"look at each every {AUDIT_EVERY_S} s"
    )
    return lines
