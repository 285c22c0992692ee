"""pydocket: tasks that schedule the next one, on Redis streams.

python -m benchmarks.peers.pydocket_tasks [worker]
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from datetime import timedelta

import redis
import redis.asyncio
from docket import CurrentDocket, Docket, Worker

from benchmarks.peers.work import PAYLOAD, SLOTS, STEPS, Peer, Place, measure

_url = json.loads(os.environ["PEER_WORK"])["redis_url"]
_client = redis.asyncio.Redis.from_url(_url)


async def step(run: str, left: int, payload: str, docket: Docket = CurrentDocket()) -> str:  # noqa: B008
    if left:
        await docket.add(step)(run, left - 1, payload)
    else:
        await _client.rpush(f"peer:{run}", "1")
    return payload


async def leaf(run: str, width: int, payload: str) -> str:
    if await _client.incr(f"peer:n:{run}") == width:
        await _client.rpush(f"peer:{run}", "1")
    return payload


async def work() -> None:
    async with Docket(name="peer", url=_url) as docket:
        docket.register(step)
        docket.register(leaf)
        # By default a worker with full slots pauses for 250 ms, which instant tasks would show.
        pause = timedelta(milliseconds=5)
        async with Worker(docket, concurrency=SLOTS, minimum_check_interval=pause) as worker:
            await worker.run_forever()


class Tasks(Peer):
    """Runs that chain themselves; the end is told through a list, since there is no join."""

    name = "pydocket"
    packages = ("pydocket", "redis")
    stores = (
        "Redis: a stream entry and a state hash per task; no results of earlier steps and no join "
        "(counted here by the tasks); a dead worker's tasks come back after redelivery_timeout "
        "(5 minutes)"
    )
    workers = (
        f"1 worker process, {SLOTS} tasks at once in its event loop; minimum_check_interval 5 ms "
        "instead of 250"
    )

    def start(self) -> None:
        self.spawn("-m", "benchmarks.peers.pydocket_tasks", "worker")
        self._redis = redis.Redis.from_url(_url, socket_timeout=None)
        self._loop = asyncio.new_event_loop()
        self._docket = Docket(name="peer", url=_url)
        self._loop.run_until_complete(self._docket.__aenter__())

    def run(self, count: int) -> None:
        name = uuid.uuid4().hex

        async def begin() -> None:
            for _ in range(count):
                await self._docket.add(step)(name, STEPS - 1, PAYLOAD)

        self._loop.run_until_complete(begin())
        for _ in range(count):
            assert self._redis.blpop([f"peer:{name}"], timeout=300)

    def fan(self, width: int) -> None:
        name = uuid.uuid4().hex

        async def begin() -> None:
            for _ in range(width):
                await self._docket.add(leaf)(name, width, PAYLOAD)

        self._loop.run_until_complete(begin())
        assert self._redis.blpop([f"peer:{name}"], timeout=300)

    def converse(self, turns: int) -> int:
        raise NotImplementedError("it keeps no conversation")


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        asyncio.run(work())
    else:
        measure(Tasks(Place()))
