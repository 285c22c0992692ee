"""This project: agents with an instant model, one worker of threads."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.peers.work import SLOTS, Peer, Place, measure


class LittleGhost(Peer):
    """Runs of a turn, a call and a turn."""

    name = "LittleGhost"
    packages = ("littleghost", "celery", "redis")
    stores = (
        "Redis: per step its result, messages and events, in one script; a dead worker's tasks "
        "come back after its lease (3 s)"
    )

    def start(self) -> None:
        os.environ["LITTLEGHOST_REDIS_URL"] = self.place.redis_url
        os.environ["LITTLEGHOST_EMBEDDED"] = "0"
        self.spawn(
            *("-m", "celery", "-A", "benchmarks.bench_app", "worker", "-P", "threads"),
            *("-Q", "lg.turns,lg.tools", "-c", str(SLOTS), "-l", "warning"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            BENCH_KIND="ours",
        )
        from benchmarks import bench_app
        from littleghost import wiring

        self._app = bench_app
        self._client = wiring.runtime().client
        self._place = wiring.runtime().journal.place

    def run(self, count: int) -> None:
        runs = [self._app.Bench.enqueue("chain 1") for _ in range(count)]
        for run in runs:
            run.wait(300)
            assert run.is_completed, run.error

    def fan(self, width: int) -> None:
        self._completed(self._app.Fan.enqueue(f"fan {width}"))

    def converse(self, turns: int) -> int:
        run = self._completed(self._app.Bench.enqueue(f"chain {turns - 1}"))
        key, _ = self._place(run.id)
        keys = self._client.scan_iter(match=f"{key}*", count=1000)
        return sum(int(self._client.memory_usage(name, samples=0) or 0) for name in keys)

    def _completed(self, run: Any) -> Any:
        run.wait(300)
        assert run.is_completed, run.error
        return run


if __name__ == "__main__":
    measure(LittleGhost(Place()))
