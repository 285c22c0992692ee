"""Connections to Redis: bounded in time, safe to send a command twice, no more than are needed.

This is the one place that knows whether the journal is on one server or on a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import redis
import redis.asyncio
from redis.asyncio.cluster import RedisCluster as AsyncCluster
from redis.backoff import ExponentialBackoff
from redis.client import Pipeline
from redis.cluster import ClusterPipeline, RedisCluster
from redis.exceptions import RedisClusterException, RedisError
from redis.retry import Retry

from littleghost.errors import JournalUnavailableError
from littleghost.journal.cluster import make_async_cluster, make_cluster
from littleghost.settings import is_cluster

# A blocking read of events waits this long at most; its socket waits a little longer.
BLOCK_MS = 5_000
_SOCKET_S = 5.0
_CONNECT_S = 2.0
# Connections that stay open when nothing uses them; a burst of callers leaves no more behind.
MAX_IDLE = 4
# The same for a worker, whose many slots use the journal for moments only.
MAX_IDLE_WORKER = 64

Server = redis.Redis
Client = Server | RedisCluster
AsyncClient = redis.asyncio.Redis | AsyncCluster
AnyPipeline = Pipeline | ClusterPipeline
# What redis-py raises: its errors about a cluster are not all of one family.
REDIS_ERRORS = (RedisError, RedisClusterException)


class TrimmedPool(redis.ConnectionPool):
    """A pool that closes what a burst opened, instead of keeping it for ever."""

    max_idle: int = MAX_IDLE

    def release(self, connection: Any) -> None:
        """Take a connection back, or close it when enough idle ones are there."""
        with self._lock:
            if len(self._available_connections) < self.max_idle:
                super().release(connection)
                return
            # The pool's own release would keep the closed connection, and count it as idle.
            if connection in self._in_use_connections:
                self._in_use_connections.remove(connection)
                self._created_connections -= 1
        connection.disconnect()


class WorkerPool(TrimmedPool):
    """A worker's pool."""

    max_idle: int = MAX_IDLE_WORKER


def connect(url: str, *, blocking: bool = False) -> Client:
    """Make a Redis client.

    Args:
        url: `redis://`, `rediss://` or `unix://`; `redis+cluster://` or `rediss+cluster://`.
        blocking: Its reads may wait for some seconds.

    Raises:
        ConfigurationError: The URL of a cluster cannot be read.
        JournalUnavailableError: No node of a cluster answers. A single server is asked later.
    """
    options: dict[str, Any] = {
        "decode_responses": True,
        "encoding_errors": "replace",
        "protocol": 2,
        "socket_timeout": _SOCKET_S + (BLOCK_MS / 1000 if blocking else 0.0),
        "socket_connect_timeout": _CONNECT_S,
    }
    # A command whose reply was lost is sent again: every script gives the first answer then.
    retry = Retry(ExponentialBackoff(cap=0.5, base=0.02), 3)
    if not url.startswith("unix"):
        options["socket_keepalive"] = True
    if not is_cluster(url):
        pool = TrimmedPool.from_url(url, health_check_interval=30, retry=retry, **options)
        return redis.Redis.from_pool(pool)
    try:
        return make_cluster(url, retry, connection_pool_class=TrimmedPool, **options)
    except REDIS_ERRORS as error:
        raise JournalUnavailableError(f"Redis did not answer: {str(error)[:300]}") from error


def connect_async(url: str) -> AsyncClient:
    """Make a client for one event loop whose reads may wait; it connects when it is used."""
    options: dict[str, Any] = {
        "decode_responses": True,
        "encoding_errors": "replace",
        "protocol": 2,
        "socket_timeout": BLOCK_MS / 1000 + _SOCKET_S,
        "socket_connect_timeout": _CONNECT_S,
    }
    if is_cluster(url):
        return make_async_cluster(url, **options)
    return redis.asyncio.Redis.from_url(url, **options)


def servers(client: Client) -> dict[str, Server]:
    """Give a client of each server that takes writes, by its address; "" for a single one."""
    if isinstance(client, RedisCluster):
        return {node.name: client.get_redis_connection(node) for node in client.get_primaries()}
    return {"": client}


def time_ms(client: Client, key: str) -> int:
    """Give the time of the server that holds a key, in ms."""
    if isinstance(client, RedisCluster):
        client = client.get_redis_connection(_node_of(client, key))
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def add_script(pipeline: AnyPipeline, digest: str, key: str, *args: str | int) -> None:
    """Add a script call to a pipeline."""
    if isinstance(pipeline, ClusterPipeline):
        # Without the node, redis-py would ask a server for the keys of each call.
        pipeline.execute_command(
            "EVALSHA", digest, 1, key, *args, target_nodes=_node_of(pipeline, key)
        )
    else:
        pipeline.evalsha(digest, 1, key, *args)


def read_streams(
    client: Client, streams: Mapping[str, str], count: int, block_ms: int | None
) -> Any:
    """Read streams of one partition; waits for an entry at most `block_ms`."""
    if isinstance(client, RedisCluster):
        command = _xread(streams, count, block_ms)
        return client.execute_command(*command, target_nodes=_node_of(client, next(iter(streams))))
    return client.xread(cast("Any", streams), count=count, block=block_ms)


async def read_streams_async(
    client: AsyncClient, streams: Mapping[str, str], count: int, block_ms: int
) -> Any:
    """Do the same without blocking the event loop."""
    if isinstance(client, AsyncCluster):
        await client.initialize()
        command = _xread(streams, count, block_ms)
        return await client.execute_command(
            *command, target_nodes=_node_of(client, next(iter(streams)))
        )
    return await client.xread(cast("Any", streams), count=count, block=block_ms)


def _xread(streams: Mapping[str, str], count: int, block_ms: int | None) -> list[str | int]:
    wait = [] if block_ms is None else ["BLOCK", block_ms]
    return ["XREAD", "COUNT", count, *wait, "STREAMS", *streams, *streams.values()]


def _node_of(client: RedisCluster | AsyncCluster, key: str) -> Any:
    """Give the node of a key, which redis-py would ask a server for at some commands."""
    return client.get_node_from_key(key)


def widen(client: Client) -> None:
    """Have a client keep as many idle connections as a worker needs."""
    if isinstance(client, RedisCluster):
        client.nodes_manager.connection_pool_class = WorkerPool
    for server in servers(client).values():
        if isinstance(server.connection_pool, TrimmedPool):
            server.connection_pool.max_idle = MAX_IDLE_WORKER


def disconnect(client: Client) -> None:
    """Close a client's connections; they open again when needed."""
    if isinstance(client, RedisCluster):
        client.disconnect_connection_pools()
    else:
        client.connection_pool.disconnect()
