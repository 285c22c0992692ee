"""Celery: chain and chord with Redis as broker and result backend.

python -m benchmarks.peers.celery_canvas early|late
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from celery import Celery, chain, chord
from celery.exceptions import TimeoutError as CeleryTimeoutError

from benchmarks.peers.work import PAYLOAD, SLOTS, STEPS, Peer, Place, measure

_url = json.loads(os.environ["PEER_WORK"])["redis_url"]
app = Celery("peer", broker=_url, backend=_url)
if os.environ.get("PEER_MODE") == "late":
    # What Celery's documentation advises for tasks that must survive their worker.
    app.conf.update(
        task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1
    )


@app.task(name="peer.step")
def step(payload: str) -> str:
    return payload


@app.task(name="peer.join")
def join(payloads: list[str]) -> int:
    return len(payloads)


def told(result: Any) -> Any:
    """Wait for a result; one whose notice never came, as happens under load, is looked up."""
    for _ in range(30):
        try:
            return result.get(timeout=10)
        except CeleryTimeoutError:
            if result.ready():
                return result.get()
    raise TimeoutError("no result after 300 s")


class Canvas(Peer):
    """Chains of three and chords."""

    packages = ("celery", "kombu", "redis")

    def __init__(self, place: Place, mode: str) -> None:
        super().__init__(place)
        self.mode = mode
        self.name = f"Celery, {mode} ack"
        self.stores = "Redis: messages, and a result for each step for a day; " + (
            "a dead worker's tasks come back after visibility_timeout (an hour)"
            if mode == "late"
            else "a task in a worker that dies is lost"
        )
        self._kept: list[Any] = []

    def start(self) -> None:
        self.spawn(
            *("-m", "celery", "-A", "benchmarks.peers.celery_canvas", "worker", "-P", "threads"),
            *("-c", str(SLOTS), "-l", "warning"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            PEER_MODE=self.mode,
        )

    def run(self, count: int) -> None:
        links = [step.s(PAYLOAD), *(step.s() for _ in range(STEPS - 1))]
        results = [chain(*links).apply_async() for _ in range(count)]
        for result in results:
            assert told(result) == PAYLOAD

    def fan(self, width: int) -> None:
        result = chord([step.s(PAYLOAD) for _ in range(width)])(join.s())
        assert told(result) == width

    def converse(self, turns: int) -> int:
        raise NotImplementedError("it keeps no conversation")


if __name__ == "__main__":
    measure(Canvas(Place(), sys.argv[1]))
