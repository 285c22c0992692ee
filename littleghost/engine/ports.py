"""What the engine needs from outside: a journal, a publisher, models and assemblies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from littleghost.engine.commands import Command, Emit, TaskKind
from littleghost.engine.recorded import Recorded, recorded_of
from littleghost.invocation import Invocation
from littleghost.limits import Limits
from littleghost.providers.base import CallControl, Provider, ToolSpec
from littleghost.toolset import Toolset


@dataclass(frozen=True, slots=True)
class ReadyTask:
    """A task that any worker may take now; what a broker message says.

    Attributes:
        at_ms: When it was published, in the journal's milliseconds.
    """

    kind: TaskKind
    queue: str
    run_id: str
    task_id: str
    at_ms: int


@dataclass(slots=True)
class RunMemory:
    """What one process remembers of a run between its tasks, so that it is not read again.

    Attributes:
        created: The run's creation time; tells two runs with one id apart.
        invocation: The invocation's JSON form.
        lists: By participant, its list as far as this process knows it.
        use_ids: By participant, the tool call ids its list holds.
        indexes: By composite, what its list says.
        size_bytes: About how much this takes.
    """

    created: str
    invocation: Mapping[str, Any]
    lists: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    size_bytes: int = 0
    parsed: Invocation | None = None
    use_ids: dict[str, UseIds] = field(default_factory=dict[str, "UseIds"])
    indexes: dict[str, Recorded] = field(default_factory=dict[str, "Recorded"])


@dataclass(slots=True)
class UseIds:
    """The tool call ids in the first `seen` records of a list."""

    seen: int = 0
    ids: set[str] = field(default_factory=set[str])


@dataclass(slots=True, kw_only=True)
class Lease:
    """The right to work on one task, with what the task needs.

    Attributes:
        attempt: The fencing token: every write for the task names it.
        lost: How often a worker died with the task.
        failures: How often the task failed and was tried again.
        left_s: Seconds to the run's deadline, or None.
        working: Working state by key, JSON text each.
        now_ms: The journal's time when the task was leased.
        awaited: What the participant that the task waited for left, `{r: result}` or `{x: error}`.
        answer: What a person said about the task: `{verdict: approved|rejected|expired, …}`.
        header: The participant's header: who it is, under whom, and what it may see.
        base: How many records of the participant's list are older than the run.
        origin: The run that first decided on the task, when another one goes on from it.
    """

    run_id: str
    task_id: str
    kind: TaskKind
    participant: str
    queue: str
    attempt: int
    lost: int
    failures: int
    idempotent: bool
    payload: Mapping[str, Any]
    assembly: str
    root_assembly: str
    participant_kind: str
    state: Mapping[str, Any]
    memory: RunMemory
    left_s: float | None
    working: Mapping[str, str]
    fingerprint: str
    lane: str
    base: int
    now_ms: int
    header: Mapping[str, Any]
    awaited: Mapping[str, Any] | None
    origin: str = ""
    answer: Mapping[str, Any] | None = None

    @property
    def records(self) -> list[Any]:
        """The participant's list: messages of an agent, results of a composite's children."""
        return self.memory.lists.setdefault(self.participant, [])

    @property
    def recorded(self) -> Recorded:
        """A composite's list, by operation and by child."""
        return recorded_of(self.memory.indexes, self.participant, self.records)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit led to.

    Attributes:
        recorded: False when the attempt was stale or the run is being stopped.
        lease: The next task, when this worker may run on in place.
        has_mail: Whether nothing was recorded because a message for the agent has come.
    """

    recorded: bool
    lease: Lease | None = None
    has_mail: bool = False


class Journal(Protocol):
    """The run's record, as the engine sees it."""

    def claim(self, run_id: str, task_id: str, *, at_ms: int | None, queue: str) -> Lease | None:
        """Take a task, or None when it is gone, held or not ready."""
        ...

    def commit(
        self, lease: Lease, commands: Sequence[Command], *, serves: Iterable[str] = ()
    ) -> Committed:
        """Record a task's outcome once, and publish what became ready."""
        ...

    def give_back(self, lease: Lease) -> None:
        """Return a task undone, so that another worker takes it at once."""
        ...

    def stop_run(self, run_id: str, why: str, error: Mapping[str, Any]) -> str:
        """Stop a run: why is cancel or deadline. Gives its status."""
        ...

    def publish_again(self, run_id: str, task_id: str) -> None:
        """Send the message of a ready task once more."""
        ...

    def emit(self, lease: Lease, events: Sequence[str]) -> bool:
        """Append live events; False when the attempt is no longer current."""
        ...

    def definitions(self, run_id: str, names: Sequence[str]) -> Mapping[str, str]:
        """Read definitions that a run keeps, by the names of their assemblies."""
        ...


class RunningAssembly(Protocol):
    """An assembly as one task works with it."""

    limits: Limits


class RunningAgent(RunningAssembly, Protocol):
    """An agent as one turn or one tool call works with it."""

    def prompt_text(self) -> str:
        """Give the system prompt; blank means that there is none."""
        ...

    def model_selection(self) -> str | Mapping[str, Any] | None:
        """Give the model this run uses; None is the default."""
        ...

    def toolset(self) -> Toolset:
        """Give the tools this run may use."""
        ...

    def offered(self, specs: Sequence[ToolSpec], turn: int) -> Sequence[ToolSpec]:
        """Choose the tools that one model request offers."""
        ...


class Assemblies(Protocol):
    """The registered assemblies."""

    def lookup(self, name: str) -> Any:
        """Give a registered class, or raise UnknownAssemblyError."""
        ...

    def learn(self, name: str, read: Callable[[Sequence[str]], Mapping[str, str]]) -> None:
        """Make an assembly known whose definition the run keeps, if it is not known yet."""
        ...


class ResolvedModel(Protocol):
    """A model selection made ready to ask."""

    @property
    def provider(self) -> Provider:
        """Who asks the model."""
        ...

    @property
    def model(self) -> str:
        """The service's own model id."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of every request."""
        ...


class Models(Protocol):
    """The configured model connections."""

    def resolve(self, selection: str | Mapping[str, Any] | None = None) -> ResolvedModel:
        """Find the provider and model of a selection."""
        ...


class LiveWriter(Protocol):
    """Collects one attempt's live events and appends them soon."""

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add an event; adjacent pieces of text become one."""
        ...

    def rest(self) -> list[Emit]:
        """Stop, and give what was not appended yet, for the commit to append."""
        ...


class LiveEvents(Protocol):
    """Makes a writer for an attempt."""

    def open(self, lease: Lease, control: CallControl) -> LiveWriter:
        """Begin; the control is cut when the attempt turns out to be stale."""
        ...


class Running(Protocol):
    """The tasks this process works on, so that they can be told to stop."""

    def enter(self, lease: Lease, control: CallControl) -> None:
        """Make a task known."""
        ...

    def leave(self, lease: Lease) -> None:
        """Forget a task."""
        ...

    def abandon(self, lease: Lease) -> None:
        """Give a task back as soon as the journal can be reached, as one that was lost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """All that a performer works with.

    Attributes:
        serves: The queues whose tasks this process may run on in place.
        queue: Names the queue of a kind of work in a lane.
        in_place_max: How many tasks of a run may be done in a row.
        max_lost: How often a task may lose its worker.
        refuse_changed: Whether a run of another definition fails instead of going on.
        is_draining: Whether this worker is stopping and takes nothing new.
        pause: Waits some seconds.
    """

    journal: Journal
    assemblies: Assemblies
    models: Models
    live: LiveEvents
    running: Running
    serves: frozenset[str]
    queue: Callable[[str, str], str]
    in_place_max: int
    max_lost: int
    refuse_changed: bool
    is_draining: Callable[[], bool]
    pause: Callable[[float], None]
