"""Every setting, with its unit and the environment variable that sets it.

One frozen value, read once; no other module reads the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

from littleghost.errors import ConfigurationError
from littleghost.ids import MAX_PARTITIONS

PREFIX = "LITTLEGHOST_"
# In the URL of a Redis Cluster this stands between redis or rediss and the first node.
CLUSTER_SCHEME = "+cluster://"


def is_cluster(url: str | None) -> bool:
    """Whether a URL names a Redis Cluster."""
    return url is not None and url.startswith((f"redis{CLUSTER_SCHEME}", f"rediss{CLUSTER_SCHEME}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set; each field is also `LITTLEGHOST_<FIELD>` in the environment.

    Attributes:
        redis_url: The journal's Redis; None starts a private one inside this process. A cluster is
            `redis+cluster://host:port,host:port`, and needs a `broker_url`.
        broker_url: Celery's broker when it is not the journal's Redis (Redis or RabbitMQ).
        imports: Modules a worker imports, so that their assemblies are known; commas between.
        embedded: Whether a private Redis and worker may be started.
        partitions: How many partitions the journal has, 1 to 100; fixed once runs exist.
        queue_prefix: First part of every queue name.
        lease_s: Seconds after its last heartbeat until a worker counts as dead.
        heartbeat_s: Seconds between a worker's heartbeats.
        sweep_s: Seconds between the keeper's rounds.
        republish_grace_s: Age in seconds at which an unclaimed task is looked at first.
        stop_grace_s: Seconds that running tasks have to let go of a stopped run.
        drain_timeout_s: Seconds a stopping worker lets running tasks finish.
        no_worker_after_s: Seconds after which a waiting caller is told that nobody serves a queue.
        retention_s: Seconds a finished run is kept.
        session_s: Seconds a session is kept after its last run.
        session_waiting: How many runs may wait for one session.
        max_lost: How often a task may lose its worker before it fails.
        in_place_max: How many tasks of a run a worker does in a row before others have a turn.
        max_invocation_bytes: Largest message, history and context of one call together.
        definition_mismatch: What a worker does with a run of another definition: warn or refuse.
    """

    redis_url: str | None = field(default=None, repr=False)
    broker_url: str | None = field(default=None, repr=False)
    imports: tuple[str, ...] = ()
    embedded: bool = True
    partitions: int = 16
    queue_prefix: str = "lg"
    lease_s: float = 3.0
    heartbeat_s: float = 0.75
    sweep_s: float = 0.4
    republish_grace_s: float = 1.0
    stop_grace_s: float = 0.5
    drain_timeout_s: float = 10.0
    no_worker_after_s: float = 3.0
    retention_s: float = 3 * 86400.0
    session_s: float = 30 * 86400.0
    session_waiting: int = 1000
    max_lost: int = 3
    in_place_max: int = 16
    max_invocation_bytes: int = 8 * 1024 * 1024
    definition_mismatch: Literal["warn", "refuse"] = "warn"

    def __post_init__(self) -> None:
        if is_cluster(self.broker_url):
            raise ConfigurationError(
                "broker_url names a Redis Cluster, which Celery cannot use as its broker; use a "
                "single Redis or RabbitMQ"
            )
        if is_cluster(self.redis_url) and self.broker_url is None:
            raise ConfigurationError(
                "redis_url names a Redis Cluster, which Celery cannot use as its broker; set "
                f"{PREFIX}BROKER_URL to a single Redis or RabbitMQ"
            )
        if not 1 <= self.partitions <= MAX_PARTITIONS:
            raise ConfigurationError(
                f"partitions is {self.partitions!r}; use a number from 1 to {MAX_PARTITIONS}"
            )
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.queue_prefix):
            raise ConfigurationError(
                f"queue_prefix is {self.queue_prefix!r}; use 1 to 64 letters, digits, '_' and '-'"
            )
        if self.heartbeat_s * 2 > self.lease_s:
            raise ConfigurationError(
                f"heartbeat_s is {self.heartbeat_s!r} and lease_s {self.lease_s!r}; a lease must "
                "outlast at least two heartbeats"
            )
        if self.definition_mismatch not in ("warn", "refuse"):
            raise ConfigurationError(
                f"definition_mismatch is {self.definition_mismatch!r}; use 'warn' or 'refuse'"
            )

    @property
    def is_embedded(self) -> bool:
        """Whether this process brings its own Redis and worker."""
        return self.redis_url is None and self.embedded

    @property
    def same_redis(self) -> bool:
        """Whether the journal's scripts may push messages to the broker themselves."""
        return self.broker_url is None or self.broker_url == self.redis_url

    def queue(self, kind: str, lane: str = "") -> str:
        """Name the queue of a kind of task: turns or tools, or a tool's own queue name."""
        name = f"{self.queue_prefix}.{kind}"
        return f"{name}.{lane}" if lane else name

    def standard_queues(self) -> list[str]:
        """Name the queues of turns and tools, those of interactive runs first."""
        return [self.queue(kind, lane) for lane in ("", "batch") for kind in ("turns", "tools")]

    def with_(self, **changes: Any) -> Settings:
        """Give a copy with some fields changed."""
        return replace(self, **changes)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from environment variables.

        Raises:
            ConfigurationError: A variable cannot be read; the message names it.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for item in fields(cls):
            variable = PREFIX + item.name.upper()
            text = environ.get(variable, "").strip()
            if text:
                values[item.name] = _parse(variable, text, str(item.type))
        return cls(**values)


def _parse(variable: str, text: str, kind: str) -> object:
    try:
        if kind == "bool":
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
                text.lower()
            ]
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
        if kind.startswith("tuple"):
            return tuple(part.strip() for part in text.split(",") if part.strip())
    except (ValueError, KeyError) as error:
        raise ConfigurationError(f"{variable} is {text!r}; expected {kind}") from error
    return cast("object", text)
