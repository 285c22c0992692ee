"""Refuses a Redis that would lose records, and a journal of another version."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import redis
from redis.exceptions import ResponseError

from littleghost.errors import SchemaVersionError, UnsafeRedisError
from littleghost.journal import keys
from littleghost.journal.scripts import guarded

OLDEST_SERVER = (6, 2)


def server_facts(client: redis.Redis) -> dict[str, Any]:
    """Give what INFO says about the server."""
    return guarded(client.info)


def check_policy(client: redis.Redis) -> None:
    """Refuse a server that is too old or may evict keys.

    Raises:
        UnsafeRedisError: The message says which setting to change.
    """
    facts = server_facts(client)
    numbers = re.findall(r"\d+", str(facts.get("redis_version", "0")))[:2]
    version = tuple(int(number) for number in numbers)
    if version < OLDEST_SERVER:
        raise UnsafeRedisError(
            f"Redis {facts.get('redis_version')} is too old; use 6.2 or newer, or Valkey"
        )
    policy = memory_policy(client, facts)
    if policy and policy != "noeviction":
        raise UnsafeRedisError(
            f"Redis has maxmemory-policy {policy!r} and may throw runs away; set it to "
            "'noeviction' (CONFIG SET maxmemory-policy noeviction, and the same in redis.conf)"
        )


def memory_policy(client: redis.Redis, facts: dict[str, Any]) -> str:
    """Give the eviction policy; empty where the server does not tell."""
    if "maxmemory_policy" in facts:
        return str(facts["maxmemory_policy"])
    try:
        answer = cast("dict[str, str]", client.config_get("maxmemory-policy"))
    except ResponseError:
        return ""
    return answer.get("maxmemory-policy", "")


def check_schema(client: redis.Redis, partitions: int) -> None:
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
