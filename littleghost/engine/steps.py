"""Steps of a composite: starting an attempt, and reading what became of it.

A step's record is JSON: `{"pids": [participant of each attempt], "at": [start of each, ms]}`. It is
kept in the composite's state or list; the children's own records come through its joins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from littleghost.engine.commands import CancelParticipants, Command, Emit, Join, Start
from littleghost.engine.opening import advance_id, open_child
from littleghost.engine.ports import Collaborators, Lease
from littleghost.errors import AssemblyStepTimeoutError
from littleghost.failure import Failure
from littleghost.messages import Message
from littleghost.policy import StepPolicy

Children = Mapping[str, Mapping[str, Any]]
# How many children one commit starts, and how many it tells the end of. A commit blocks Redis: one
# started takes about 30 µs of it, one told of 5 µs; 20 ms are the most that anybody should wait.
START_PIECE, CLOSE_PIECE = 250, 1000


def children_of(lease: Lease) -> Children:
    """Give what the children gave back: `{p, b, e, r: result}` or `{p, b, e, x: error}`."""
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
    more = len(pids) <= policy.retries and failure.is_one_of(policy.retry_on)
    return Outcome("again" if more else "failed", failure=failure, late=late)


def open_step(
    lease: Lease,
    env: Collaborators,
    assembly: Any,
    number: int,
    *,
    name: str,
    messages: Sequence[Message],
    context: Mapping[str, Any],
    attempt: int = 1,
    first: str | None = None,
    predecessors: Sequence[str] = (),
    branch: str | None = None,
    settings: Mapping[str, Any] | None = None,
    join: str | None = None,
    delay_s: float = 0.0,
) -> tuple[str, list[Command]]:
    """Start one attempt at a step.

    Args:
        number: Tells the participant's children apart; never used twice.
        name: The participant's name in the composite.
        first: The participant of the first attempt, whose id is the step's.
        predecessors: Ids of the steps before it.
        branch: The first node of the branch it belongs to.
        join: A join of several steps that waits for it; one of its own if None.
        delay_s: Seconds until it may start.

    Returns:
        The child's participant id, and the commands that start it and tell of it.
    """
    child = f"{lease.participant}.{number}"
    step_id = first or child
    step = {
        "name": name,
        "id": step_id,
        "attempt": attempt,
        "predecessors": list(predecessors),
        "branch": branch,
    }
    _, events, start = open_child(
        lease,
        env,
        assembly,
        number,
        messages=messages,
        context=context,
        settings=settings,
        join=join or child,
        gate=join,
        delay_s=delay_s,
        step=step,
        path=(*lease.header.get("path", ()), _place(lease, name, step_id, branch)),
    )
    commands = [_started(assembly, name, step_id, branch), *events, start]
    if join is None:
        commands.append(Start(joins=[_own_join(lease, child)]))
    return child, commands


def _place(lease: Lease, name: str, step_id: str, branch: str | None) -> dict[str, Any]:
    """Say where a participant stands in the composite, for the source of its events."""
    return {
        "assembly_id": lease.header["n"],
        "assembly_kind": lease.participant_kind,
        "participant": name,
        "step_id": step_id,
        "branch_id": branch,
    }


def _started(assembly: Any, name: str, step_id: str, branch: str | None) -> Command:
    data: dict[str, Any] = {
        "assembly_id": assembly.id(),
        "assembly_kind": assembly.kind,
        "participant": name,
        "step_id": step_id,
    }
    return Emit("assembly_step_start", data if branch is None else {**data, "branch_id": branch})


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


def failed_event(
    name: str, step_id: str, attempt: int, failure: Failure, *, again: bool
) -> list[Command]:
    """Tell that an attempt failed, and whether another one follows."""
    data = {
        "step_id": step_id,
        "participant": name,
        "attempt": attempt,
        "error_type": failure.type,
        "terminal": not again,
    }
    return [Emit("assembly_step_error", data)]
