"""The live workers: who they are, which queues they serve, and until when they count as alive."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, cast

from littleghost.journal import keys
from littleghost.journal.connection import Client, time_ms
from littleghost.journal.scripts import guarded


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """What a worker says about itself. JSON: the same names."""

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    pool: str
    concurrency: int
    version: str


class Workers:
    """The register of live workers."""

    def __init__(self, client: Client, lease_s: float) -> None:
        self._client = client
        self._lease_ms = round(lease_s * 1000)

    def now_ms(self) -> int:
        """Give the time by which leases in the register go."""
        return guarded(lambda: time_ms(self._client, keys.WORKERS))

    def renew(self, facts: WorkerFacts, *, lease_s: float | None = None) -> None:
        """Say that a worker lives, for one lease from now.

        One heartbeat carries all of a worker's tasks, however many. Two round trips.
        """
        lease_ms = self._lease_ms if lease_s is None else round(lease_s * 1000)
        until = self.now_ms() + lease_ms
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zadd(keys.WORKERS, {facts.id: until})
        pipeline.set(keys.worker(facts.id), json.dumps(asdict(facts)), px=lease_ms * 3)
        guarded(pipeline.execute)

    def leave(self, worker_id: str) -> None:
        """Take a worker off the register; what it still holds is then taken back."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zrem(keys.WORKERS, worker_id)
        pipeline.delete(keys.worker(worker_id))
        guarded(pipeline.execute)

    def alive(self) -> set[str]:
        """Give the ids of the workers whose lease has not run out."""
        now = self.now_ms()
        rows = guarded(lambda: self._client.zrangebyscore(keys.WORKERS, now, "+inf"))
        return set(cast("list[str]", rows))

    def forget_dead(self, older_s: float = 3600.0) -> None:
        """Drop register entries of workers that died long ago."""
        limit = self.now_ms() - round(older_s * 1000)
        guarded(lambda: self._client.zremrangebyscore(keys.WORKERS, "-inf", limit))

    def list(self) -> list[WorkerFacts]:
        """Give the facts of all live workers."""
        names = sorted(self.alive())
        if not names:
            return []
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            pipeline.get(keys.worker(name))
        rows = guarded(pipeline.execute)
        found: list[WorkerFacts] = []
        for row in cast("list[str | None]", rows):
            if row:
                data: dict[str, Any] = json.loads(row)
                data["queues"] = tuple(data["queues"])
                found.append(WorkerFacts(**data))
        return found

    def unserved(self, queues: Iterable[str]) -> list[str]:
        """Give those of some queues that no live worker serves."""
        served = {queue for facts in self.list() for queue in facts.queues}
        return sorted(set(queues) - served)
