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
        gate: The join whose width says when it may start; its own join unless given.
        delay_s: Seconds until it may start.
        waits: Whether it starts only when a join or a signal makes it ready.
        asks_s: Seconds that a person has to allow it; it starts when one does, or, with the answer
            that nobody did, when they are over. None asks nobody.
        ordered: Whether the tasks of its join go one by one, so that it waits for its turn too.
        once: Whether it is left alone when there is a task of this id.
    """

    id: str
    kind: TaskKind
    participant: str
    queue: str
    payload: Mapping[str, Any] | None = None
    exclusive: bool = False
    idempotent: bool = False
    join: str | None = None
    gate: str | None = None
    delay_s: float = 0.0
    waits: bool = False
    asks_s: float | None = None
    ordered: bool = False
    once: bool = False


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
        records: What its list begins with.
        working: What its working state begins with, JSON text by key.
        context: The context its own code sees; None is the invocation's.
        settings: Model settings on top of the invocation's.
        step: How a result tells of it: `{name, predecessors, branch, attempt, first}`.
        path: The composites around it, outermost first, as events show them.
        grants: What its composite lets it do beyond its own declaration.
        continues: An earlier participant whose list and working state it goes on with.
        kept: Under what the conversation is kept that its list begins with; see `Keep`.
        in_run: Whether the conversations that it knows of are the run's, and not the session's.
        once: Whether it is left alone when there is a participant of this id.
        final: Whether its answer would be the run's.
    """

    id: str
    assembly: str
    kind: str
    label: str
    state: Mapping[str, Any]
    parent: str | None = None
    join: str | None = None
    records: tuple[str, ...] = ()
    working: Mapping[str, str] = field(default_factory=dict[str, str])
    context: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None
    step: Mapping[str, Any] | None = None
    path: tuple[Mapping[str, Any], ...] = ()
    grants: Mapping[str, Any] | None = None
    continues: str | None = None
    kept: str | None = None
    in_run: bool = False
    once: bool = False
    final: bool = False


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
    """Start tasks and participants, and the joins that wait for them.

    Attributes:
        definitions: Definitions of built assemblies that the run must keep as well, by name.
    """

    tasks: Sequence[TaskSpec] = ()
    participants: Sequence[ParticipantSpec] = ()
    joins: Sequence[Join] = ()
    definitions: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Wait for all members, then make one task ready.

    Attributes:
        members: Ids of tasks or participants, in the order in which results are delivered.
        width: How many of the members that are tasks may be ready at once.
        then: The waiting task that becomes ready.
        fail_fast: Whether a member that failed is enough to go on.
        keeps: Whether results stay with their members instead of going to the participant's list.
        begun: How many members were started before, when they are started piece by piece; the join
            exists since the first piece, and keeps to its width.
        at_once: Whether the members are participants whose results go to the list as they come, in
            whatever order.
        starting: How many members are started together with this, when it is `at_once`.
    """

    id: str
    participant: str
    members: tuple[str, ...]
    width: int
    then: str
    fail_fast: bool = False
    keeps: bool = False
    begun: int = 0
    at_once: bool = False
    starting: int = 0


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
    """Remember the newest text the run has said, for its response and for a partial outcome.

    Only the root and final participants speak for the run; what others say is not remembered.
    """

    text: str


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Keep the task and make it ready again after a wait."""

    delay_s: float
    failures: int


@dataclass(frozen=True, slots=True)
class Complete:
    """End the participant with a result; the root's result ends the run.

    Attributes:
        result: JSON; its parent's list gets `{p, b, e, r: result}`.
        say: What a composite root's session keeps as the answer, a message as the journal keeps it.
        otherwise: All that is committed instead when a message for the agent has come meanwhile.
            Nothing ends it all the same.
    """

    result: Mapping[str, Any]
    say: str | None = None
    otherwise: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """End the participant with an error; the root's error ends the run.

    The list of a child's parent gets `{p, b, e, x: error}`.

    Attributes:
        untried: Whether the task that fails it was not begun, so that a retry may begin it.
    """

    error: Mapping[str, Any]
    untried: bool = False


@dataclass(frozen=True, slots=True)
class Park:
    """Keep the task, waiting for a participant: it is taken again when that has ended.

    Attributes:
        participant: Whom it waits for; empty when somebody else records its result.
    """

    participant: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """Send a record to another participant, and wake it if it is a coordinator.

    A coordinator finds it in its list; for an agent it is an entry `{id, key, r: message}` of its
    inbox, which a turn takes in.
    """

    participant: str
    record: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Record the result of a call that is parked without a participant, for its batch."""

    task: str
    record: str


@dataclass(frozen=True, slots=True)
class Note:
    """Set a key of another participant's working state, which wakes nobody."""

    participant: str
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep what was said in a subagent's conversation, for later: in the session, else in the run.

    Attributes:
        key: What the conversation is kept under, 32 hexadecimal digits.
        facts: What is known of it; coordinators that begin later find it in their working state
            under `kept/<key>`.
        records: Messages to add to it.
        in_run: Whether it is kept in the run, though that has a session.
    """

    key: str
    facts: Mapping[str, Any]
    records: tuple[str, ...]
    in_run: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget a conversation that was kept; see `Keep`."""

    key: str
    in_run: bool = False


@dataclass(frozen=True, slots=True)
class AwaitSignal:
    """Wake the coordinator when a signal of this name is there, which then stands in its list.

    Attributes:
        timeout_s: Seconds after which it is woken without one; None is never.
    """

    name: str
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """Wake the coordinator after a while, whatever happens before; 0 is at once."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class CancelParticipants:
    """Stop participants and everything below them; nothing of theirs is recorded any more."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """Add an event to the run's log.

    What an event says at length is in the journal once already; the event names it.

    Attributes:
        record: Index of the record of the participant's list that the event speaks of.
        result: The task whose result the event speaks of.
        participant: Whom it is about; whoever decides unless given.
        live: Whether the event is live text, which need not outlast its turn for long.
        doubt: The name of an append that may have added this live event already; it is then not
            added again.
    """

    type: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    record: int | None = None
    result: str | None = None
    participant: str | None = None
    live: bool = False
    doubt: str = ""


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
    | Park
    | Post
    | Answer
    | Note
    | Keep
    | Forget
    | AwaitSignal
    | Wake
    | CancelParticipants
    | Emit
)
