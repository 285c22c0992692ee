"""How a participant begins: who it is, under whom, and what it may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from littleghost.engine.commands import Emit, ParticipantSpec, Start, TaskKind, TaskSpec
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.view import CONTEXT_STATE
from littleghost.errors import AssemblyLimitError
from littleghost.json_values import dumps
from littleghost.messages import Message

MAX_DEPTH = 16
ROOT = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What an assembly needs to begin as a participant of a run.

    Attributes:
        id: The participant's id: "0" for the root; a child's begins with its parent's and a dot.
        queue: Names the queue of a kind of work, in the run's lane.
        join: The join that waits for the participant.
        gate: The join whose width says when it may start.
        delay_s: Seconds until it may start.
        messages: What its list begins with; the root's comes with the run.
        context: The context its code sees; None is the invocation's.
        settings: Model settings on top of the invocation's.
        step: How a result tells of it.
        path: The composites around it, outermost first.
        grants: What its composite lets it do beyond its own declaration.
        final: Whether its answer would be the run's.
    """

    id: str
    queue: Callable[[str], str]
    parent: str | None = None
    join: str | None = None
    gate: str | None = None
    delay_s: float = 0.0
    messages: Sequence[Message] = ()
    context: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None
    step: Mapping[str, Any] | None = None
    path: tuple[Mapping[str, Any], ...] = field(default=())
    grants: Mapping[str, Any] | None = None
    final: bool = False

    def participant(
        self, *, assembly: str, kind: str, label: str, state: Mapping[str, Any]
    ) -> ParticipantSpec:
        """Make the participant's record."""
        return ParticipantSpec(
            id=self.id,
            assembly=assembly,
            kind=kind,
            label=label,
            state=state,
            parent=self.parent,
            join=self.join,
            records=tuple(dumps(message.to_json()) for message in self.messages),
            working={
                CONTEXT_STATE + key: dumps(value) for key, value in (self.context or {}).items()
            },
            context=self.context,
            settings=self.settings,
            step=self.step,
            path=self.path,
            grants=self.grants,
            final=self.final,
        )

    def task(self, task_id: str, kind: TaskKind, queue: str) -> TaskSpec:
        """Make the participant's first task."""
        return TaskSpec(
            id=task_id,
            kind=kind,
            participant=self.id,
            queue=queue,
            gate=self.gate,
            delay_s=self.delay_s,
        )


def advance_id(participant: str) -> str:
    """Name a coordinator's advance task; it has one, which is woken again and again."""
    return f"{participant}-a"


def open_child(
    lease: Lease, env: Collaborators, assembly: Any, number: int, **values: Any
) -> tuple[str, list[Emit], Start]:
    """Begin an assembly as a child of the participant that decides.

    Args:
        assembly: The registered class.
        number: Tells the participant's children apart.
        **values: Fields of the opening: `messages`, `context`, `join` and so on.

    Returns:
        The child's id, the event that tells of it, and what is to be started.

    Raises:
        AssemblyLimitError: Participants would be nested too deeply.
    """
    child = f"{lease.participant}.{number}"
    if len(values.get("path", ())) > MAX_DEPTH:
        raise AssemblyLimitError(
            f"participant {lease.participant!r} is {MAX_DEPTH} levels deep already; nest less"
        )
    opening = Opening(
        id=child,
        queue=lambda kind: env.queue(kind, lease.lane),
        parent=lease.participant,
        **values,
    )
    participants, tasks = assembly.begin(opening)
    events = [
        Emit("invocation_start", participant=child, record=len(opening.messages) - 1)
        for participant in participants
        if participant.kind == "agent"
    ]
    kept = _not_kept(lease, env, assembly)
    return child, events, Start(participants=participants, tasks=tasks, definitions=kept)


def _not_kept(lease: Lease, env: Collaborators, assembly: Any) -> dict[str, str]:
    """Give the definitions that a child is made of and the run's start did not know of."""
    needed = assembly.definitions()
    if not needed:
        return {}
    known = env.assemblies.lookup(lease.root_assembly).definitions()
    return {name: built.text for name, built in needed.items() if name not in known}
