"""Refuses a Redis that would lose records, and a journal of another version."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from redis.exceptions import ResponseError

from littleghost.errors import ConfigurationError, SchemaVersionError, UnsafeRedisError
from littleghost.journal import keys
from littleghost.journal.connection import Client, Server, servers
from littleghost.journal.scripts import guarded

OLDEST_SERVER = (6, 2)


def server_facts(server: Server) -> dict[str, Any]:
    """Give what INFO says about a server."""
    return guarded(server.info)


def check_policy(client: Client) -> None:
    """Refuse a server that is too old or may evict keys; of a cluster, each node that writes.

    Raises:
        ConfigurationError: It is a node of a cluster, and the URL does not say so.
        UnsafeRedisError: The message says which setting to change.
    """
    for address, server in guarded(lambda: servers(client)).items():
        check_server(server, address)


def check_server(server: Server, address: str = "") -> None:
    """Check one server; the message begins with the address of a cluster's node."""
    facts = server_facts(server)
    name = f"Redis at {address}" if address else "Redis"
    if facts.get("redis_mode") == "cluster" and not address:
        raise ConfigurationError(
            "this Redis is a node of a cluster; write redis+cluster:// instead of redis:// in "
            "LITTLEGHOST_REDIS_URL, and set LITTLEGHOST_BROKER_URL to a broker of its own"
        )
    numbers = re.findall(r"\d+", str(facts.get("redis_version", "0")))[:2]
    version = tuple(int(number) for number in numbers)
    if version < OLDEST_SERVER:
        raise UnsafeRedisError(
            f"{name} ({facts.get('redis_version')}) is too old; use 6.2 or newer, or Valkey"
        )
    policy = memory_policy(server, facts)
    if policy and policy != "noeviction":
        raise UnsafeRedisError(
            f"{name} has maxmemory-policy {policy!r} and may throw runs away; set it to "
            "'noeviction' (CONFIG SET maxmemory-policy noeviction, and the same in redis.conf)"
        )


def memory_policy(server: Server, facts: dict[str, Any]) -> str:
    """Give the eviction policy; empty where the server does not tell."""
    if "maxmemory_policy" in facts:
        return str(facts["maxmemory_policy"])
    try:
        answer = cast("dict[str, str]", server.config_get("maxmemory-policy"))
    except ResponseError:
        return ""
    return answer.get("maxmemory-policy", "")


def check_schema(client: Client, partitions: int) -> None:
    """Mark a new journal with this version, or refuse one that another version wrote.

    Raises:
        SchemaVersionError: The message names both versions, or both numbers of partitions.
    """
    mine = {"version": keys.SCHEMA_VERSION, "partitions": partitions}
    guarded(lambda: client.set(keys.SCHEMA, json.dumps(mine), nx=True))
    text = cast("str | None", guarded(lambda: client.get(keys.SCHEMA)))
    try:
        found = json.loads(text or "")
        version, count = int(found["version"]), int(found["partitions"])
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaVersionError(
            f"key {keys.SCHEMA!r} holds {text!r:.80}, which is no journal version; this Redis "
            "belongs to something else, or was damaged"
        ) from error
    if version != keys.SCHEMA_VERSION:
        raise SchemaVersionError(
            f"the journal in this Redis has version {version}, this worker reads "
            f"{keys.SCHEMA_VERSION}; use workers of one version, or drain the runs before upgrading"
        )
    if count != partitions:
        raise SchemaVersionError(
            f"the journal in this Redis has {count} partitions, this process is set to "
            f"{partitions}; set LITTLEGHOST_PARTITIONS={count}"
        )
