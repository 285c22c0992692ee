"""What every assembly can do: be asked, enqueued and watched, in the same three ways.

A class is a definition. It is registered when it is defined, checked when it is first used or when
a worker starts, and nothing about one request ever lives on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar, Literal, Protocol, Self

from littleghost import registry
from littleghost.context import Binding
from littleghost.delegation import assembly_tool
from littleghost.engine.commands import ParticipantSpec, TaskSpec
from littleghost.engine.opening import Opening, advance_id
from littleghost.engine.slot import refuse_blocking
from littleghost.errors import DefinitionError, InvocationError
from littleghost.json_values import check_json_mapping, dumps
from littleghost.limits import Limits
from littleghost.messages import Message
from littleghost.run import AsyncRunStream, Run, RunStream, start_run, start_run_async, start_runs
from littleghost.tool import APPROVAL_TIMEOUT_S, as_attributes

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
Input = str | Message | Mapping[str, Any]


class Buildable(Protocol):
    """What gives an assembly class when it is needed: a builder."""

    def build(self) -> Any:
        """Give the class."""
        ...


class Assembly:
    """Base of everything that can be called like an agent.

    Attributes:
        assembly_id: Its id in events and results; the class name in snake case, without a trailing
            Agent, Workflow, Swarm or Graph, unless set.
        description: What it is for; shown to a model that may delegate to it.
        limits: What one invocation may use up.
    """

    kind: ClassVar[str] = "assembly"
    assembly_id: ClassVar[str] = ""
    description: ClassVar[str] = ""
    limits: ClassVar[Limits] = Limits()
    _abstract: ClassVar[bool] = True

    def __init_subclass__(cls, *, abstract: bool = False, **options: Any) -> None:
        """Register the class.

        Args:
            abstract: The class only serves as a base and cannot be called.
        """
        super().__init_subclass__(**options)
        cls._abstract = abstract
        cls._checked = False
        cls._fingerprint = None
        cls._reachable = None
        cls._definitions = None
        if not abstract:
            registry.register(cls)

    _checked: ClassVar[bool] = False
    _fingerprint: ClassVar[str | None] = None
    _reachable: ClassVar[Sequence[type[Assembly]] | None] = None
    _definitions: ClassVar[Mapping[str, registry.Built] | None] = None

    def __init__(self, binding: Binding | None = None) -> None:
        """Make the instance that one task works with; applications never call this.

        Args:
            binding: The run's collaborators.
        """
        self._binding = binding or Binding()

    @property
    def run(self) -> Any:
        """The run this instance works for, or None."""
        return self._binding.run

    @property
    def invocation(self) -> Any:
        """What the caller asked for, or None."""
        return self._binding.invocation

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        """Make the instance that one task works with."""
        return cls(binding)

    @classmethod
    def id(cls) -> str:
        """Give the assembly's id."""
        return cls.assembly_id or derived_id(cls.__name__)

    @classmethod
    def check(cls) -> None:
        """Check the declaration, once.

        Raises:
            DefinitionError: Something is declared wrongly; the message names class and field.
        """
        if cls._checked:
            return
        if cls._abstract:
            raise DefinitionError(f"{cls.__qualname__} is abstract; call a subclass of it")
        problems = list(cls._common_problems())
        try:
            cls.check_definition()
        except DefinitionError as error:
            problems.append(str(error))
        if problems:
            raise DefinitionError("; ".join(problems))
        cls._checked = True

    @classmethod
    def _common_problems(cls) -> Iterator[str]:
        name, label = cls.__qualname__, cls.assembly_id
        if not isinstance(label, str) or not _ID.fullmatch(cls.id()):
            yield (
                f"{name}.assembly_id is {label!r}; use up to 64 lower-case letters, digits, '_' "
                "and '-'"
            )
        if not isinstance(cls.description, str):
            yield f"{name}.description must be text"
        if not isinstance(cls.limits, Limits):
            yield f"{name}.limits is {cls.limits!r}; use Limits(max_turns=…, …)"
            return
        try:
            check_json_mapping(cls.limits.model_settings, f"{name}.limits: model_settings")
        except InvocationError as error:
            yield str(error)

    @classmethod
    def check_definition(cls) -> None:
        """Check what this kind of assembly declares beyond the common part."""

    @classmethod
    def parts(cls) -> Sequence[type[Assembly]]:
        """Give the assemblies that it may start by itself, as far as the class declares them."""
        return ()

    @classmethod
    def reachable(cls) -> Sequence[type[Assembly]]:
        """Give itself and all that a run of it may start, as far as classes declare it.

        Raises:
            DefinitionError: One of them is declared wrongly.
        """
        if cls._reachable is None:
            found: dict[type[Assembly], None] = {cls: None}
            waiting = [cls]
            while waiting:
                item = waiting.pop()
                item.check()
                new = [part for part in item.parts() if part not in found]
                found.update(dict.fromkeys(new))
                waiting += new
            cls._reachable = tuple(found)
        return cls._reachable

    @classmethod
    def definition(cls) -> Mapping[str, Any]:
        """Give what the definition consists of, as JSON; the fingerprint is made of it."""
        return {
            "name": registry.name_of(cls),
            "kind": cls.kind,
            "id": cls.id(),
            "limits": cls.limits.to_json(),
        }

    @classmethod
    def definitions(cls) -> Mapping[str, registry.Built]:
        """Give the definitions that a run of it keeps, by name; those that builders made."""
        if cls._definitions is None:
            cls._definitions = registry.definitions_of(cls)
        return cls._definitions

    @classmethod
    def fingerprint(cls) -> str:
        """Give a hash of the definition; a run records it, and workers compare."""
        if cls._fingerprint is None:
            text = dumps(dict(cls.definition()))
            cls._fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
        return cls._fingerprint

    @classmethod
    def begin(cls, opening: Opening) -> tuple[Sequence[ParticipantSpec], Sequence[TaskSpec]]:
        """Give the participant and its first tasks: a coordinator's is its advance.

        Args:
            opening: Who the participant is, under whom, and what it may see.
        """
        participant = opening.participant(
            assembly=registry.name_of(cls), kind=cls.kind, label=cls.id(), state={}
        )
        task = opening.task(advance_id(opening.id), "advance", opening.queue("turns"))
        return [participant], [task]

    @classmethod
    def as_tool(
        cls,
        *,
        name: str | None = None,
        description: str | None = None,
        preserve_context: bool = False,
        requires_approval: bool | Callable[[dict[str, Any]], object] = False,
        approval_timeout_s: float = APPROVAL_TIMEOUT_S,
    ) -> Any:
        """Offer this assembly to another agent's model as a tool with one text, `input`.

        The call starts this assembly as a participant of the same run, with a conversation of its
        own and the caller's shared state as its context. It holds no slot while that works; its
        tokens count in the run.

        Args:
            name: What the model calls it; the assembly's id unless given.
            description: What the model is told; the assembly's description unless given.
            preserve_context: Whether a call goes on with what was said in the agent's earlier
                calls of it, in this run; they then go one after the other.
            requires_approval: Whether a person must allow each call, or a function that decides by
                the call's `{"input": text}`; see `Tool`.
            approval_timeout_s: Seconds after which a question nobody answered is a rejection.

        Returns:
            A tool class for an agent's `tools`.
        """
        return assembly_tool(
            cls,
            name,
            description,
            preserve_context=bool(preserve_context),
            approval_timeout_s=approval_timeout_s,
            **as_attributes({"requires_approval": requires_approval}),
        )

    @classmethod
    def enqueue(cls, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any) -> Run:
        """Start a run and return at once.

        Args:
            message: What to do: text, a message, or its JSON form.
            lane: "batch" for work that must never delay interactive runs.
            **fields: `history`, `settings`, `context`, `metadata`, `run_id`, `session_id`,
                `actor_id`, `deadline_at` (also `deadline`: a time or a timedelta),
                `include_agent_events`; others become fields of the invocation. An own `run_id`
                makes the call safe to repeat: the second one raises DuplicateRunError. With a
                `session_id`, the run's id may get the partition of the session as a prefix.

        Returns:
            The run, which lives in Redis from now on, whatever happens to this process.

        Raises:
            InvocationError: A value is refused; no run exists.
            ConfigurationError: The definition or the model selection is wrong; no run exists.
            JournalUnavailableError: Redis did not take it.

        Atomic: one script. Cost: one round trip.
        """
        return start_run(cls, message, lane, fields)

    @classmethod
    def enqueue_many(
        cls,
        messages: Iterable[Input],
        *,
        run_ids: Iterable[str] | None = None,
        lane: Literal["", "batch"] = "",
        **fields: Any,
    ) -> list[Run]:
        """Start a run for each message and return at once.

        Args:
            messages: What to do, as for `enqueue`; all are checked before any run exists.
            run_ids: An id for each. They make the call safe to repeat after an error: a run that
                exists is left as it is.
            lane: As for `enqueue`.
            **fields: As for `enqueue` and the same for every run, but for `run_id` and
                `session_id`, which are refused.

        Returns:
            The runs, in the order of the messages.

        Raises:
            InvocationError: A value is refused; no run exists. It names the message by number.
            ConfigurationError: The definition or the model selection is wrong; no run exists.
            JournalUnavailableError: Redis did not take them all; the first ones may exist.

        Atomic: each run by itself. Cost: one round trip for each hundred.
        """
        return start_runs(cls, messages, run_ids, lane, fields)

    @classmethod
    def ask(cls, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any) -> Run:
        """Start a run and wait until it has ended, however it ends.

        Args and errors as for `enqueue`; also:

        Raises:
            NoWorkerError: Nobody serves the queue of the run's next task; the run stays.
            BlockingCallError: Called inside a worker task, whose slot it would hold.
        """
        refuse_blocking(f"{cls.__qualname__}.ask()")
        return start_run(cls, message, lane, fields).wait(need_worker=True)

    @classmethod
    def stream_ask(
        cls, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any
    ) -> RunStream:
        """Start a run and watch it: an iterator of its events, the terminal one last.

        Args and errors as for `ask`. Closing the iterator, or losing the process, cancels nothing;
        `stream.run.events(after=…)` goes on from any event.
        """
        refuse_blocking(f"{cls.__qualname__}.stream_ask()")
        return RunStream(start_run(cls, message, lane, fields))

    @classmethod
    async def aenqueue(
        cls, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any
    ) -> Run:
        """Start a run without blocking the event loop; see `enqueue`."""
        return await start_run_async(cls, message, lane, fields)

    @classmethod
    async def aenqueue_many(
        cls,
        messages: Iterable[Input],
        *,
        run_ids: Iterable[str] | None = None,
        lane: Literal["", "batch"] = "",
        **fields: Any,
    ) -> list[Run]:
        """Start many runs without blocking the event loop; see `enqueue_many`."""
        return await asyncio.to_thread(start_runs, cls, messages, run_ids, lane, fields)

    @classmethod
    async def aask(cls, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any) -> Run:
        """Start a run and wait for it without blocking the event loop; see `ask`."""
        refuse_blocking(f"{cls.__qualname__}.aask()")
        run = await start_run_async(cls, message, lane, fields)
        return await run.wait_async(need_worker=True)

    @classmethod
    def astream_ask(
        cls, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any
    ) -> AsyncRunStream:
        """Start a run and watch it with `async for`; see `stream_ask`."""
        refuse_blocking(f"{cls.__qualname__}.astream_ask()")
        return AsyncRunStream(lambda: start_run_async(cls, message, lane, fields))


@lru_cache(maxsize=1024)
def derived_id(name: str) -> str:
    """Make an id of a class name: no trailing kind, words joined by underscores."""
    short = re.sub(r"(Agent|Workflow|Swarm|Graph)$", "", name) or name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", short).lower().strip("_")


def builder_of(cls: type[Assembly]) -> Any:
    """Begin a builder of a class's kind with what the class declares."""
    # By name, since builders stand above this module.
    builders = import_module("littleghost.builders")
    return getattr(builders, f"{cls.kind.capitalize()}Builder")(base=cls)
