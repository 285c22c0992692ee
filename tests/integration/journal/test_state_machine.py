"""The journal against a model: claims, commits, lost leases, repeats, stops and sessions, mixed."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
import redis
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from littleghost.engine import commands as c
from littleghost.engine.ports import Lease
from littleghost.journal import keys
from littleghost.journal.headers import read_header
from littleghost.journal.memory import Memories
from littleghost.journal.record import Records
from tests.support.checks import check_documented, check_journal, dump
from tests.support.direct import (
    PARTITIONS,
    QUEUE,
    answer,
    batch,
    journal_of,
    keeper_of,
    make_due,
    plan_of,
    record,
    turn,
)
from tests.support.model import Model, ModelRun, ModelTask, holds

pytestmark = pytest.mark.redis

WORKERS = ("a", "b", "c")
picks = st.integers(0, 10_000)


class JournalMachine(RuleBasedStateMachine):
    """Random interleavings; after each step Redis must agree with the model."""

    client: ClassVar[redis.Redis]

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        self.model = Model()
        self.journals = {name: journal_of(self.client, name) for name in WORKERS}
        self.leases: list[tuple[str, Lease]] = []
        self.done: list[tuple[str, Lease, list[Any], bool, Any]] = []
        self.keeper = keeper_of(self.journals["a"])
        for name in WORKERS:
            self.client.zadd(keys.WORKERS, {name: 2**52})

    # Runs begin and are stopped.

    @precondition(lambda self: len(self.model.runs) < 6)
    @rule(session=st.sampled_from([None, None, "s1", "s2"]), deadline=st.booleans())
    def create(self, session: str | None, deadline: bool) -> None:
        # The session decides the partition, as the ids of real runs do.
        run_id = f"{0 if session != 's2' else 1:02d}-run{len(self.model.runs)}"
        journal = self.journals["a"]
        deadline_ms = 3_600_000 if deadline else None
        plan = plan_of(journal, run_id, session=session, deadline_ms=deadline_ms)
        for _ in range(2):
            journal.create(run_id, plan)
        self.model.create(ModelRun(run_id, session))

    @precondition(lambda self: len(self.model.runs) > 1)
    @rule(pick=picks, why=st.sampled_from(["cancel", "deadline", "force", "force"]))
    def stop(self, pick: int, why: str) -> None:
        run = self._run(pick)
        if pick % 3 and why != "force":
            return
        status = self.journals["b"].stop_run(run.id, why, {"code": why})
        if why != "force":
            self.model.stop(run, why)
        elif run.stop and not run.is_over:
            run.finish_stopped()
        assert status == run.status
        self.model.settle()

    # Tasks are claimed, recorded, lost and given back.

    @precondition(lambda self: self.model.runs)
    @rule(pick=picks, worker=st.sampled_from(WORKERS))
    def claim(self, pick: int, worker: str) -> None:
        run, task_id = self._task(pick)
        task = run.tasks.get(task_id)
        lease = self.journals[worker].claim(run.id, task_id, at_ms=1, queue=QUEUE)
        assert (lease is not None) == (task is not None and task.status == "ready")
        if lease is not None and task is not None:
            self._leased(run, task, worker, lease)

    @precondition(lambda self: self.leases)
    @rule(
        pick=picks,
        what=st.sampled_from(["batch", "batch", "again", "next", "finish", "fail"]),
        shape=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 15)),
        in_place=st.booleans(),
    )
    def commit(self, pick: int, what: str, shape: tuple[int, int, int], in_place: bool) -> None:
        worker, lease = self.leases.pop(pick % len(self.leases))
        run = self.model.runs[lease.run_id]
        task = run.tasks.get(lease.task_id)
        is_current = holds(task, worker, lease)
        if lease.kind == "call":
            what = "fail" if what == "fail" else "result"
        plan = self._commands(run, lease, what, shape)
        before = dump(self.client, run.id, PARTITIONS)
        serves = (QUEUE,) if in_place else ()
        said = self.journals[worker].commit(lease, plan, serves=serves)
        if task is None or not is_current:
            assert not said.recorded
            assert dump(self.client, run.id, PARTITIONS) == before, (
                "a stale commit changed something"
            )
            return
        self.done.append((worker, lease, plan, in_place, said))
        ready = self.model.record(run, task, what, shape)
        assert said.recorded == (ready is not None)
        self._in_place(run, ready or [], worker, said.lease, in_place)

    @precondition(lambda self: self.done)
    @rule(pick=picks)
    def commit_again(self, pick: int) -> None:
        """The reply was lost: the same call comes again, from the same process."""
        worker, lease, plan, in_place, first = self.done[pick % len(self.done)]
        before = dump(self.client, lease.run_id, PARTITIONS)
        journal = self.journals[worker]
        kept, journal.memories = journal.memories, Memories()
        again = journal.commit(lease, plan, serves=(QUEUE,) if in_place else ())
        journal.memories = kept
        assert again.recorded == first.recorded
        if again.lease is not None:
            named = (again.lease.task_id, again.lease.attempt)
            assert named == (first.lease.task_id, first.lease.attempt)
        assert dump(self.client, lease.run_id, PARTITIONS) == before

    @precondition(lambda self: self.leases)
    @rule(pick=picks, died=st.booleans())
    def release(self, pick: int, died: bool) -> None:
        worker, lease = self.leases[pick % len(self.leases)]
        run = self.model.runs[lease.run_id]
        task = run.tasks.get(lease.task_id)
        is_current = holds(task, worker, lease)
        given = self.journals["c"].release(
            run.id, lease.task_id, worker, attempt=lease.attempt, lost=died
        )
        assert given == is_current
        if task is not None and is_current:
            run.lose(task, died=died)
            self.model.settle()

    @rule(worker=st.sampled_from(WORKERS))
    def worker_dies(self, worker: str) -> None:
        self.client.zrem(keys.WORKERS, worker)
        self.keeper.round()
        self.client.zadd(keys.WORKERS, {worker: 2**52})
        for run in list(self.model.runs.values()):
            for task in run.leased():
                if task.worker == worker and not run.is_over:
                    run.lose(task, died=True)
        self.model.settle()

    @rule(what=st.sampled_from(["timers", "ready", "live"]))
    def time_passes(self, what: str) -> None:
        make_due(self.journals["a"], what)
        self.keeper.round()
        if what == "timers":
            for run in self.model.runs.values():
                for task in [task for task in run.tasks.values() if task.has_timer]:
                    run.make_ready(task)

    @precondition(lambda self: self.leases)
    @rule(pick=picks)
    def emit(self, pick: int) -> None:
        worker, lease = self.leases[pick % len(self.leases)]
        run = self.model.runs[lease.run_id]
        task = run.tasks.get(lease.task_id)
        is_current = holds(task, worker, lease)
        text = '{"type":"text_delta","p":"0","d":{"text":"x"}}'
        assert self.journals[worker].emit(lease, [text]) == (is_current and not run.stop)

    # What must hold.

    @invariant()
    def redis_agrees_with_the_model(self) -> None:
        check_journal(self.client, PARTITIONS)
        records = Records(self.journals["a"])
        for run in self.model.runs.values():
            facts = records.find(run.id)
            assert facts is not None
            assert facts.status == run.status
            found = {
                name: (task["s"], task.get("a", 0), task.get("l", 0), task.get("w", ""))
                for name, task in facts.tasks.items()
            }
            assert found == {task.id: task.told() for task in run.tasks.values()}
            assert facts.usage.input == run.usage
            verdict = self.keeper.audit(run.id, mend=False)
            assert (verdict == "over") == run.is_over
            assert verdict != "abandoned"
            assert all(count == 1 for count in run.fired.values()), "a join fired twice"

    def teardown(self) -> None:
        """Compare the conversations, which nothing may have doubled or reordered."""
        check_documented(self.client)
        said: dict[str | None, list[str]] = {}
        for run in self.model.runs.values():
            key = run.session or run.id
            said.setdefault(key, [])
            if run.records or not run.waits:
                said[key] += [run.id] if not run.waits and self._began(run) else []
                said[key] += run.records
        for run in self.model.runs.values():
            name = self._list(run)
            stored = [json.loads(row)["content"][0] for row in self.client.lrange(name, 0, -1)]
            assert sorted(stored) == sorted(said[run.session or run.id])

    def _began(self, run: ModelRun) -> bool:
        return self.client.hexists(self._key(run), "base")

    def _list(self, run: ModelRun) -> str:
        key = self._key(run)
        return read_header(key, "0", self.client.hget(f"{key}:p", "p:0"))["m"]

    def _key(self, run: ModelRun) -> str:
        return self.journals["a"].place(run.id)[0]

    def _run(self, pick: int) -> ModelRun:
        return list(self.model.runs.values())[pick % len(self.model.runs)]

    def _task(self, pick: int) -> tuple[ModelRun, str]:
        """Choose a task to claim: mostly one that is ready, else any name of any run."""
        ready = [
            (run, task.id)
            for run in self.model.runs.values()
            for task in run.tasks.values()
            if task.status == "ready"
        ]
        if ready and pick % 8:
            return ready[pick // 8 % len(ready)]
        run = self._run(pick // 8)
        known = [*run.tasks, "0-t0", "0-c0.0", "0-t99"]
        return run, known[pick // 64 % len(known)]

    def _leased(self, run: ModelRun, task: ModelTask, worker: str, lease: Lease) -> None:
        task.status, task.worker, task.attempt = "leased", worker, task.attempt + 1
        run.status = "running" if run.status == "queued" else run.status
        expected = (task.attempt, task.lost, task.failures)
        assert (lease.attempt, lease.lost, lease.failures) == expected
        if lease.kind == "turn":
            # The process sees the whole conversation, whatever it remembered before.
            name = self._list(run)
            assert len(lease.records) == self.client.llen(name)
        self.leases.append((worker, lease))

    def _commands(
        self, run: ModelRun, lease: Lease, what: str, shape: tuple[int, int, int]
    ) -> list[Any]:
        if what == "result":
            stopped = c.Emit("tool_stop", result=lease.task_id)
            return [c.RecordResult(record(f"{run.id} {lease.task_id}")), stopped]
        if what == "fail":
            return [c.Emit("invocation_error"), c.Fail({"code": "x"})]
        if what == "again":
            return [c.Emit("model_retry", live=True), c.TryAgain(60.0, lease.failures + 1)]
        number = int(lease.task_id.partition("t")[2])
        start = answer(f"{run.id} answer {number}", tokens=number + 1)
        start.append(c.Emit("model_stop", record=len(lease.records)))
        if what == "finish":
            return [*start, c.Complete({"message": 0})]
        if what == "next":
            return [*start, c.Start(tasks=[turn(f"0-t{number + 1}")])]
        exclusive = [place for place in range(shape[0]) if shape[2] >> place & 1]
        return [*start, batch(number, shape[0], width=shape[1], exclusive=exclusive)]

    def _in_place(
        self,
        run: ModelRun,
        ready: list[ModelTask],
        worker: str,
        lease: Lease | None,
        allowed: bool,
    ) -> None:
        assert (lease is not None) == (allowed and len(ready) == 1), (ready, lease)
        if lease is not None:
            assert lease.task_id == ready[0].id
            self._leased(run, ready[0], worker, lease)


@pytest.mark.timeout(300)
def test_the_journal_does_what_the_model_does(client: redis.Redis) -> None:
    JournalMachine.client = client
    machine = JournalMachine.TestCase
    machine.settings = settings(max_examples=80, stateful_step_count=50, phases=(Phase.generate,))
    machine().runTest()
