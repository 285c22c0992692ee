"""Redis Cluster: clients made from one URL, and the few places where redis-py needs to be helped.

A cluster client finds the node of each key, follows keys that have moved, and sends a pipeline to
all nodes at once. A partition's keys share one slot, so a script is always at home on one node.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio.cluster import ClusterNode as AsyncNode
from redis.asyncio.cluster import RedisCluster as AsyncCluster
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from littleghost.errors import ConfigurationError
from littleghost.settings import CLUSTER_SCHEME

_clusters: weakref.WeakSet[RedisCluster] = weakref.WeakSet()


def split_url(url: str) -> tuple[str, list[tuple[str, int]]]:
    """Give what redis-py takes: the URL of the first node, and the places of the others.

    Raises:
        ConfigurationError: A node cannot be read, or a database is named; a cluster has only one.
    """
    scheme, _, rest = url.partition(CLUSTER_SCHEME)
    parts = urlsplit(f"//{rest}")
    login, at, hosts = parts.netloc.rpartition("@")
    if parts.path not in ("", "/", "/0"):
        raise ConfigurationError(
            f"redis_url names database {parts.path[1:]!r}; a Redis Cluster has only 0"
        )
    places = [_place(text) for text in hosts.split(",")]
    query = f"?{parts.query}" if parts.query else ""
    first = hosts.partition(",")[0]
    return f"{scheme}://{login}{at}{first}{query}", places[1:]


def _place(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text.strip()}")
        if parts.hostname:
            return parts.hostname, parts.port or 6379
    except ValueError:
        pass
    raise ConfigurationError(
        f"redis_url has {text!r} where a node's host:port should be; write "
        "redis+cluster://host:port,host:port"
    )


def make_cluster(url: str, retry: Retry, **options: Any) -> RedisCluster:
    """Make a client; it asks a node for the others at once."""
    first, others = split_url(url)
    client = RedisCluster(
        url=first,
        startup_nodes=[ClusterNode(host, port) for host, port in others],
        retry=retry,
        # Whether a partial cluster serves the slots it has is the servers' setting.
        require_full_coverage=False,
        **options,
    )
    _clusters.add(client)
    return client


def make_async_cluster(url: str, **options: Any) -> AsyncCluster:
    """Make a client for one event loop; it connects when it is used."""
    first, others = split_url(url)
    return AsyncCluster.from_url(
        first,
        startup_nodes=[AsyncNode(host, port) for host, port in others],
        require_full_coverage=False,
        **options,
    )


def _renew_locks() -> None:
    """Give the clients of a forked child new locks: another thread may have held the old ones.

    Their connection pools see the fork by themselves.
    """
    for client in _clusters:
        nodes = client.nodes_manager
        for owner in (client, nodes, getattr(nodes, "_event_dispatcher", None)):
            for name in ("_lock", "_initialization_lock"):
                if hasattr(owner, name):
                    setattr(owner, name, threading.RLock())


os.register_at_fork(after_in_child=_renew_locks)
