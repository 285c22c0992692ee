"""Connections to Redis: bounded in time, safe to send a command twice, no more than are needed."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

# A blocking read of events waits this long at most; its socket waits a little longer.
BLOCK_MS = 5_000
_SOCKET_S = 5.0
# Connections that stay open when nothing uses them; a burst of callers leaves no more behind.
MAX_IDLE = 4
# The same for a worker, whose many slots use the journal for moments only.
MAX_IDLE_WORKER = 64


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


def connect(url: str, *, blocking: bool = False) -> redis.Redis:
    """Make a Redis client.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        blocking: Its reads may wait for some seconds.
    """
    pool = TrimmedPool.from_url(
        url,
        decode_responses=True,
        encoding_errors="replace",
        protocol=2,
        socket_timeout=_SOCKET_S + (BLOCK_MS / 1000 if blocking else 0.0),
        socket_connect_timeout=2.0,
        **({} if url.startswith("unix") else {"socket_keepalive": True}),
        health_check_interval=30,
        # A command whose reply was lost is sent again: every script gives the first answer then.
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.02), 3),
    )
    return redis.Redis.from_pool(pool)
