"""The journal without the engine: runs, tasks and plans made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import redis
from redis.cluster import RedisCluster

from littleghost.celery.envelope import template
from littleghost.engine import commands as c
from littleghost.engine.ports import Lease
from littleghost.journal import keys
from littleghost.journal.headers import read_header
from littleghost.journal.keeper import Keeper
from littleghost.journal.plan import Plan
from littleghost.journal.scripts import constants
from littleghost.journal.store import RedisJournal
from littleghost.journal.workers import Workers
from littleghost.messages import assistant
from littleghost.usage import Usage

QUEUE = "lg.turns"
PARTITIONS = 2
CUT_EVENT = '{"type":"invocation_error","p":"0"}'


def journal_of(
    client: redis.Redis, worker: str = "a", *, retention_s: int = 600, session_s: int = 600
) -> RedisJournal:
    """Make the journal as a worker sees it; its scripts push messages, unless it is a cluster."""
    header = constants(
        envelope=None if isinstance(client, RedisCluster) else template(),
        push_prefix="",
        grace_ms=1000,
        retention_s=retention_s,
        session_s=session_s,
        is_cluster=isinstance(client, RedisCluster),
    )
    return RedisJournal(client, header, partitions=PARTITIONS, worker_id=worker)


def keeper_of(journal: RedisJournal, waiting: int = 0) -> Keeper:
    """Make a keeper that sees queues of one length."""
    workers = Workers(journal.client, 3600)
    return Keeper(
        journal, workers, lease_s=3600, queue_lengths=lambda names: dict.fromkeys(names, waiting)
    )


def record(text: str) -> str:
    """Write a small message as the journal keeps it."""
    return json.dumps({"role": "assistant", "content": [text]})


def turn(task_id: str, *, waits: bool = False) -> c.TaskSpec:
    """Make a turn of the root."""
    return c.TaskSpec(id=task_id, kind="turn", participant="0", queue=QUEUE, waits=waits)


def plan_of(
    journal: RedisJournal,
    run_id: str,
    *,
    session: str | None = None,
    limit: int = 10,
    deadline_ms: int | None = None,
    context: dict[str, Any] | None = None,
) -> Plan:
    """Plan a run with one root agent and its first turn."""
    plan = journal.plan_create()
    plan.fields.update(h=0, nonce=run_id)
    plan.fields["c"] = [
        [key, plan.payload(json.dumps(value))] for key, value in (context or {}).items()
    ]
    plan.fields["i"] = [plan.payload(json.dumps({"role": "user", "content": [run_id]}))]
    facts = {"asm": "m:A", "fp": "f", "inv": '{"run_id":"x"}', "ln": "", "cutev": CUT_EVENT}
    plan.fields["f"] = [[name, plan.payload(text)] for name, text in facts.items()]
    if session is not None:
        partition = int(run_id[:2])
        plan.fields.update(session=keys.session(partition, session, None), limit=limit)
    if deadline_ms is not None:
        plan.fields["deadline"] = deadline_ms
    root = c.ParticipantSpec(id="0", assembly="m:A", kind="agent", label="a", state={})
    plan.start([root], [turn("0-t0")], [])
    return plan


def begin(journal: RedisJournal, run_id: str, **fields: Any) -> str:
    """Create a run."""
    journal.create(run_id, plan_of(journal, run_id, **fields))
    return run_id


def take(journal: RedisJournal, run_id: str, task_id: str = "0-t0") -> Lease:
    """Claim a task that must be ready."""
    lease = journal.claim(run_id, task_id)
    assert lease is not None, f"{task_id} of {run_id} is not ready"
    return lease


def answer(text: str, tokens: int = 1) -> list[c.Command]:
    """Record what a model said."""
    return [
        c.AddUsage(Usage(input=tokens)),
        c.Append((record(text),), (assistant(text),)),
        c.SetText(text),
    ]


def finish(text: str = "done") -> list[c.Command]:
    """End a run well."""
    return [*answer(text), c.Complete({"participant": "0", "message": 1})]


def batch(
    turn_number: int, count: int, *, width: int = 8, exclusive: Sequence[int] = (),
    idempotent: bool = False,
) -> c.Start:  # fmt: skip
    """Start calls and the turn that waits for them."""
    join = f"0-b{turn_number}"
    calls = [
        c.TaskSpec(
            id=f"0-c{turn_number}.{number}", kind="call", participant="0", queue=QUEUE, payload={},
            exclusive=number in exclusive, idempotent=idempotent, join=join,
        )
        for number in range(count)
    ]  # fmt: skip
    following = f"0-t{turn_number + 1}"
    members = tuple(call.id for call in calls)
    joined = c.Join(id=join, participant="0", members=members, width=width, then=following)
    return c.Start(tasks=[*calls, turn(following, waits=True)], joins=[joined])


def result(text: str) -> list[c.Command]:
    """Record a call's result."""
    return [c.RecordResult(record(text))]


def fields_of(journal: RedisJournal, run_id: str) -> dict[str, str]:
    """Read a run's record, its participants and what it still has to do."""
    key, _ = journal.place(run_id)
    found: dict[str, str] = {}
    for suffix in ("", ":p", ":t"):
        found.update(journal.client.hgetall(key + suffix))
    return found


def tasks_of(journal: RedisJournal, run_id: str) -> dict[str, str]:
    """Give the status of each task."""
    return {
        name[2:]: json.loads(value)["s"]
        for name, value in fields_of(journal, run_id).items()
        if name.startswith("t:")
    }


def events_of(journal: RedisJournal, run_id: str) -> list[str]:
    """Give the types of the durable events."""
    entries = journal.client.xrange(journal.place(run_id)[0] + ":e")
    return [json.loads(fields["e"])["type"] for _, fields in entries]


def texts_of(journal: RedisJournal, run_id: str) -> list[str]:
    """Give what stands in the root's list."""
    name = read_header(journal.place(run_id)[0], "0", fields_of(journal, run_id)["p:0"])["m"]
    return [json.loads(row)["content"][0] for row in journal.client.lrange(name, 0, -1)]


def make_due(journal: RedisJournal, index: str) -> None:
    """Let enough time pass for everything in one of the keeper's indexes."""
    for partition in range(PARTITIONS):
        name = keys.prefix(partition) + index
        for member in journal.client.zrange(name, 0, -1):
            journal.client.zadd(name, {member: 1})
