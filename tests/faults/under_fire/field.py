"""The field of one fire: servers, workers, the load's callers, and the reckoning at the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from littleghost import wiring
from littleghost.cli.proof import prove_runs
from littleghost.settings import Settings
from tests.faults.fleet import ROOT, Fleet, WorkerProcess, wait_until
from tests.faults.proxy import Proxy
from tests.faults.under_fire.battery import Battery, usurp
from tests.faults.under_fire.errands import KINDS, Caller, Done
from tests.faults.under_fire.mischief import QUEUES, Thieves
from tests.faults.under_fire.storm import StormServer
from tests.faults.under_fire.verdict import Effects, check_run
from tests.integration.rabbit import RabbitServer
from tests.support.checks import check_journal, check_nothing_left

SETTINGS = {
    "imports": "tests.faults.under_fire.app",
    # Kills must not be what ends a run.
    "max_lost": "100000",
    "drain_timeout_s": "1.5",
}
CLOCKS_S = (0, 3600, -3600)
TURNS_SLOTS, TOOLS_SLOTS = 12, 3
# Connections of a worker's process beside those of its slots: heartbeat, keeper, live text,
# control channel, and Celery's own.
BESIDE = 8
# A tool that lingers is left to finish.
LEAVE_S = 30.0


class Field:
    """What one fire is about."""

    def __init__(self, directory: Path, seed: int, *, rabbit: bool, proxy: bool, storm: bool):
        self.seed = seed
        self.chance = random.Random(f"{seed}-field")
        self.fleet = Fleet(directory, appendfsync="always", **SETTINGS)
        environment = self.fleet.environment
        environment["FIRE_WORKER"] = "1"
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(Path(__file__).parent / "clock"), str(ROOT)]
        )
        self.proxy = Proxy(self.fleet.redis.port) if proxy else None
        if self.proxy is not None:
            environment["LITTLEGHOST_REDIS_URL"] = f"redis://127.0.0.1:{self.proxy.port}/0"
        self.storm = StormServer(directory, seed) if storm else None
        if self.storm is not None:
            environment["FIRE_MODEL_URL"] = self.storm.url
        self.rabbit: RabbitServer | None = None
        if rabbit:
            (directory / "rabbit").mkdir()
            self.rabbit = RabbitServer(directory / "rabbit")
            environment["LITTLEGHOST_BROKER_URL"] = self.rabbit.url
        self.settings = Settings.from_environment(environment)
        # Looks at the journal without the proxy.
        self.watch = wiring.Runtime(
            self.settings.with_(redis_url=self.fleet.redis.url), wiring.models()
        )
        self.places: list[WorkerProcess] = []
        self.leaving: list[WorkerProcess] = []
        self.frozen: list[WorkerProcess] = []
        self._usurpers: list[threading.Thread] = []
        self.report: list[str] = []

    # Workers.

    def launch(self, kind: str, slots: int) -> WorkerProcess:
        """Start a worker whose wall clock may be an hour off."""
        clock_s = self.chance.choice(CLOCKS_S)
        self.fleet.environment["FIRE_CLOCK_S"] = str(clock_s)
        worker = self.fleet.launch(kind, slots)
        self.places.append(worker)
        return worker

    def replace(self, worker: WorkerProcess) -> None:
        self.places.remove(worker)
        self.leaving.append(worker)
        self.launch(worker.kind, worker.slots)

    def revive(self) -> None:
        """Replace workers that died."""
        for worker in [one for one in self.places if not one.is_alive]:
            self.replace(worker)

    def freeze(self, worker: WorkerProcess) -> None:
        self.frozen.append(worker)
        os.killpg(worker.pid, signal.SIGSTOP)

    def thaw(self, worker: WorkerProcess) -> None:
        self.frozen.remove(worker)
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGCONT)

    def usurp(self, seconds: float) -> None:
        thread = threading.Thread(target=usurp, args=(self.settings, seconds))
        thread.start()
        self._usurpers.append(thread)

    def open(self) -> None:
        for kind, slots in (("turns", TURNS_SLOTS), ("tools", TOOLS_SLOTS)) * 2:
            self.launch(kind, slots)
        self.fleet.wait_ready(*self.places)

    def close(self) -> None:
        for worker in list(self.frozen):
            self.thaw(worker)
        for thread in self._usurpers:
            thread.join()
        self.watch.close()
        if self.proxy is not None:
            self.proxy.close()
        if self.storm is not None:
            self.storm.close()
        self.fleet.stop()
        if self.rabbit is not None:
            self.rabbit.stop()

    # The reckoning.

    def settle(self) -> None:
        """Wait until the fleet is whole and has nothing left to do."""
        wait_until(self._is_whole, "every worker serves", 90)
        for worker in self.leaving:
            self._gone(worker)
        work, client = self.watch, self.fleet.redis.client()
        wait_until(lambda: not work.records.live(), "no run is left", 60)
        wait_until(lambda: not list(client.scan_iter("lg:*held:*")), "no slot is held", 30)
        # Messages that came late or twice are taken and found to be stale.
        wait_until(lambda: not self.waiting(), "the queues are empty", 60)

    def _is_whole(self) -> bool:
        """Whether every worker serves; one that found no Redis when it began is started again."""
        self.revive()
        return all(worker.is_ready for worker in self.places)

    def _gone(self, worker: WorkerProcess) -> None:
        """Wait until a worker that was told to end has ended, or have it say where it hangs."""
        try:
            worker.process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            size = worker.log.stat().st_size
            worker.send(signal.SIGUSR1)
            wait_until(lambda: worker.log.stat().st_size > size + 1000, "it says where it hangs")
            raise AssertionError(f"does not end: {worker.log.read_text()[size:]}") from None

    def received(self) -> int:
        """How many messages workers took."""
        logs = {worker.log for worker in self.fleet.workers}
        return sum(log.read_text("utf-8", "replace").count("] received") for log in logs)

    def waiting(self) -> int:
        if self.rabbit is not None:
            return sum(self.rabbit.length(queue) for queue in QUEUES)
        client = self.fleet.redis.client()
        return sum(client.llen(queue) for queue in QUEUES)

    def check_left(self) -> None:
        """P11, P5: every index agrees, nothing stays, no connection is left behind."""
        work, client = self.watch, self.fleet.redis.client()
        checks = prove_runs(work)
        assert [check.status for check in checks] == ["ok"], checks
        check_journal(client, work.settings.partitions)
        most = sum(worker.slots + BESIDE for worker in self.places) + 10
        open_now = len(client.client_list())
        assert open_now <= most, f"{open_now} connections: {client.client_list()}"
        for worker in self.places:
            worker.send(signal.SIGTERM)
        for worker in self.places:
            self._gone(worker)
        work.disconnect()
        wiring.runtime().disconnect()
        wait_until(lambda: len(client.client_list()) == 1, "nobody is connected", 10)
        for name in list(client.scan_iter("_kombu.binding*")):
            client.delete(name)
        check_nothing_left(client, work.settings.partitions)


@contextmanager
def field(directory: Path, seed: int, **parts: bool) -> Iterator[Field]:
    """Be the caller of a field; everything ends with the block."""
    before: Any = wiring._current
    made = Field(directory, seed, **parts)
    wiring.configure(made.settings)
    try:
        made.open()
        yield made
    finally:
        wiring.runtime().close()
        wiring._current = before
        made.close()


class Load:
    """Carries out errands, so many at once, until it is told to stop.

    Attributes:
        done: All runs that came to an end.
    """

    def __init__(self, made: Field, seed: int, width: int) -> None:
        self._field, self._seed, self._width = made, seed, width
        self._chance = random.Random(f"{seed}-load")
        self._number = 0
        self._order: list[str] = []
        self.is_closing = False
        self.done: list[Done] = []
        self.kinds: Counter[str] = Counter()
        self.failures: list[str] = []

    def _next(self) -> tuple[str, Caller]:
        if not self._order:
            self._order = self._chance.sample(list(KINDS), len(KINDS))
        kind = self._order.pop()
        self._number += 1
        key = f"{kind}-{self._number}"
        return kind, Caller(key, self._seed, self._field.fleet.directory)

    def run(self) -> None:
        """Keep the errands going; returns when the last one has ended."""
        with ThreadPoolExecutor(self._width) as pool:
            running: set[Future[None]] = set()
            while not self.is_closing or running:
                while not self.is_closing and len(running) < self._width:
                    running.add(pool.submit(self._errand, *self._next()))
                running = wait(running, timeout=0.1, return_when="FIRST_COMPLETED").not_done

    def _errand(self, kind: str, caller: Caller) -> None:
        try:
            KINDS[kind](caller)
        except Exception as error:
            self.failures.append(f"{caller.key}: {type(error).__name__}: {error}")
        self.kinds[kind] += 1
        self.done += caller.done


def check_all(load: Load, effects: Effects) -> Counter[str]:
    """Check every run; all that is wrong is told at once."""
    problems = list(load.failures)
    told: Counter[str] = Counter()
    for done in load.done:
        try:
            told += check_run(done, effects)
        except AssertionError as error:
            problems.append(f"{done.run_id}: {error}")
    try:
        effects.check()
    except AssertionError as error:
        problems.append(str(error))
    assert not problems, "\n".join(problems)
    return told


def burn(made: Field, kinds: list[str], seconds: float, thieves: int, width: int) -> str:
    """Carry out a load under fire, check everything, and give a line of figures."""
    started = time.monotonic()
    load = Load(made, made.seed, width)
    battery = Battery(made, kinds, made.seed)
    broker_url = made.rabbit.url if made.rabbit else made.fleet.redis.url
    gang = Thieves(broker_url, made.seed, thieves)
    caller = threading.Thread(target=load.run)
    caller.start()
    try:
        battery.fire_for(seconds, lambda: bool(load.failures))
        battery.cease()
    finally:
        gang.stop()
        load.is_closing = True
        while caller.is_alive():
            # As a supervisor would: a worker that found no Redis when it began is started again.
            battery.tick()
            made.revive()
            caller.join(0.2)
        made.report = [*battery.log, *load.failures]
    made.settle()
    effects = Effects(made.fleet.effects())
    told = check_all(load, effects)
    made.check_left()
    longest = max(load.done, key=lambda item: item.took_s)
    hits = {name: dict(part.hits) for name, part in (("proxy", made.proxy), ("storm", made.storm))
            if part}  # fmt: skip
    return (
        f"seed {made.seed}: {len(load.done)} runs in {time.monotonic() - started:.0f} s, "
        f"{dict(load.kinds)}; faults {dict(battery.fired)}, messages harmed "
        f"{dict(gang.stolen)}, taken by workers {made.received()}; {hits}; "
        f"slowest recovery {battery.slowest:.1f} s of {battery.recoveries}, longest run "
        f"{longest.took_s:.1f} s ({longest.run_id}); results {dict(told)}, idempotent effects "
        f"again {effects.again}"
    )
