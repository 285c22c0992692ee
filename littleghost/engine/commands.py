"""The vocabulary in which a decision says what happens next.

The journal knows how to commit these commands in one step and nothing about agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from littleghost.usage import Usage

TaskKind: TypeAlias = Literal["turn", "call", "advance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """A Celery task to be: one turn, one call or one advance.

    Attributes:
        id: Unique in the run and the same whenever the same decision is made again.
        queue: The queue that serves it, lane included.
        payload: What the task needs beyond the participant's record; JSON.
        exclusive: Whether no other exclusive task of the run may be ready beside it.
        idempotent: Whether it may be repeated after its worker died.
        join: The join that waits for it.
        waits: Whether it starts only when a join or a signal makes it ready.
    """

    id: str
    kind: TaskKind
    participant: str
    queue: str
    payload: Mapping[str, Any] | None = None
    exclusive: bool = False
    idempotent: bool = False
    join: str | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantSpec:
    """One activation of an assembly inside a run.

    Attributes:
        id: "0" for the root; a child's id begins with its parent's and a dot.
        assembly: The registered name of the assembly.
        label: The assembly's own id, as events show it.
        kind: agent, workflow, swarm or graph.
        state: The decider's state, JSON.
        join: The join that waits for the participant.
    """

    id: str
    assembly: str
    kind: str
    label: str
    state: Mapping[str, Any]
    parent: str | None = None
    join: str | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """Append records to the participant's list: messages for an agent, results for a composite.

    Attributes:
        records: As the journal keeps them, JSON.
        values: The same as the process works with them.
    """

    records: tuple[str, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SetState:
    """Replace the decider's state."""

    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Start:
    """Start tasks and participants, and the joins that wait for them."""

    tasks: Sequence[TaskSpec] = ()
    participants: Sequence[ParticipantSpec] = ()
    joins: Sequence[Join] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Wait for all members, then make one task ready.

    Attributes:
        members: Ids of tasks or participants, in the order in which results are delivered.
        width: How many of the members that are tasks may be ready at once.
        then: The waiting task that becomes ready.
    """

    id: str
    participant: str
    members: tuple[str, ...]
    width: int
    then: str


@dataclass(frozen=True, slots=True)
class RecordResult:
    """Keep the task's result for the join that waits for it."""

    record: str


@dataclass(frozen=True, slots=True)
class AddUsage:
    """Add tokens to the participant's count."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ChangeState:
    """Apply operations to the participant's working state: `{op, key, value}` each."""

    operations: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class SetText:
    """Remember the newest text the run has said, for its response and for a partial outcome."""

    text: str


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Keep the task and make it ready again after a wait."""

    delay_s: float
    failures: int


@dataclass(frozen=True, slots=True)
class Complete:
    """End the participant with a result; the root's result ends the run."""

    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fail:
    """End the run with an error."""

    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Emit:
    """Add an event to the run's log.

    What an event says at length is in the journal once already; the event names it.

    Attributes:
        record: Index of the record of the participant's list that the event speaks of.
        result: The task whose result the event speaks of.
        live: Whether the event is live text, which need not outlast its turn for long.
    """

    type: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    record: int | None = None
    result: str | None = None
    live: bool = False


Command: TypeAlias = (
    Append
    | SetState
    | Start
    | RecordResult
    | AddUsage
    | ChangeState
    | SetText
    | TryAgain
    | Complete
    | Fail
    | Emit
)
