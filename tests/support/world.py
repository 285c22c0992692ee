"""A deterministic world: one thread, no clock. It pops messages and has workers perform them.

Every journal operation, and every place a model or tool says it has come to, is numbered. A fault
is put at a number; the same run then goes through the same numbers up to there.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import redis

from littleghost import wiring
from littleghost.engine.ports import ReadyTask
from littleghost.journal import keys
from littleghost.journal.record import RunRecord
from littleghost.run import Run
from tests.support import cast
from tests.support.fleet import (
    LEASE_S,
    QUEUES,
    KilledError,
    RecordedBroker,
    Worker,
    message_of,
    read_message,
)

MAX_STEPS = 2_000


class Fault(Enum):
    """What goes wrong at an operation."""

    KILL_BEFORE = "killed before it"
    KILL_AFTER = "killed after it"
    DROP = "its messages are lost"
    REPEAT = "its messages come twice"
    RESEND = "its reply is lost and it is sent again"
    FORGET_SCRIPTS = "the server has forgotten the scripts"


class World:
    """Workers, a caller, one Redis, and what is to go wrong."""

    def __init__(
        self, client: redis.Redis, caller: Worker, workers: list[Worker],
        broker: RecordedBroker | None = None,
    ) -> None:  # fmt: skip
        self.client = client
        self.caller = caller
        self.workers = workers
        self.broker = broker
        self.partitions = caller.runtime.settings.partitions
        self.faults: Mapping[int, Fault] = {}
        self.operations: list[str] = []
        self.hooks: dict[str, Callable[[], object]] = {}
        # Asked when no message waits: whether it did something that may move a run.
        self.when_idle: Callable[[], object] | None = None
        self._turn = 0
        self._active: Worker | None = None

    def reset(self, faults: Mapping[int, Fault] | None = None) -> None:
        """Empty everything and begin anew."""
        self.client.flushall()
        cast.EFFECTS.clear()
        cast.FAILURES.clear()
        cast.HOOKS[:] = [self._at]
        if self.broker is not None:
            self.broker.queues.clear()
        self.faults, self.operations, self._turn = dict(faults or {}), [], 0
        self.hooks.clear()
        self.when_idle = None
        for worker in (self.caller, *self.workers):
            worker.rename(worker.name.partition(".")[0])
            worker.reset(self)
        for worker in self.workers:
            worker.register(self.client)
        wiring._current = self.caller.runtime

    # What happens at each operation.

    def operate(self, who: str, name: str, work: Callable[[], Any]) -> Any:
        """Do an operation and whatever goes wrong at it."""
        number = len(self.operations)
        self.operations.append(f"{who} {name}")
        fault = self.faults.get(number)
        if fault is None:
            return work()
        if fault is Fault.KILL_BEFORE:
            self._kill(who)
        if fault is Fault.FORGET_SCRIPTS:
            self.client.script_flush()
        before = self.waiting()
        answer = work()
        if fault is Fault.KILL_AFTER:
            self._kill(who)
        if fault is Fault.RESEND:
            answer = work()
        if fault in (Fault.DROP, Fault.REPEAT):
            self._disturb(before, fault)
        return answer

    def _at(self, place: str) -> object:
        number = len(self.operations)
        self.operations.append(place)
        if self.faults.get(number) in (Fault.KILL_BEFORE, Fault.KILL_AFTER):
            assert self._active is not None
            self._kill(self._active.name)
        hook = self.hooks.get(place)
        return hook() if hook else None

    def _kill(self, who: str) -> None:
        for worker in self.workers:
            if worker.name == who:
                worker.kill(self.client)
        raise KilledError(who)

    def _disturb(self, before: Counter[str], fault: Fault) -> None:
        for queue in QUEUES:
            new = self.waiting()[queue] - before[queue]
            if new <= 0:
                continue
            if self.broker is not None:
                line = self.broker.queues[queue]
                line[-new:] = [] if fault is Fault.DROP else line[-new:] * 2
            elif fault is Fault.DROP:
                self.client.ltrim(queue, new, -1)
            else:
                for text in reversed(self.client.lrange(queue, 0, new - 1)):
                    self.client.lpush(queue, text)

    # Messages.

    def waiting(self) -> Counter[str]:
        """Count the messages in each queue."""
        if self.broker is not None:
            return Counter(self.broker.lengths(QUEUES))
        return Counter({queue: self.client.llen(queue) for queue in QUEUES})

    def pop(self, chooser: random.Random | None = None) -> tuple[str, str, int, str] | None:
        """Take a message: the oldest, or any when a chooser is given."""
        for queue in QUEUES if chooser is None else chooser.sample(QUEUES, len(QUEUES)):
            if self.broker is not None:
                line = self.broker.queues.get(queue, [])
                if line:
                    task = line.pop(0 if chooser is None else chooser.randrange(len(line)))
                    return read_message(message_of(task))
                continue
            length = self.client.llen(queue)
            if length:
                place = -1 if chooser is None else chooser.randrange(length)
                text = self.client.lindex(queue, place)
                self.client.lrem(queue, 1 if place >= 0 else -1, text)
                return read_message(text)
        return None

    def put(self, task: ReadyTask) -> None:
        """Put a message into a queue, as a forger or a broker that repeats would."""
        if self.broker is not None:
            self.broker.queues.setdefault(task.queue, []).append(task)
        else:
            self.client.lpush(task.queue, message_of(task))

    # Work and time.

    def living(self) -> list[Worker]:
        """Give the workers that were not killed; a new one comes when all were."""
        found = [worker for worker in self.workers if worker.is_alive]
        return found or [self.replace(self.workers[0])]

    def replace(self, worker: Worker) -> Worker:
        """Have a new worker take the place of a dead one, under a name of its own."""
        worker.rename(f"{worker.name.partition('.')[0]}.{len(self.operations)}")
        worker.reset(self)
        worker.register(self.client)
        return worker

    def perform(self, message: tuple[str, str, int, str], worker: Worker | None = None) -> int:
        """Have a worker perform a message; gives how many tasks it performed."""
        if worker is None:
            living = self.living()
            worker = living[self._turn % len(living)]
            self._turn += 1
        run_id, task_id, at_ms, queue = message
        before, self._active = self._active, worker
        try:
            return worker.runtime.performer.perform(run_id, task_id, at_ms=at_ms, queue=queue)
        except KilledError:
            return 0
        finally:
            self._active = before

    def keep(self) -> None:
        """Let enough time pass for everything that waits, and have a keeper do its round."""
        self.pass_time("ready", "timers", "live")
        if self._active is not None and self.client.get(keys.KEEPER) == self._active.name:
            # It is busy here, so its lead runs out and another one takes it.
            self.client.delete(keys.KEEPER)
        for worker in [one for one in self.living() if one is not self._active]:
            try:
                if worker.runtime.keeper.round():
                    return
            except KilledError:
                continue

    def pass_time(self, *indexes: str) -> None:
        """Make the entries of some of the keeper's indexes due."""
        for partition in range(self.partitions):
            for index in indexes:
                name = keys.prefix(partition) + index
                for member in self.client.zrange(name, 0, -1):
                    self.client.zadd(name, {member: 1})

    def expire_deadline(self, run_id: str) -> None:
        """Let a run's deadline pass."""
        key, prefix = self.caller.runtime.journal.place(run_id)
        now_s, _ = self.client.time()
        self.client.hset(key, "deadline", now_s * 1000 - 1)
        self.client.zadd(prefix + "deadlines", {run_id: 1})

    def carry(self, *run_ids: str, until: Callable[[], object] | None = None) -> None:
        """Go on until the runs have ended, or a condition holds."""
        idle = 0
        for _ in range(MAX_STEPS):
            if until is not None and until():
                return
            message = self.pop()
            if message is not None:
                idle = 0
                self.perform(message)
                continue
            if self.when_idle is not None and self.when_idle():
                idle = 0
                continue
            if until is None and all(self.record(run_id).is_over for run_id in run_ids):
                return
            idle += 1
            assert idle < 30, self.explain(*run_ids)
            if idle > 6:
                # Nothing else helped: let the grace of stopped runs pass.
                self.pass_time("stops")
            self.keep()
        raise AssertionError(self.explain(*run_ids))

    def record(self, run_id: str) -> RunRecord:
        """Read a run's facts."""
        found = self.caller.runtime.records.find(run_id)
        assert found is not None, f"no run {run_id}"
        return found

    def run(self, run_id: str) -> Run:
        """Give the caller's handle."""
        return Run.get(run_id)

    def explain(self, *run_ids: str) -> str:
        """Say what stands still, and how it came to that."""
        facts = [self.client.hgetall(self.caller.runtime.journal.place(i)[0]) for i in run_ids]
        return f"nothing moves: {facts}\noperations: {list(enumerate(self.operations))}"


def make_world(
    client: redis.Redis, settings: Any, models: Any, *, workers: int = 3, recorded: bool = False
) -> World:
    """Make a world on an empty Redis."""
    settings = settings.with_(lease_s=LEASE_S, heartbeat_s=1.0)
    broker = RecordedBroker() if recorded else None
    made = [Worker(settings, models, f"w{number}", broker) for number in range(workers)]
    caller = Worker(settings, models, "caller", broker)
    return World(client, caller, made, broker)
