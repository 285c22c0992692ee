"""Kills one worker after the other while a run goes on, and replaces each at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from littleghost import Run, wiring
from littleghost.cli.proof import prove_runs
from tests.faults.fleet import Fleet, WorkerProcess

EVERY_S = 1.0
# Where a worker takes longer to start than it then lives, a run must come to its end all the same.
MOST_KILLS = 12
LIMIT_S = 90.0


class Unrest:
    """Goes round the workers of a fleet in an order that a seed says.

    Attributes:
        kills: The kinds of the workers that were killed, in order.
        held: How many tasks they held in all.
    """

    def __init__(self, fleet: Fleet, workers: Sequence[WorkerProcess], seed: int) -> None:
        self._fleet = fleet
        self._places = list(workers)
        random.Random(seed).shuffle(self._places)
        self._next = 0
        self.kills: list[str] = []
        self.held = 0

    def until_over(self, run: Run) -> None:
        """Kill a worker a second, until the run is over."""
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(run.wait, LIMIT_S)
            try:
                while not wait([ended], timeout=EVERY_S).done:
                    if len(self.kills) < MOST_KILLS:
                        self._kill_next()
                    self._prove()
            except BaseException:
                # What is wrong is told at once, not when the run is waited for in vain.
                run.cancel()
                raise
            ended.result()

    def settle(self) -> None:
        """Wait until the newest replacements serve."""
        self._fleet.wait_ready(*self._places)

    def _kill_next(self) -> None:
        """Kill the next one that serves; one that is just starting holds nothing."""
        count = len(self._places)
        for step in range(count):
            place = (self._next + step) % count
            worker = self._places[place]
            if worker.is_ready:
                break
        else:
            return
        self._next = place + 1
        self.kills.append(worker.kind)
        worker.kill_group()
        self.held += self._tasks_of(worker)
        self._places[place] = self._fleet.launch(worker.kind, worker.slots)

    def _tasks_of(self, worker: WorkerProcess) -> int:
        work = wiring.runtime()
        ids = [facts.id for facts in work.workers.list() if facts.pid == worker.pid]
        return sum(len(work.records.held(worker_id)) for worker_id in ids)

    def _prove(self) -> None:
        """At no moment is there a run that could not end."""
        failed = [check for check in prove_runs(wiring.runtime()) if check.status == "fail"]
        assert not failed, failed
