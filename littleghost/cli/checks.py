"""What `littleghost doctor` looks at: each check is one line with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from littleghost.celery.roles import ROLES
from littleghost.cli.masked import masked_url
from littleghost.errors import ConfigurationError, LittleGhostError
from littleghost.journal import keys
from littleghost.journal.connection import Server, servers
from littleghost.journal.policy import check_schema, check_server, memory_policy, server_facts
from littleghost.journal.scripts import guarded
from littleghost.version import __version__
from littleghost.wiring import Runtime

Status = Literal["ok", "warn", "fail"]
# A Redis fuller than this needs more memory soon; a full one refuses new work.
FULL = 0.6
# Messages waiting in a queue that nobody serves, or more than this for each slot that serves it.
BACKLOG = 10


@dataclass(frozen=True, slots=True)
class Check:
    """What one look found. JSON: `{"name", "status", "detail", "cure"?}`."""

    name: str
    status: Status
    detail: str
    cure: str = ""

    def to_json(self) -> dict[str, str]:
        """Give the JSON form."""
        facts = {"name": self.name, "status": self.status, "detail": self.detail}
        return {**facts, "cure": self.cure} if self.cure else facts


def check_all(work: Runtime) -> list[Check]:
    """Look at everything; the first check says whether Redis can be reached at all."""
    url = masked_url(work.settings.redis_url or "")
    found: list[Check] = []
    try:
        nodes = guarded(lambda: servers(work.client))
        for address, server in nodes.items():
            facts = server_facts(server)
            here = [_server(server, facts, address, address or url)]
            here += [*_memory(server, facts), *_persistence(facts)]
            found += [_at(address, check) for check in [*here, *_replicas(facts)]]
    except LittleGhostError as error:
        cure = "start it, or correct LITTLEGHOST_REDIS_URL"
        return [Check("redis", "fail", f"{url}: {error}", cure)]
    for name, look in _LOOKS.items():
        try:
            found += look(work)
        except LittleGhostError as error:
            found.append(Check(name, "fail", str(error), "see the message"))
    return found


def _at(address: str, check: Check) -> Check:
    """Say of which node of a cluster this is true."""
    if not address or check.name == "redis":
        return check
    return replace(check, detail=f"{address}: {check.detail}")


def _server(server: Server, facts: Mapping[str, Any], address: str, place: str) -> Check:
    name = str(facts.get("server_name") or "redis").capitalize()
    version = facts.get("valkey_version") or facts.get("redis_version") or "?"
    detail = f"{name} {version} at {place}"
    try:
        check_server(server, address)
    except ConfigurationError as error:
        # The policy has a check of its own.
        if "maxmemory" not in str(error):
            return Check("redis", "fail", str(error), "see the message")
    return Check("redis", "ok", detail)


def _memory(server: Server, facts: Mapping[str, Any]) -> list[Check]:
    policy = memory_policy(server, dict(facts))
    if not policy:
        check = Check(
            "eviction",
            "warn",
            "the server does not tell its maxmemory-policy",
            "make sure that it is noeviction",
        )
    elif policy != "noeviction":
        check = Check(
            "eviction",
            "fail",
            f"maxmemory-policy is {policy}: runs may be thrown away",
            "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
        )
    else:
        check = Check("eviction", "ok", "maxmemory-policy is noeviction")
    used, limit = int(facts.get("used_memory", 0)), int(facts.get("maxmemory", 0))
    size = f"{used / 1e6:.0f} MB used"
    if not limit:
        return [check, Check("memory", "ok", f"{size}, no maxmemory")]
    share = used / limit
    detail = f"{size} of {limit / 1e6:.0f} MB ({share:.0%})"
    if share < FULL:
        return [check, Check("memory", "ok", detail)]
    cure = "give it more memory, or keep finished runs shorter (LITTLEGHOST_RETENTION_S)"
    return [check, Check("memory", "warn", detail, cure)]


def _persistence(facts: Mapping[str, Any]) -> list[Check]:
    if facts.get("aof_enabled"):
        if str(facts.get("aof_last_write_status", "ok")) != "ok":
            return [
                Check("aof", "fail", "the append-only file cannot be written", "look at its disk")
            ]
        return [Check("aof", "ok", "the append-only file is on")]
    return [
        Check(
            "aof",
            "warn",
            "the append-only file is off: a restart of Redis loses what no snapshot has",
            "CONFIG SET appendonly yes, and the same with appendfsync everysec in redis.conf",
        )
    ]


def _replicas(facts: Mapping[str, Any]) -> list[Check]:
    """Look whether another node could take over from a node of a cluster."""
    if not facts.get("cluster_enabled"):
        return []
    count = int(facts.get("connected_slaves", 0))
    if count:
        return [Check("replicas", "ok", f"{count} connected")]
    cure = "add a replica (CLUSTER REPLICATE), or accept that its runs wait while it is away"
    return [Check("replicas", "warn", "no replica could take over", cure)]


def _journal(work: Runtime) -> list[Check]:
    mine = f"version {keys.SCHEMA_VERSION}, {work.settings.partitions} partitions"
    # A look must not mark somebody else's Redis as a journal.
    if guarded(lambda: work.client.get(keys.SCHEMA)) is None:
        return [Check("journal", "ok", f"no journal yet; the first worker begins one ({mine})")]
    check_schema(work.client, work.settings.partitions)
    return [Check("journal", "ok", f"{mine}, {len(work.records.live())} unfinished runs")]


def _broker(work: Runtime) -> list[Check]:
    if work.settings.same_redis:
        return [Check("broker", "ok", "the journal's Redis")]
    from littleghost.celery.probe import broker_trouble

    url = work.settings.broker_url or ""
    trouble = broker_trouble(url)
    if trouble:
        cure = "start it, or correct LITTLEGHOST_BROKER_URL; runs wait in the journal meanwhile"
        return [Check("broker", "fail", f"{masked_url(url)}: {trouble}", cure)]
    return [Check("broker", "ok", masked_url(url))]


def _workers(work: Runtime) -> list[Check]:
    found: list[Check] = []
    live = work.workers.list()
    for worker in live:
        detail = (
            f"{worker.host} pid {worker.pid}: {worker.concurrency} {worker.pool} slots serve "
            f"{', '.join(worker.queues)}"
        )
        if worker.version == __version__:
            found.append(Check("worker", "ok", detail))
        else:
            cure = "let all workers run one version"
            found.append(Check("worker", "warn", f"{detail}; version {worker.version}", cure))
    if live and not guarded(lambda: work.client.get(keys.KEEPER)):
        found.append(
            Check(
                "keeper", "warn", "no worker leads the keeper's duty", "look again in some seconds"
            )
        )
    standard = [queue for role in ROLES.values() for queue in role.queues(work.settings)]
    queues = dict.fromkeys([*standard, *(queue for worker in live for queue in worker.queues)])
    return [*found, *_queues(work, list(queues))]


def _queues(work: Runtime, queues: list[str]) -> list[Check]:
    found: list[Check] = []
    lengths = work.queue_lengths(queues)
    slots = dict.fromkeys(queues, 0)
    for worker in work.workers.list():
        for queue in worker.queues:
            slots[queue] = slots.get(queue, 0) + worker.concurrency
    for queue in queues:
        waiting = lengths.get(queue, 0)
        detail = f"{queue}: {waiting} waiting, {slots[queue]} slots"
        role = "tools" if ".tools" in queue else "turns"
        if not slots[queue]:
            cure = f"littleghost worker {role} -A my.module"
            found.append(Check("queue", "warn", f"{detail}: no live worker serves it", cure))
        elif waiting > slots[queue] * BACKLOG:
            found.append(Check("queue", "warn", detail, f"add workers (littleghost worker {role})"))
        else:
            found.append(Check("queue", "ok", detail))
    return found


_LOOKS: dict[str, Callable[[Runtime], list[Check]]] = {
    "journal": _journal,
    "broker": _broker,
    "workers": _workers,
}
