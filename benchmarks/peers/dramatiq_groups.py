"""Dramatiq: pipeline and group with results in Redis."""

from __future__ import annotations

import json
import os

import dramatiq
from dramatiq import group, pipeline
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.peers.work import PAYLOAD, SLOTS, STEPS, Peer, Place, measure

_url = json.loads(os.environ["PEER_WORK"])["redis_url"]
broker = RedisBroker(url=_url)
broker.add_middleware(Results(backend=RedisBackend(url=_url)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def step(payload: str) -> str:
    return payload


class Groups(Peer):
    """Pipelines of three and groups."""

    name = "Dramatiq"
    packages = ("dramatiq", "redis")
    stores = (
        "Redis: messages, acknowledged when done, and a result for each step for 10 minutes; "
        "a dead worker's come back after its heartbeat (60 s)"
    )

    def start(self) -> None:
        self.spawn(
            *("-m", "dramatiq", "benchmarks.peers.dramatiq_groups"),
            *("--processes", "1", "--threads", str(SLOTS)),
        )

    def run(self, count: int) -> None:
        pipes = [
            pipeline([step.message(PAYLOAD), *(step.message() for _ in range(STEPS - 1))]).run()
            for _ in range(count)
        ]
        for pipe in pipes:
            assert pipe.get_result(block=True, timeout=300_000) == PAYLOAD

    def fan(self, width: int) -> None:
        found = group([step.message(PAYLOAD) for _ in range(width)]).run()
        # The caller gathers; a step that got all results would need group callbacks, which do not.
        assert len(list(found.get_results(block=True, timeout=300_000))) == width

    def converse(self, turns: int) -> int:
        raise NotImplementedError("it keeps no conversation")


if __name__ == "__main__":
    measure(Groups(Place()))
