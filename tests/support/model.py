"""What the journal should do, as plain Python: the other half of the state-machine test."""

from __future__ import annotations

from dataclasses import dataclass, field

from littleghost.engine.ports import Lease

OVER = ("completed", "failed", "partial", "cancelled")


@dataclass
class ModelTask:
    """A task: ready, leased or wait."""

    id: str
    kind: str
    join: str | None = None
    exclusive: bool = False
    status: str = "wait"
    worker: str = ""
    attempt: int = 0
    lost: int = 0
    failures: int = 0
    has_timer: bool = False

    def told(self) -> tuple[str, int, int, str]:
        """Give what the journal should hold of it."""
        worker = self.worker if self.status == "leased" else ""
        return self.status, self.attempt, self.lost, worker


@dataclass
class ModelJoin:
    """Members left, in declared order, and those that wait for a place."""

    order: list[str]
    left: set[str]
    queue: list[str]
    then: str


@dataclass
class ModelRun:
    """One run, and what should be recorded of it."""

    id: str
    session: str | None
    status: str = "queued"
    waits: bool = False
    tasks: dict[str, ModelTask] = field(default_factory=dict)
    joins: dict[str, ModelJoin] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    records: list[str] = field(default_factory=list)
    usage: int = 0
    stop: str = ""
    turn: int = 0
    holder: str | None = None
    exclusives: list[str] = field(default_factory=list)
    fired: dict[str, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    def leased(self) -> list[ModelTask]:
        return [task for task in self.tasks.values() if task.status == "leased"]

    def make_ready(self, task: ModelTask) -> list[ModelTask]:
        """Make a task ready, or let it wait for the exclusive one; give what became ready."""
        task.has_timer = False
        if task.exclusive:
            if self.holder not in (None, task.id):
                task.status = "wait"
                self.exclusives.append(task.id)
                return []
            self.holder = task.id
        task.status = "ready"
        return [task]

    def drop(self, task: ModelTask) -> list[ModelTask]:
        del self.tasks[task.id]
        if task.id != self.holder:
            return []
        self.holder = None
        while self.exclusives:
            following = self.tasks.get(self.exclusives.pop(0))
            if following is not None:
                return self.make_ready(following)
        return []

    def begin_batch(
        self, name: str, tasks: list[ModelTask], width: int, then: ModelTask
    ) -> list[ModelTask]:
        """Start calls and the turn that waits for them."""
        self.tasks[then.id] = then
        join = ModelJoin([task.id for task in tasks], {task.id for task in tasks}, [], then.id)
        self.joins[name] = join
        ready: list[ModelTask] = []
        for number, task in enumerate(tasks):
            self.tasks[task.id] = task
            if number < width:
                ready += self.make_ready(task)
            else:
                join.queue.append(task.id)
        return ready

    def arrive(self, name: str, member: str) -> list[ModelTask]:
        join = self.joins[name]
        join.left.remove(member)
        ready: list[ModelTask] = []
        if join.queue:
            ready += self.make_ready(self.tasks[join.queue.pop(0)])
        if not join.left:
            self._deliver(name)
            self.fired[name] = self.fired.get(name, 0) + 1
            ready += self.make_ready(self.tasks[join.then])
        return ready

    def _deliver(self, name: str) -> None:
        join = self.joins.pop(name)
        self.records += [self.results[member] for member in join.order if member in self.results]

    def finish(self, outcome: str) -> None:
        for name in list(self.joins):
            self._deliver(name)
        self.tasks.clear()
        self.exclusives.clear()
        self.holder = None
        self.status = outcome

    def finish_stopped(self) -> None:
        self.finish("partial" if self.stop == "deadline" else "cancelled")

    def lose(self, task: ModelTask, *, died: bool) -> None:
        """A leased task comes back undone."""
        if self.stop:
            self.drop(task)
            if not self.leased():
                self.finish_stopped()
            return
        task.lost += died
        self.make_ready(task)


def holds(task: ModelTask | None, worker: str, lease: Lease) -> bool:
    """Whether a lease is the current one of a task."""
    return task is not None and (task.status, task.worker, task.attempt) == (
        "leased",
        worker,
        lease.attempt,
    )


class Model:
    """All runs and sessions."""

    def __init__(self) -> None:
        self.runs: dict[str, ModelRun] = {}
        self.sessions: dict[str, list[str]] = {}

    def create(self, run: ModelRun) -> None:
        self.runs[run.id] = run
        run.tasks["0-t0"] = ModelTask("0-t0", "turn")
        if run.session is None:
            self._begin(run)
            return
        line = self.sessions.setdefault(run.session, [])
        line.append(run.id)
        run.waits = len(line) > 1
        if not run.waits:
            self._begin(run)

    def _begin(self, run: ModelRun) -> None:
        run.waits = False
        run.make_ready(run.tasks["0-t0"])

    def settle(self) -> None:
        """Give the sessions of ended runs to the runs that wait for them."""
        for line in self.sessions.values():
            line[1:] = [run_id for run_id in line[1:] if not self.runs[run_id].is_over]
            while line and self.runs[line[0]].is_over:
                line.pop(0)
                if line:
                    self._begin(self.runs[line[0]])

    def stop(self, run: ModelRun, why: str) -> None:
        if run.is_over or run.stop:
            return
        run.stop, run.status = why, "stopping"
        run.tasks = {task.id: task for task in run.leased()}
        if not run.tasks:
            run.finish_stopped()

    def record(
        self, run: ModelRun, task: ModelTask, what: str, shape: tuple[int, int, int]
    ) -> list[ModelTask] | None:
        """Apply a commit; give what became ready, None when the run was stopped."""
        number = int(task.id.partition("t")[2] or 0) if task.kind == "turn" else 0
        adds = what in ("batch", "next", "finish")
        run.usage += number + 1 if adds else 0
        if what == "result":
            run.results[task.id] = f"{run.id} {task.id}"
        if run.stop:
            run.drop(task)
            if not run.leased():
                run.finish_stopped()
                self.settle()
            return None
        if adds:
            run.records.append(f"{run.id} answer {number}")
        if what == "again":
            task.status, task.has_timer, task.failures = "wait", True, task.failures + 1
            return []
        ready = run.drop(task)
        following = ModelTask(f"0-t{number + 1}", "turn")
        if what == "batch":
            calls = [
                ModelTask(f"0-c{number}.{n}", "call", f"0-b{number}", bool(shape[2] >> n & 1))
                for n in range(shape[0])
            ]
            ready += run.begin_batch(f"0-b{number}", calls, shape[1], following)
        elif what == "next":
            run.tasks[following.id] = following
            ready += run.make_ready(following)
        if task.join and task.join in run.joins:
            ready += run.arrive(task.join, task.id)
        if what in ("finish", "fail"):
            run.finish("completed" if what == "finish" else "failed")
            self.settle()
            return []
        return ready
