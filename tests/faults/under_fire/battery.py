"""Fires at a fleet: faults in an order that a seed says, each noted, each over after a while."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import psutil

from littleghost import wiring
from littleghost.cli.proof import prove_runs
from littleghost.errors import LittleGhostError
from littleghost.journal import keys
from littleghost.settings import Settings
from tests.faults.fleet import WorkerProcess
from tests.faults.proxy import MODES
from tests.faults.under_fire.mischief import QUEUES
from tests.faults.under_fire.storm import WEATHERS

if TYPE_CHECKING:
    from tests.faults.under_fire.field import Field

BETWEEN_S = (0.2, 1.0)
PROVE_EVERY_S = 2.0


class Battery:
    """Fires until it is told to cease.

    Attributes:
        fired: How many faults of each kind.
        log: Every fault, with seconds since the start.
        slowest: Seconds from the loss of a worker until nothing was held in its name, the longest.
    """

    def __init__(self, field: Field, kinds: Sequence[str], seed: int) -> None:
        self._field = field
        self._kinds = list(kinds)
        self._chance = random.Random(f"{seed}-battery")
        self._began = time.monotonic()
        self._later: list[tuple[float, str, Callable[[], object]]] = []
        self._lost: dict[str, float] = {}
        self._order: list[str] = []
        self._proved = 0.0
        self.fired: Counter[str] = Counter()
        self.log: list[str] = []
        self.slowest = 0.0
        self.recoveries = 0

    def fire_for(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Fire for some time, or until the load is over."""
        until = time.monotonic() + seconds
        next_at = time.monotonic()
        while time.monotonic() < until and not is_over():
            self.tick()
            if time.monotonic() >= next_at:
                self._fire()
                next_at = time.monotonic() + self._chance.uniform(*BETWEEN_S)
            time.sleep(0.05)

    def cease(self) -> None:
        """Let everything that was begun come to its end, and have a whole fleet again."""
        while self._later:
            self.tick()
            time.sleep(0.05)
        self._field.revive()

    def tick(self) -> None:
        """Do what is due, and look at what was lost."""
        now = time.monotonic()
        due = [item for item in self._later if item[0] <= now]
        self._later = [item for item in self._later if item[0] > now]
        for _, what, act in due:
            self._note(f"end of {what}")
            act()
        try:
            for worker_id, since in list(self._lost.items()):
                if not self._field.watch.records.held(worker_id):
                    self.slowest = max(self.slowest, now - since)
                    self._note(f"{worker_id} holds nothing, after {now - since:.1f} s")
                    self.recoveries += 1
                    del self._lost[worker_id]
            if now - self._proved > PROVE_EVERY_S:
                self._proved = now
                failed = [item for item in prove_runs(self._field.watch) if item.status == "fail"]
                assert not failed, failed
        except LittleGhostError:
            return

    def _note(self, text: str) -> None:
        self.log.append(f"{time.monotonic() - self._began:6.2f} {text}")

    def _fire(self) -> None:
        self._field.revive()
        if not self._order:
            self._order = self._chance.sample(self._kinds, len(self._kinds))
        kind = self._order.pop()
        told = getattr(self, f"_{kind}")()
        if told is not None:
            self.fired[kind] += 1
            self._note(f"{kind} {told}")

    def _after(self, seconds: float, what: str, act: Callable[[], object]) -> None:
        self._later.append((time.monotonic() + seconds, what, act))

    def _is_busy_with(self, what: str) -> bool:
        return any(item[1].startswith(what) for item in self._later)

    # Workers.

    def _victim(self, kind: str = "") -> WorkerProcess | None:
        """Choose a worker that serves; one that is just starting holds nothing."""
        ready = [
            worker
            for worker in self._field.places
            if worker.is_alive and worker.is_ready and kind in ("", worker.kind)
            if worker not in self._field.frozen
        ]
        return self._chance.choice(ready) if ready else None

    def _mourn(self, worker: WorkerProcess) -> None:
        """Note that a worker is gone, to see when its tasks are taken back."""
        try:
            for facts in self._field.watch.workers.list():
                if facts.pid == worker.pid:
                    self._lost[facts.id] = time.monotonic()
                    self._note(f"{facts.id} is lost")
        except LittleGhostError:
            return

    def _kill(self) -> str | None:
        victim = self._victim()
        if victim is None:
            return None
        self._mourn(victim)
        victim.kill_group()
        self._field.replace(victim)
        return f"{victim.kind} {victim.pid}"

    def _kill_main(self) -> str | None:
        victim = self._victim("tools")
        if victim is None:
            return None
        self._mourn(victim)
        victim.kill()
        self._field.replace(victim)
        return f"{victim.pid}"

    def _term(self) -> str | None:
        victim = self._victim()
        if victim is None:
            return None
        victim.send(signal.SIGTERM)
        self._field.replace(victim)
        return f"{victim.kind} {victim.pid}"

    def _freeze(self) -> str | None:
        victim = self._victim()
        if victim is None or self._field.frozen:
            return None
        self._mourn(victim)
        self._field.freeze(victim)
        seconds = self._field.settings.lease_s + self._chance.uniform(0.5, 2.5)
        self._after(seconds, f"freeze {victim.pid}", lambda: self._field.thaw(victim))
        return f"{victim.kind} {victim.pid} for {seconds:.1f} s"

    def _child(self) -> str | None:
        victim = self._victim("tools")
        children = psutil.Process(victim.pid).children() if victim else []
        if not children:
            return None
        child = self._chance.choice(children)
        try:
            child.kill()
        except psutil.NoSuchProcess:
            return None
        return f"{child.pid} of {victim and victim.pid}"

    # The keeper.

    def _lead(self) -> str | None:
        """Take the lead away, so that another keeper works beside one in the middle of a round."""
        try:
            return str(self._field.watch.client.getdel(keys.KEEPER))
        except Exception:
            return None

    def _usurp(self) -> str:
        """Be a second keeper, which believes it leads, for a while."""
        self._field.usurp(self._chance.uniform(0.5, 2.0))
        return "the lead"

    def _midsweep(self) -> str | None:
        flag = self._field.fleet.directory / "die-mid-sweep"
        if flag.exists():
            return None
        flag.touch()
        return "the leader dies between two partitions"

    # Redis and the broker.

    def _redis(self) -> str | None:
        if self._is_busy_with("redis"):
            return None
        self._field.fleet.redis.kill()
        seconds = self._chance.uniform(0.1, 3.0)
        self._after(seconds, "redis", self._field.fleet.redis.start)
        return f"down for {seconds:.1f} s"

    def _flush(self) -> str | None:
        """Lose every message of every queue."""
        broker = self._field.rabbit
        try:
            if broker is not None:
                return f"{sum(broker.purge(queue) for queue in QUEUES)} messages"
            client = self._field.fleet.redis.client()
            lost = sum(client.llen(queue) for queue in QUEUES)
            client.delete(*QUEUES)
            return f"{lost} messages"
        except Exception:
            return None

    def _rabbit(self) -> str | None:
        broker = self._field.rabbit
        if broker is None or self.fired["rabbit"] > self._elapsed() / 40:
            return None
        broker.kill()
        broker.start()
        return "restarted"

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _proxy(self) -> str | None:
        proxy = self._field.proxy
        if proxy is None or self._is_busy_with("proxy"):
            return None
        mode = self._chance.choice(MODES)
        # At times longer than a client waits for its answer.
        longest = 8.0 if mode == "stall" else 2.5
        seconds = self._chance.uniform(0.1, longest)
        proxy.set(mode)
        self._after(seconds, f"proxy {mode}", lambda: proxy.set("pass"))
        return f"{mode} for {seconds:.1f} s"

    def _storm(self) -> str | None:
        server = self._field.storm
        if server is None or self._is_busy_with("storm"):
            return None
        weather = self._chance.choice(WEATHERS)
        seconds = self._chance.uniform(0.5, 3.0)
        server.weather = weather

        def calm() -> None:
            server.weather = "fair"

        self._after(seconds, f"storm {weather}", calm)
        return f"{weather} for {seconds:.1f} s"


def usurp(settings: Settings, seconds: float) -> int:
    """Do the rounds of a keeper that always believes it leads; gives how many it did."""
    work = wiring.Runtime(settings, wiring.models())
    work.become_worker(f"usurper-{os.getpid()}", ())
    until, rounds = time.monotonic() + seconds, 0
    try:
        while time.monotonic() < until:
            try:
                guarded_delete(work)
                rounds += work.keeper.round()
            except LittleGhostError:
                time.sleep(0.1)
    finally:
        work.close()
    return rounds


def guarded_delete(work: wiring.Runtime) -> None:
    """Take the lead away from whoever has it."""
    from littleghost.journal.scripts import guarded

    guarded(lambda: work.client.delete(keys.KEEPER))
