"""The keeper: takes back what dead workers held, fires timers and deadlines, publishes lost tasks.

Every worker runs one; the one with the lead works. Two that believe they lead do no harm: each step
is one fenced script. Its cost depends on what is due, never on how many runs there are.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from redis.exceptions import NoScriptError

from littleghost.errors import DeadlineExceededError, RunError
from littleghost.failure import Failure
from littleghost.journal import keys
from littleghost.journal.connection import REDIS_ERRORS
from littleghost.journal.scripts import guarded, translate
from littleghost.journal.store import RedisJournal, ready_tasks
from littleghost.journal.workers import Workers

logger = logging.getLogger("littleghost.keeper")
# How many due entries of one kind and partition one round handles.
ROUND_LIMIT = 500
# Seconds of a round for looking at runs that are probably well, and for clearing up. What is urgent
# (timers, deadlines, tasks of dead workers) must not wait until a burst of runs was looked at.
CARE_S = 0.25
# How many pieces of one run it clears up in a round.
CLEAR_PIECES = 200
# A message published this shortly before the newest delivered one may still be on its way.
MARGIN_MS = 200
# How often workers that died long ago are taken off the register.
FORGET_EVERY_S = 600.0

QueueLengths = Callable[[Collection[str]], Mapping[str, int]]


class Keeper:
    """One worker's keeper."""

    def __init__(
        self,
        journal: RedisJournal,
        workers: Workers,
        *,
        lease_s: float,
        queue_lengths: QueueLengths,
    ) -> None:
        """Prepare.

        Args:
            lease_s: Seconds that the lead and a worker's lease last.
            queue_lengths: Gives the number of waiting messages of some queues.
        """
        self._journal = journal
        self._workers = workers
        self._lease_s = lease_s
        self._queue_lengths = queue_lengths
        self._reclaim_after = 0.0
        self._had_trouble = False
        self._forgot_at = 0.0

    def round(self) -> bool:
        """Do what is due, when this keeper leads.

        Returns:
            Whether it led.

        Raises:
            JournalError: Redis did not answer; nothing is lost, the next round goes on.
        """
        try:
            return self._round()
        except Exception:
            self._had_trouble = True
            raise

    def _round(self) -> bool:
        journal = self._journal
        lead = journal.scripts.run(
            "lead", keys.KEEPER, "", journal.worker_id, round(self._lease_s * 1000)
        )
        if not lead:
            return False
        if self._had_trouble:
            # Workers could not renew their leases while Redis was away: give them the time to.
            self._had_trouble = False
            self._reclaim_after = time.monotonic() + self._lease_s
        alive = self._workers.alive()
        sweeps = self._sweep_all()
        delivered = _newest([row[7] for row in sweeps])
        for partition, row in enumerate(sweeps):
            self._partition(partition, row, alive, delivered)
        self._care(sweeps)
        if time.monotonic() - self._forgot_at >= FORGET_EVERY_S:
            self._forgot_at = time.monotonic()
            self._workers.forget_dead()
        return True

    def _sweep_all(self) -> list[list[Any]]:
        try:
            return self._sweep_once()
        except NoScriptError:
            self._journal.scripts.load()
            return guarded(self._sweep_once)
        except REDIS_ERRORS as error:
            raise translate(error) from error

    def _sweep_once(self) -> list[list[Any]]:
        journal = self._journal
        pipeline = journal.client.pipeline(transaction=False)
        for partition in range(journal.partitions):
            prefix = keys.prefix(partition)
            journal.scripts.queue(pipeline, "sweep", prefix + "ready", prefix, ROUND_LIMIT)
        return pipeline.execute()

    def _partition(
        self, partition: int, row: list[Any], alive: set[str], delivered: Mapping[str, int]
    ) -> None:
        _now, fired, unclaimed, deadlines, stops, _, holders, _, _ = row
        journal = self._journal
        journal.publish(ready_tasks(fired))
        for run_id in deadlines:
            failure = Failure.of(DeadlineExceededError("the run's deadline has passed"))
            journal.stop_run(run_id, "deadline", failure.to_json())
        for run_id in stops:
            journal.stop_run(run_id, "force", {})
        if time.monotonic() >= self._reclaim_after:
            for worker in set(holders) - alive:
                self._reclaim(partition, worker)
        if unclaimed:
            self._republish(partition, unclaimed, delivered)

    def _care(self, sweeps: Sequence[Sequence[Any]]) -> None:
        """Audit and clear up, the longest due first, while there is time; the rest stays due."""
        until = time.monotonic() + CARE_S
        for due in zip_longest(*(row[8] for row in sweeps)):
            if time.monotonic() > until:
                return
            for run_id in filter(None, due):
                self._journal.clear(run_id, pieces=CLEAR_PIECES)
        for due in zip_longest(*(row[5] for row in sweeps)):
            if time.monotonic() > until:
                return
            for run_id in filter(None, due):
                self.audit(run_id, mend=True)

    def _reclaim(self, partition: int, worker: str) -> None:
        prefix = keys.prefix(partition)
        while True:
            count, ready = self._journal.scripts.run(
                "reclaim", f"{prefix}held:{worker}", prefix, worker
            )
            self._journal.publish(ready_tasks(ready))
            if count:
                logger.warning("worker %s is gone; took back %d tasks", worker, count)
            if count < 200:
                return

    def _republish(
        self, partition: int, unclaimed: Sequence[Sequence[Any]], delivered: Mapping[str, int]
    ) -> None:
        """Publish again what its queue no longer holds.

        A queue delivers in order. So a task is lost if its queue is empty, or has delivered what
        was published later; otherwise its message is still in line and a second one would flood.
        """
        lengths = self._queue_lengths({row[1] for row in unclaimed})
        prefix = keys.prefix(partition)
        args: list[str] = []
        for name, queue, published, _times in unclaimed:
            passed = delivered.get(queue, 0) > int(published) + MARGIN_MS
            is_lost = passed or lengths.get(queue, 0) == 0
            args += [name, "1" if is_lost else ""]
        ready = self._journal.scripts.run("republish", prefix + "ready", prefix, *args)
        if ready:
            logger.info("published %d unclaimed tasks again", len(ready))
        self._journal.publish(ready_tasks(ready))

    def audit(self, run_id: str, *, mend: bool) -> str:
        """Prove that a run can still end, and mend it if not.

        Returns:
            What it waits for: ready, leased, timer or session; over; or abandoned when nothing
            could ever move it (it is then failed, if it may be mended).
        """
        key, prefix = self._journal.place(run_id)
        error = Failure.of(RunError("nothing was left that could have moved this run on"))
        args = (prefix, run_id, "1" if mend else "", json.dumps(error.to_json()))
        verdict, cursor = "more", "0"
        while True:
            answer = self._journal.scripts.run("audit", key, *args, cursor)
            if len(answer) > 1:
                self._journal.publish(ready_tasks(answer[1]))
            if verdict == "more":
                verdict = str(answer[0])
            cursor = str(answer[2]) if len(answer) > 2 else "0"
            # One proof is enough, but everything is mended.
            if cursor == "0" or (verdict != "more" and not mend):
                break
        if verdict == "more":
            answer = self._journal.scripts.run("audit", key, *args, "")
            self._journal.publish(ready_tasks(answer[1]) if len(answer) > 1 else ())
            verdict = str(answer[0])
        if verdict == "abandoned":
            logger.error("run %s was abandoned", run_id)
        return verdict


def _newest(rows: Sequence[Sequence[str]]) -> dict[str, int]:
    """Give the newest delivered publish time of each queue over all partitions."""
    newest: dict[str, int] = {}
    for row in rows:
        for queue, at in zip(row[::2], row[1::2], strict=True):
            newest[queue] = max(newest.get(queue, 0), int(at))
    return newest
