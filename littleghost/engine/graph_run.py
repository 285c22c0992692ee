"""One decision of a graph: read what its nodes did, choose the ways on, start what is next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from littleghost.engine.commands import (
    Append,
    CancelParticipants,
    Command,
    Complete,
    Emit,
    Fail,
    SetState,
    SetText,
    Wake,
)
from littleghost.engine.decide.agent import record_of
from littleghost.engine.decide.graph import Fork, GraphPlan, Route, choose, error_route
from littleghost.engine.decide.graph_paths import Path, Progress
from littleghost.engine.decide.graph_state import text_of
from littleghost.engine.graph_view import GraphView
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.steps import (
    Outcome,
    Told,
    late_commands,
    open_step,
    outcome_of,
)
from littleghost.errors import AssemblyError, AssemblyLimitError
from littleghost.failure import Failure
from littleghost.messages import assistant


class _EndedError(Exception):
    """The graph has failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def decide(lease: Lease, assembly: Any, env: Collaborators) -> list[Command]:
    """Decide what a graph does next."""
    return GraphRun(lease, assembly.plan(), env).commands()


class GraphRun:
    """A graph during one decision; everything it changes is recorded at once or not at all."""

    def __init__(self, lease: Lease, plan: GraphPlan, env: Collaborators) -> None:
        self._lease = lease
        self._plan = plan
        self._env = env
        is_new = not lease.state
        self._now = (
            Progress(main=Path(node=plan.start)) if is_new else Progress.from_json(lease.state)
        )
        self._view = GraphView(lease, plan, self._now)
        self._children = self._view.children
        # What is known to have happened is told in any case; moves only if the graph goes on.
        self._told: list[Command] = []
        self._moves: list[Command] = []
        self._wakes: list[float] = []

    def commands(self) -> list[Command]:
        """Give all that follows from what has happened so far."""
        try:
            outcomes = self._look()
            for path, outcome in outcomes:
                self._move(path, outcome)
            if self._now.fork is not None:
                self._keep_fork()
            elif self._now.main.status == "waiting":
                self._start(self._now.main)
        except (_EndedError, AssemblyError) as error:
            failure = error.failure if isinstance(error, _EndedError) else Failure.of(error)
            return [*self._told, *self._stopped(), Fail(failure.to_json())]
        if self._now.fork is None and self._now.main.status == "ended":
            return [*self._told, *self._moves, *self._finish()]
        wake: list[Command] = [Wake(min(self._wakes))] if self._wakes else []
        return [SetState(self._now.to_json()), *self._told, *self._moves, *wake]

    def _stopped(self) -> list[Command]:
        """Cancel what still runs of a fork, as far as it was recorded to run."""
        before = Progress.from_json(self._lease.state).open_paths() if self._lease.state else []
        running = tuple(
            path.pids[-1]
            for path in before
            if path.status == "running" and path.pids[-1] not in self._children
        )
        return [CancelParticipants(running)] if running else []

    def _look(self) -> list[tuple[Path, Outcome]]:
        """See what became of every running node, and tell of those that ended."""
        seen: list[tuple[Path, Outcome]] = []
        for path in self._now.open_paths():
            if path.status != "running":
                continue
            policy = self._plan.nodes[path.node].policy
            step = {"pids": path.pids, "at": path.at}
            outcome = outcome_of(step, policy, self._children, self._lease.now_ms)
            seen.append((path, outcome))
            if outcome.status == "done":
                self._told.append(self._step(path).stopped(path.pids, self._children))
            elif outcome.failure is not None:
                again = outcome.status == "again"
                self._told.append(
                    self._step(path).failed(path.pids, self._children, outcome.failure, again=again)
                )
            elif outcome.wake_s is not None:
                self._wakes.append(outcome.wake_s)
        self._told += late_commands([outcome for _, outcome in seen])
        return seen

    def _step(self, path: Path) -> Told:
        return Told(
            assembly=self._plan.nodes[path.node].assembly, name=path.node, branch=path.branch
        )

    def _move(self, path: Path, outcome: Outcome) -> None:
        if outcome.status == "done":
            path.results[path.node] = [path.pids[-1], path.step_id]
            self._go_on(path)
        elif outcome.failure is not None and outcome.status == "again":
            delay_s = self._plan.nodes[path.node].policy.retry_delay_s
            self._moves.append(self._step(path).retried(path.pids, outcome.failure, delay_s))
            self._start(path)
        elif outcome.failure is not None:
            self._failed(path, outcome.failure)

    def _go_on(self, path: Path) -> None:
        """Leave a node that ended well."""
        ends = self._plan.finish if path.branch is None else self._end_of(path)
        if path.node == ends:
            path.status = "ended"
            return
        routes = self._plan.routes.get(path.node, ())
        index = choose(path.node, routes, self._view.state(path))
        route = routes[index]
        if route.fork is not None:
            self._open_fork(path, route, index)
            return
        self._tell_transition(path, route.targets[0])
        path.come_to(route.targets[0], ["route", path.node, index, 0], [path.given()])
        self._start(path)

    def _tell_transition(self, path: Path, target: str, **more: Any) -> None:
        data = {**self._own(), "step": path.step, "from": path.node, "to": target, **more}
        if path.branch is not None:
            data["branch_id"] = path.branch
        self._moves.append(Emit("assembly_transition", data))

    def _own(self) -> dict[str, Any]:
        return {
            "assembly_id": self._lease.header["n"],
            "assembly_kind": self._lease.participant_kind,
        }

    def _failed(self, path: Path, failure: Failure) -> None:
        """Leave a node that failed for good: by an error edge, or with the whole graph."""
        routes = self._plan.errors.get(path.node, ())
        index = error_route(path.node, routes, failure)
        if index is None:
            raise _EndedError(failure)
        target = routes[index].target
        if path.branch is None:
            self._tell_transition(path, target, error=True)
        path.results[path.node] = None
        before = {"n": path.node, "s": path.step_id, "x": failure.type}
        kept = replace(failure, traceback="").to_json()
        path.come_to(target, ["error", path.node, index, 0], [before], kept)
        self._start(path)

    # Forks.

    def _open_fork(self, path: Path, route: Route, index: int) -> None:
        self._moves.append(
            Emit(
                "assembly_fork",
                {**self._own(), "from": path.node, "branches": list(route.targets)},
            )
        )
        path.status = "ended"
        self._now.fork = [path.node, index]
        self._now.branches = []
        for place, target in enumerate(route.targets):
            branch = Path(node=target, branch=target)
            branch.come_to(target, ["route", path.node, index, place], [path.given()])
            self._now.branches.append(branch)

    def _fork(self) -> Fork:
        source, index = self._now.fork or ["", 0]
        fork = self._plan.routes[source][index].fork
        assert fork is not None
        return fork

    def _end_of(self, path: Path) -> str:
        place = [branch.branch for branch in self._now.branches].index(path.branch)
        return self._fork().ends[place]

    def _keep_fork(self) -> None:
        """Start the branches that may start, and join when all have ended."""
        fork, now = self._fork(), self._now
        for path in now.branches:
            running = sum(branch.status == "running" for branch in now.branches)
            if path.status == "waiting" and running < fork.width:
                self._start(path)
        statuses = {path.status for path in now.branches}
        if "running" in statuses:
            return
        if statuses != {"ended"}:
            raise self._limit()
        self._join(fork)

    def _join(self, fork: Fork) -> None:
        now = self._now
        given = {path.node: path.given() for path in now.branches}
        for path in now.branches:
            now.main.results.update(path.results)
        self._moves.append(
            Emit("assembly_join", {**self._own(), "from": list(fork.order), "to": fork.join})
        )
        source, index = now.fork or ["", 0]
        now.fork, now.branches = None, []
        before = [given[name] for name in fork.order]
        now.main.come_to(fork.join, ["join", source, index, 0], before)
        self._start(now.main)

    def _limit(self) -> AssemblyLimitError:
        return AssemblyLimitError(
            f"the graph ran nodes {self._plan.max_steps} times, which is its max_steps"
        )

    # Starting a node.

    def _start(self, path: Path) -> None:
        """Start a node, or another attempt at it."""
        node, now = self._plan.nodes[path.node], self._now
        if not path.pids:
            if now.step >= self._plan.max_steps:
                if path.branch is None:
                    raise self._limit()
                # What runs beside it comes to its end first.
                path.status = "limited"
                return
            now.step += 1
            path.step = now.step
        try:
            message = self._view.message(path)
        except Exception as error:  # noqa: BLE001 - whatever the application's mapper raises
            self._no_input(path, error)
            return
        delay_s = node.policy.retry_delay_s if path.pids else 0.0
        child, commands = open_step(
            self._lease,
            self._env,
            self._step(path),
            now.number,
            messages=[*(self._view.history if node.history else ()), message],
            context=self._view.passed_context() if node.context else {},
            attempt=len(path.pids) + 1,
            first=path.step_id or None,
            predecessors=[item["s"] for item in path.before if item["s"]],
            settings=self._lease.header.get("set"),
            delay_s=delay_s,
            final=path.node == self._plan.finish,
        )
        now.number += 1
        path.pids.append(child)
        path.at.append(self._lease.now_ms + round(delay_s * 1000))
        path.status = "running"
        self._moves += commands
        if node.policy.timeout_s is not None:
            self._wakes.append(delay_s + node.policy.timeout_s)

    def _no_input(self, path: Path, error: Exception) -> None:
        """Go on without a node's input: a branch may recover as if the node had failed."""
        failure = Failure.of(error)
        routes = self._plan.errors.get(path.node, ())
        if path.branch is not None and error_route(path.node, routes, failure) is not None:
            self._failed(path, failure)
            return
        raise AssemblyError(
            f"the input of node {path.node!r} could not be made: {type(error).__name__}: {error}"
        ) from error

    def _finish(self) -> list[Command]:
        given = self._children[self._now.main.pids[-1]]["r"]
        output: Any = given.get("output")
        message = assistant(text_of(output))
        result = {
            "stop_reason": given.get("stop_reason", "end_turn"),
            "participant": self._lease.participant,
            "message": len(self._lease.records),
            "output": output,
            **({"value": given["value"]} if "value" in given else {}),
        }
        record = record_of(message)
        return [
            Append((record,), (message,)),
            SetText(message.text),
            Complete(result, say=record),
        ]
