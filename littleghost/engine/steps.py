"""Steps of a composite: starting an attempt, and reading what became of it.

A step's record is JSON: `{"pids": [participant of each attempt], "at": [start of each, ms]}`. It is
kept in the composite's state or list; the children's own records come through its joins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from littleghost.engine.commands import CancelParticipants, Command, Emit, Join, Start
from littleghost.engine.opening import ROOT, advance_id, open_child
from littleghost.engine.ports import Collaborators, Lease
from littleghost.errors import AssemblyStepTimeoutError
from littleghost.failure import NEVER_RECOVERED, Failure
from littleghost.messages import Message
from littleghost.policy import StepPolicy

Children = Mapping[str, Mapping[str, Any]]
# How many children one commit starts, and how many it tells the end of. A commit blocks Redis: one
# started takes about 30 µs of it, one told of 5 µs; 20 ms are the most that anybody should wait.
START_PIECE, CLOSE_PIECE = 125, 1000


def children_of(lease: Lease) -> Children:
    """Give what the children gave back: `{p, b, e, u: tokens, r: result | x: error}`."""
    return lease.recorded.children


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step so far.

    Attributes:
        status: running; done; failed for good; or again, when another attempt is due.
        result: The child's result, when done.
        failure: Why the last attempt failed, when failed or again.
        wake_s: Seconds until the attempt's time is up, when running with a timeout.
        late: The participant whose time is up, to be cancelled.
    """

    status: Literal["running", "done", "failed", "again"]
    result: Mapping[str, Any] | None = None
    failure: Failure | None = None
    wake_s: float | None = None
    late: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What events say of a step, whichever composite it belongs to.

    Attributes:
        assembly: The participant's class.
        name: The participant's name in the composite.
        step: The number of the step, where the composite counts them.
        branch: The first node of the branch it belongs to.
    """

    assembly: Any
    name: str
    step: int | None = None
    branch: str | None = None

    def started(self, step_id: str) -> Emit:
        """Tell that an attempt is started."""
        return Emit("assembly_step_start", self._data(step_id))

    def stopped(self, pids: Sequence[str], children: Children) -> Emit:
        """Tell that the step ended well."""
        data = {**self._data(pids[0]), "usage": _usage(pids, children)}
        return Emit("assembly_step_stop", data)

    def failed(
        self, pids: Sequence[str], children: Children, failure: Failure, *, again: bool
    ) -> Emit:
        """Tell that the last attempt failed, and whether another one follows."""
        data = {
            **self._try(pids, failure),
            "usage": _usage(pids, children),
            "terminal": not again,
        }
        return Emit("assembly_step_error", data)

    def retried(self, pids: Sequence[str], failure: Failure, delay_s: float) -> Emit:
        """Tell that the failed last attempt is followed by another."""
        return Emit("assembly_step_retry", {**self._try(pids, failure), "delay": delay_s})

    def _try(self, pids: Sequence[str], failure: Failure) -> dict[str, Any]:
        return {
            "step_id": pids[0],
            "participant": self.name,
            "attempt": len(pids),
            "error_type": failure.type,
        }

    def _data(self, step_id: str) -> dict[str, Any]:
        data: dict[str, Any] = {
            "assembly_id": self.assembly.id(),
            "assembly_kind": self.assembly.kind,
            "participant": self.name,
            "step_id": step_id,
        }
        more = {"step": self.step, "branch_id": self.branch}
        return data | {name: value for name, value in more.items() if value is not None}


def _usage(pids: Sequence[str], children: Children) -> Mapping[str, int]:
    """Give the tokens of the last attempt; none are known of one that was cut."""
    return children.get(pids[-1], {}).get("u", {})


def outcome_of(
    step: Mapping[str, Any], policy: StepPolicy, children: Children, now_ms: int
) -> Outcome:
    """Say what became of a step; pure."""
    pids: Sequence[str] = step["pids"]
    record = children.get(pids[-1])
    late: str | None = None
    if record is not None and "r" in record:
        return Outcome("done", result=record["r"])
    if record is not None:
        failure = Failure.from_json(record["x"])
    else:
        if policy.timeout_s is None:
            return Outcome("running")
        left_s = policy.timeout_s - (now_ms - step["at"][-1]) / 1000
        if left_s > 0:
            return Outcome("running", wake_s=left_s)
        late = pids[-1]
        failure = Failure.of(
            AssemblyStepTimeoutError(f"the step did not end within {policy.timeout_s:g} s")
        )
    listed = failure.is_one_of(policy.retry_on) and not failure.is_one_of(NEVER_RECOVERED)
    more = listed and len(pids) <= policy.retries
    return Outcome("again" if more else "failed", failure=failure, late=late)


def open_step(
    lease: Lease,
    env: Collaborators,
    told: Told,
    number: int,
    *,
    messages: Sequence[Message],
    context: Mapping[str, Any],
    attempt: int = 1,
    first: str | None = None,
    predecessors: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    join: str | None = None,
    delay_s: float = 0.0,
    final: bool = False,
) -> tuple[str, list[Command]]:
    """Start one attempt at a step.

    Args:
        told: Who it is.
        number: Tells the participant's children apart; never used twice.
        first: The participant of the first attempt, whose id is the step's.
        predecessors: Ids of the steps before it.
        join: A join of several steps that waits for it; one of its own if None.
        delay_s: Seconds until it may start.
        final: Whether its answer would be the composite's.

    Returns:
        The child's participant id, and the commands that start it and tell of it.
    """
    child = f"{lease.participant}.{number}"
    step_id = first or child
    step = {
        "name": told.name,
        "id": step_id,
        "attempt": attempt,
        "predecessors": list(predecessors),
        "branch": told.branch,
    }
    _, events, start = open_child(
        lease,
        env,
        told.assembly,
        number,
        messages=messages,
        context=context,
        settings=settings,
        join=join or child,
        gate=join,
        delay_s=delay_s,
        step=step,
        final=final and (lease.participant == ROOT or "fin" in lease.header),
        path=(*lease.header.get("path", ()), _place(lease, told, step_id)),
    )
    commands: list[Command] = [told.started(step_id), *events, start]
    if join is None:
        commands.append(Start(joins=[_own_join(lease, child)]))
    return child, commands


def _place(lease: Lease, told: Told, step_id: str) -> dict[str, Any]:
    """Say where a participant stands in the composite, for the source of its events."""
    return {
        "assembly_id": lease.header["n"],
        "assembly_kind": lease.participant_kind,
        "participant": told.name,
        "step_id": step_id,
        "branch_id": told.branch,
    }


def _own_join(lease: Lease, child: str) -> Join:
    return Join(
        id=child,
        participant=lease.participant,
        members=(child,),
        width=1,
        then=advance_id(lease.participant),
    )


def late_commands(outcomes: Sequence[Outcome]) -> list[Command]:
    """Cancel the participants whose time is up."""
    late = tuple(outcome.late for outcome in outcomes if outcome.late is not None)
    return [CancelParticipants(late)] if late else []
