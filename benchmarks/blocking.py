"""How long one script blocks Redis in the life of a run with many participants, without workers.

python -m benchmarks.blocking [--count 10000] [--repeat 3]

A run is made by hand: a coordinator starts children in pieces, and then something ends them all.
Each row is the script of a stage that took most CPU of Redis's main thread; of several repeats
the least, as a busy machine only adds to it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable

import redis

from benchmarks.rig import Rig
from littleghost.engine import commands as c
from littleghost.engine.ports import Lease
from littleghost.engine.steps import START_PIECE
from littleghost.journal.keeper import Keeper
from littleghost.journal.store import RedisJournal
from littleghost.journal.workers import Workers

QUEUE = "lg.turns"
Stage = Callable[[], object]


class Flow:
    """A run with one coordinator and many children that have one turn each."""

    def __init__(self, rig: Rig, count: int) -> None:
        self.journal: RedisJournal = rig.runtime.journal
        self.journal.worker_id = "bench"
        self.client: redis.Redis = rig.runtime.client
        self.run_id = "00-bench"
        self.names = tuple(f"0.{number}" for number in range(count))
        self.keeper = Keeper(
            self.journal, Workers(self.client, 3600), lease_s=3600, queue_lengths=dict.fromkeys
        )

    def create(self) -> None:
        """Create the run with its coordinator."""
        plan = self.journal.plan_create()
        plan.fields.update(h=0, nonce="n", c=[])
        plan.fields["i"] = [plan.payload(json.dumps({"role": "user", "content": []}))]
        plan.fields["f"] = [[name, plan.payload("{}")] for name in ("asm", "inv", "fp", "ln")]
        root = c.ParticipantSpec(id="0", assembly="m:W", kind="workflow", label="w", state={})
        advance = c.TaskSpec(id="0-a", kind="advance", participant="0", queue=QUEUE)
        plan.start([root], [advance], [])
        self.journal.create(self.run_id, plan)

    def take(self, task: str) -> Lease:
        """Claim a task."""
        lease = self.journal.claim(self.run_id, task)
        assert lease is not None, task
        return lease

    def open(self, *, fail_fast: bool = False) -> None:
        """Start all children, piece by piece, as a workflow does."""
        count = len(self.names)
        for first in range(0, count, START_PIECE):
            piece = self.names[first : first + START_PIECE]
            join = c.Join(
                id="0-j0", participant="0", members=self.names, width=count, then="0-a",
                at_once=True, begun=first, starting=len(piece), fail_fast=fail_fast,
            )  # fmt: skip
            record = json.dumps({"role": "user", "content": [{"type": "text", "text": "x" * 200}]})
            specs = [
                c.ParticipantSpec(
                    id=name, assembly="m:A", kind="agent", label="a", state={"turn": 0},
                    parent="0", join="0-j0", records=(record,),
                    step={"name": "a", "id": name, "attempt": 1, "predecessors": [],
                          "branch": None},
                )
                for name in piece
            ]  # fmt: skip
            tasks = [
                c.TaskSpec(id=f"{n}-t0", kind="turn", participant=n, queue=QUEUE, gate="0-j0")
                for n in piece
            ]
            events = [c.Emit("assembly_step_start", {"step_id": name}) for name in piece]
            self.journal.commit(
                self.take("0-a"),
                [*events, c.Start(participants=specs, tasks=tasks, joins=[join]), c.Wake(0)],
            )

    def keep(self) -> None:
        """Let the keeper do what is left."""
        while self.client.exists("lg:{00}:clearing"):
            self.keeper.round()

    def audit(self) -> None:
        """Prove that the run can still end."""
        assert self.keeper.audit(self.run_id, mend=True) == "ready"

    def cancel(self) -> None:
        """Cancel the run."""
        assert self.journal.stop_run(self.run_id, "cancel", {}) == "cancelled"

    def fail(self) -> None:
        """Let the coordinator fail with everything open."""
        self.journal.commit(self.take("0-a"), [c.Fail({"code": "x"})])

    def complete(self) -> None:
        """Let the coordinator end well with everything open."""
        self.journal.commit(self.take("0-a"), [c.Complete({"participant": "0", "message": 0})])

    def lose(self) -> None:
        """Let one child fail of a join that fails at once, and the coordinator stop the others."""
        name = next(n for n in self.names if self.client.zscore("lg:{00}:ready", self._ref(n)))
        self.journal.commit(self.take(f"{name}-t0"), [c.Fail({"code": "x"})])
        others = tuple(n for n in self.names if n != name)
        self.journal.commit(self.take("0-a"), [c.CancelParticipants(others), c.Wake(0)])

    def _ref(self, name: str) -> str:
        return f"{self.run_id}|{name}-t0"


class Scripts:
    """Measures what each script takes of Redis's CPU (main thread); others add nothing to that."""

    def __init__(self, journal: RedisJournal) -> None:
        self._client = journal.client
        self._plain = journal.scripts.run
        self.longest: tuple[float, str] = (0.0, "-")
        journal.scripts.run = self._run  # type: ignore[method-assign]

    def _run(self, name: str, key: str, *args: str | bytes | int | float) -> list[object]:
        before = self._cpu_ms()
        answer = self._plain(name, key, *args)
        self.longest = max(self.longest, (self._cpu_ms() - before, name))
        return answer

    def _cpu_ms(self) -> float:
        told = self._client.info("cpu")
        return 1000 * (told["used_cpu_user_main_thread"] + told["used_cpu_sys_main_thread"])


def measure(rig: Rig, count: int, end: str) -> Iterable[tuple[str, float, float]]:
    """Take a run through its life; gives stage, longest script in ms, and wall seconds."""
    rig.clear()
    flow = Flow(rig, count)
    flow.create()
    scripts = Scripts(flow.journal)
    stages: list[tuple[str, Stage]] = [
        ("start in pieces", lambda: flow.open(fail_fast=end == "lose")),
        ("audit", flow.audit),
        (f"end: {end}", getattr(flow, end)),
        (f"clear up after {end}", flow.keep),
    ]
    for name, stage in stages:
        scripts.longest = (0.0, "-")
        begin = time.monotonic()
        stage()
        yield f"{name} ({scripts.longest[1]})", scripts.longest[0], time.monotonic() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    rig = Rig()
    plain = rig.runtime.journal.scripts.run
    found: dict[str, tuple[float, float]] = {}
    try:
        for end in ("cancel", "fail", "complete", "lose"):
            for _ in range(options.repeat):
                rig.runtime.journal.scripts.run = plain  # type: ignore[method-assign]
                for name, ms, wall in measure(rig, options.count, end):
                    found[name] = min(found.get(name, (ms, wall)), (ms, wall))
    finally:
        rig.stop()
    print(f"{options.count} participants; CPU of the longest script in ms, wall s of the stage")
    for name, (ms, wall) in found.items():
        print(f"{name:36}{ms:8.1f}{wall:8.2f}")


if __name__ == "__main__":
    main()
