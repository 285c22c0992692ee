"""What must hold in a journal at any moment, read from Redis alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import redis

from littleghost.events import TERMINAL_TYPES
from littleghost.ids import partition_of
from littleghost.journal import keys
from littleghost.journal.record import OVER

# The keys that `littleghost/journal/keys.py` documents, as patterns.
_RUN = r"r:[A-Za-z0-9._-]+"
_DOCUMENTED = [
    rf"{_RUN}(:e|:d|:r|:t|:p|:f|:l|:w|:gone|:i|:x|:c|:g|:b|:cut)?",
    rf"{_RUN}:[ms]:[0-9.]+",
    rf"{_RUN}:[joq]:[0-9.]+-[a-z][0-9.]*",
    r"s:[0-9a-f]{32}(:m|:s|:q)?",
    rf"(s:[0-9a-f]{{32}}|{_RUN}):k(:[0-9a-f]{{32}})?",
    r"ready|timers|deadlines|stops|live|clearing|runs|holders|delivered",
    r"held:.+",
    r"control:.+",
    r"answer:[A-Za-z0-9._-]+:.+",
]
IN_PARTITION = re.compile(r"lg:\{\d\d\}:(" + "|".join(_DOCUMENTED) + ")")
OUTSIDE = re.compile(r"lg:(schema|workers|keeper|worker:.+)|lg\.(turns|tools)(\.batch)?")
# Keys that stay when everything else has expired.
LASTING = re.compile(r"lg:\{\d\d\}:(delivered|holders|runs)|lg:schema|lg:workers")


class JournalView:
    """One partition's keys, read in one go."""

    def __init__(self, client: redis.Redis, partition: int) -> None:
        self.client = client
        self.prefix = keys.prefix(partition)
        self.ready = set(client.zrange(self.prefix + "ready", 0, -1))
        self.timers = set(client.zrange(self.prefix + "timers", 0, -1))
        self.live = set(client.zrange(self.prefix + "live", 0, -1))
        self.deadlines = set(client.zrange(self.prefix + "deadlines", 0, -1))
        self.stops = set(client.zrange(self.prefix + "stops", 0, -1))
        self.holders = set(client.smembers(self.prefix + "holders"))
        self.held = {
            (name.rpartition("held:")[2], ref)
            for name in client.scan_iter(self.prefix + "held:*", count=1000)
            for ref in client.smembers(name)
        }
        self.clearing = set(client.zrange(self.prefix + "clearing", 0, -1))
        names = client.zrange(self.prefix + "runs", 0, -1)
        self.runs = {name: client.hgetall(f"{self.prefix}r:{name}") for name in names}
        self.open = {name: client.hgetall(f"{self.prefix}r:{name}:t") for name in names}

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Give the headers of all tasks by reference."""
        return {
            f"{run_id}|{name[2:]}": json.loads(value)
            for run_id, fields in self.open.items()
            for name, value in fields.items()
            if name.startswith("t:")
        }


def check_journal(client: redis.Redis, partitions: int) -> None:
    """Check every partition: the indexes agree with the runs, and every run can still end."""
    for partition in range(partitions):
        view = JournalView(client, partition)
        _check_indexes(view)
        for run_id, fields in view.runs.items():
            if fields:
                _check_run(view, run_id, fields)


def _check_indexes(view: JournalView) -> None:
    tasks = view.tasks()
    state = {ref: task["s"] for ref, task in tasks.items()}
    assert view.ready == {ref for ref, at in state.items() if at == "ready"}
    leased = {(task["w"], ref) for ref, task in tasks.items() if task["s"] == "leased"}
    assert view.held == leased
    assert {worker for worker, _ in leased} <= view.holders
    assert view.timers <= {ref for ref, at in state.items() if at == "wait"}
    over = {run_id for run_id, fields in view.runs.items() if fields.get("status") in OVER}
    alive = set(view.runs) - over
    assert view.live == alive
    assert view.stops <= alive
    expected = {run_id for run_id in alive if "deadline" in view.runs[run_id]}
    assert view.deadlines == expected


def _check_run(view: JournalView, run_id: str, fields: dict[str, str]) -> None:
    tasks = {ref: task for ref, task in view.tasks().items() if ref.startswith(run_id + "|")}
    leased = [task for task in tasks.values() if task["s"] == "leased"]
    names = {ref.partition("|")[2] for ref, task in tasks.items() if task["s"] == "leased"}
    assert view.client.smembers(f"{view.prefix}r:{run_id}:l") == names, (run_id, fields)
    active = [
        ref for ref, task in tasks.items() if task.get("x") and task["s"] in ("ready", "leased")
    ]
    assert len(active) <= 1, f"{active} are exclusive and active at once"
    types = check_events(view.client, view.prefix, run_id, int(fields["ev"]))
    terminal = [kind for kind in types if kind in TERMINAL_TYPES]
    if fields["status"] in OVER:
        assert terminal == [types[-1]], f"{run_id} ended with {types}"
        assert not leased
        if run_id in view.clearing:
            # The keeper is still to clear it up.
            return
        assert not tasks
        assert not [name for name in view.open[run_id] if name[:2] in ("d:", "j:")]
        check_expiry(view.client, view.prefix, run_id)
    else:
        assert not terminal
        assert view.client.ttl(f"{view.prefix}r:{run_id}") == -1
        can_move = any(
            task["s"] in ("ready", "leased") or ref in view.timers or "sg" in task
            for ref, task in tasks.items()
        )
        assert can_move or "sw" in fields, f"{run_id} is abandoned: {fields}"


def check_events(client: redis.Redis, prefix: str, run_id: str, last: int) -> list[str]:
    """Check that both streams together hold each number once; give the durable types in order."""
    key = f"{prefix}r:{run_id}"
    numbers: list[int] = []
    types: list[tuple[int, str]] = []
    for suffix in (":e", ":d"):
        entries = client.xrange(key + suffix)
        of_stream = [int(entry_id.partition("-")[0]) for entry_id, _ in entries]
        assert of_stream == sorted(of_stream)
        numbers += of_stream
        if suffix == ":e":
            types = [
                (number, json.loads(fields["e"])["type"])
                for number, (_, fields) in zip(of_stream, entries, strict=True)
            ]
    assert len(numbers) == len(set(numbers)), f"{run_id}: a number twice in {sorted(numbers)}"
    missing = set(range(1, last + 1)) - set(numbers)
    first_live = client.xrange(key + ":d", count=1)
    start = int(first_live[0][0].partition("-")[0]) if first_live else last + 1
    cut = int(client.xinfo_stream(key + ":d")["entries-added"]) if _counts(client, key) else 0
    if cut == client.xlen(key + ":d"):
        assert not missing, f"{run_id}: no events {sorted(missing)}"
    assert all(number < start for number in missing), f"{run_id}: gaps {sorted(missing)}"
    assert max(numbers, default=0) == last
    return [kind for _, kind in sorted(types)]


def _counts(client: redis.Redis, key: str) -> bool:
    return bool(client.exists(key + ":d")) and "entries-added" in client.xinfo_stream(key + ":d")


def check_expiry(client: redis.Redis, prefix: str, run_id: str) -> None:
    """Check that everything of an ended run goes away, by itself or by the keeper's hand."""
    if client.zscore(f"{prefix}clearing", run_id) is not None:
        return
    for name in client.scan_iter(f"{prefix}r:{run_id}*", count=1000):
        assert client.ttl(name) > 0, f"{name} stays for ever"


def check_documented(client: redis.Redis) -> None:
    """Check that every key is one that the journal documents."""
    for name in client.scan_iter(count=1000):
        assert IN_PARTITION.fullmatch(name) or OUTSIDE.fullmatch(name), f"undocumented: {name}"


def check_nothing_left(client: redis.Redis, partitions: int) -> None:
    """Let everything expire, and check that only lasting keys remain."""
    for name in list(client.scan_iter(count=1000)):
        # In milliseconds: in seconds, one that is about to expire would have none left.
        if client.pttl(name) >= 0:
            client.delete(name)
    for partition in range(partitions):
        client.delete(keys.prefix(partition) + "runs")
    left = [name for name in client.scan_iter(count=1000) if not LASTING.fullmatch(name)]
    assert not left, f"these stay for ever: {left}"


def contents(client: redis.Redis, names: Iterable[str]) -> dict[str, Any]:
    """Give what keys hold; unlike DUMP it does not depend on how the server keeps it."""
    readers = {
        "string": client.dump,
        "hash": client.hgetall,
        "list": lambda name: client.lrange(name, 0, -1),
        "set": client.smembers,
        "zset": lambda name: client.zrange(name, 0, -1, withscores=True),
        "stream": client.xrange,
        "none": lambda name: None,
    }
    return {name: readers[client.type(name)](name) for name in names}


def dump(client: redis.Redis, run_id: str, partitions: int) -> dict[str, Any]:
    """Give everything that is written about a run, to see whether something changed."""
    prefix = keys.prefix(partition_of(run_id, partitions))
    return contents(client, _names(client, prefix, run_id))


def _names(client: redis.Redis, prefix: str, run_id: str) -> Iterable[str]:
    yield from sorted(client.scan_iter(f"{prefix}r:{run_id}*", count=1000))
    yield from sorted(client.scan_iter(f"{prefix}held:*", count=1000))
    yield from (prefix + name for name in ("ready", "timers", "live", "stops", "deadlines"))
