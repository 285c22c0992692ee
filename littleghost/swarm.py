"""Swarms: agents that hand the work to each other until one of them answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

from littleghost.agent import Agent
from littleghost.assembly import Assembly, builder_of
from littleghost.engine.advance import register_decider
from littleghost.engine.decide.swarm import decide
from littleghost.errors import DefinitionError, LittleGhostError
from littleghost.failure import name_of_class
from littleghost.handoff import HANDOFF, Targets
from littleghost.policy import StepPolicy
from littleghost.tool import NAME_PATTERN

if TYPE_CHECKING:
    from littleghost.builders import SwarmBuilder


@dataclass(frozen=True, eq=False)
class Member:
    """An agent of a swarm, with what it may see and how often it is tried.

    Attributes:
        agent: The agent class.
        name: Its id in the swarm; the agent's own id unless given.
        history: Whether it gets the caller's history.
        context: Whether its code gets the caller's context.
        timeout_s: Seconds that one attempt may take; None is no limit.
        retries: How often a failed attempt is followed by another.
        retry_on: Exception classes that are worth another attempt, with their subclasses.
        retry_delay_s: Seconds between two attempts.
    """

    agent: type[Agent]
    _: KW_ONLY
    name: str = ""
    history: bool = False
    context: bool = False
    timeout_s: float | None = None
    retries: int = 0
    retry_on: type[BaseException] | Sequence[type[BaseException]] = ()
    retry_delay_s: float = 0.0

    @property
    def id(self) -> str:
        """The member's id in its swarm."""
        return self.name or self.agent.id()

    @cached_property
    def policy(self) -> StepPolicy:
        """The bounds of its steps.

        Raises:
            DefinitionError: A value is out of range.
        """
        values = {field.name: getattr(self, field.name) for field in fields(StepPolicy)}
        return StepPolicy.read(f"Member({self.agent.__qualname__})", **values)


class Swarm(Assembly, abstract=True):
    """One active agent at a time: it answers, or hands the work to an allowed other member.

    A handoff's message is the whole input of the next member; it proves no permission. Each visit
    of a member begins anew.

    Attributes:
        members: Agent classes, or `Member`s.
        start: The member that gets the caller's message: a class or an id.
        handoffs: To whom each member may hand off, `{source: [targets]}`, classes or ids. Empty
            lets everyone hand off to everyone; otherwise members without an entry only answer.
        max_steps: How many steps members may take in all.
        max_handoff_repeats: How often one member may hand off to the same other.
    """

    kind: ClassVar[str] = "swarm"
    members: ClassVar[Sequence[Any]] = ()
    start: ClassVar[Any] = None
    handoffs: ClassVar[Mapping[Any, Sequence[Any]]] = {}
    max_steps: ClassVar[int] = 20
    max_handoff_repeats: ClassVar[int] = 3
    _roster: ClassVar[Mapping[str, Member] | None] = None

    def __init_subclass__(cls, *, abstract: bool = False, **options: Any) -> None:
        """Register the class; see `Assembly`."""
        super().__init_subclass__(abstract=abstract, **options)
        cls._roster = None

    @classmethod
    def roster(cls) -> Mapping[str, Member]:
        """Give the members by id, in the order of declaration."""
        if cls._roster is None:
            cls._roster = {item.id: item for item in map(_as_member, cls.members)}
        return cls._roster

    @classmethod
    def first(cls) -> str:
        """Give the id of the member that starts."""
        return cls._named(cls.start)

    @classmethod
    def targets(cls, member: str) -> Targets:
        """Give to whom a member may hand off: id and description of each."""
        roster = cls.roster()
        allowed = [name for name in roster if name != member]
        if cls.handoffs:
            declared = {cls._named(source): names for source, names in cls.handoffs.items()}
            allowed = [cls._named(name) for name in declared.get(member, ())]
        return [{"id": name, "description": roster[name].agent.description} for name in allowed]

    @classmethod
    def parts(cls) -> Sequence[type[Assembly]]:
        """Give the agents of its members."""
        return [member.agent for member in cls.roster().values()]

    @classmethod
    def _named(cls, reference: Any) -> str:
        """Give the id of the member that a class, a `Member` or an id means.

        Raises:
            DefinitionError: It means none, or more than one.
        """
        roster = cls.roster()
        found = [
            name
            for name, member in roster.items()
            if reference in (name, member.agent) or reference is member
        ]
        if len(found) == 1:
            return found[0]
        why = f"means {' and '.join(found)}; use an id" if found else "is no member"
        raise DefinitionError(f"{_told(reference)} {why}; the members are {', '.join(roster)}")

    @classmethod
    def to_builder(cls) -> SwarmBuilder:
        """Give a builder that begins with what this class declares and can do."""
        return cast("SwarmBuilder", builder_of(cls))

    @classmethod
    def check_definition(cls) -> None:
        """Check members, start, handoffs and limits; the error lists all that is wrong."""
        problems = list(cls._member_problems())
        if not problems:
            # Without sound members nothing can be said about who refers to them.
            problems += cls._route_problems()
        for field in ("max_steps", "max_handoff_repeats"):
            value = getattr(cls, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                problems.append(f"{field} is {value!r}; use a whole number of at least 1")
        if problems:
            raise DefinitionError("; ".join(f"{cls.__qualname__}.{text}" for text in problems))

    @classmethod
    def _member_problems(cls) -> Iterator[str]:
        given: Any = cls.members
        if not isinstance(given, list | tuple):
            yield f"members is {given!r}; use a list of agent classes"
            return
        seen: set[str] = set()
        for item in cast("Sequence[Any]", given):
            member = _as_member(item)
            agent: Any = member.agent
            if not (isinstance(agent, type) and issubclass(agent, Agent)):
                yield f"members holds {_told(agent)}; use agent classes, or Member(AgentClass, …)"
                continue
            for flag in ("history", "context"):
                if not isinstance(getattr(member, flag), bool):
                    value = getattr(member, flag)
                    yield f"members: {flag} of {agent.__qualname__} is {value!r}; use True or False"
            name: Any = member.name
            if not isinstance(name, str) or (name and not NAME_PATTERN.fullmatch(name)):
                yield f"members: name of {agent.__qualname__} is {name!r}; use letters and digits"
                continue
            try:
                agent.check()
                _ = member.policy
                if _has_own_handoff(agent):
                    yield f"members: {agent.__qualname__} has a tool {HANDOFF!r}; rename it"
            except LittleGhostError as error:
                yield f"members: {error}"
            if member.id in seen:
                yield f"members holds {member.id!r} twice; use Member(…, name=…)"
            seen.add(member.id)
        if len(given) < 2:
            yield f"members has {len(given)}; a swarm needs at least two"

    @classmethod
    def _route_problems(cls) -> Iterator[str]:
        yield from cls._reference_problem("start", cls.start)
        given: Any = cls.handoffs
        if not isinstance(given, Mapping):
            yield f"handoffs is {given!r}; use {{source: [targets]}}"
            return
        sources: list[str] = []
        for source, targets in cast("Mapping[Any, Any]", given).items():
            wrong = list(cls._reference_problem("handoffs", source))
            yield from wrong
            name = _told(source) if wrong else cls._named(source)
            if name in sources:
                yield f"handoffs has {name!r} twice"
            sources.append(name)
            if not isinstance(targets, list | tuple) or not targets:
                yield f"handoffs: targets of {name!r} are {targets!r}; use a list of members"
                continue
            named: list[str] = []
            for target in cast("Sequence[Any]", targets):
                wrong = list(cls._reference_problem(f"handoffs: target of {name!r}", target))
                yield from wrong
                named += [] if wrong else [cls._named(target)]
            if name in named:
                yield f"handoffs lets {name!r} hand off to itself"
            for repeated in sorted({item for item in named if named.count(item) > 1}):
                yield f"handoffs: {name!r} has the target {repeated!r} twice"

    @classmethod
    def _reference_problem(cls, field: str, reference: Any) -> Iterator[str]:
        try:
            cls._named(reference)
        except DefinitionError as error:
            yield f"{field}: {error}"

    @classmethod
    def definition(cls) -> Mapping[str, Any]:
        """Give what the definition consists of, as JSON."""
        return {
            **super().definition(),
            "members": [_definition_of(name, member) for name, member in cls.roster().items()],
            "start": cls.first(),
            "handoffs": {
                name: [target["id"] for target in cls.targets(name)] for name in cls.roster()
            },
            "max_steps": cls.max_steps,
            "max_handoff_repeats": cls.max_handoff_repeats,
        }


def _as_member(item: Any) -> Member:
    return item if isinstance(item, Member) else Member(item)


def _has_own_handoff(agent: type[Agent]) -> bool:
    fixed = agent.declarations().fixed
    return fixed is not None and HANDOFF in fixed[0]


def _definition_of(name: str, member: Member) -> list[Any]:
    policy = member.policy
    bounds = [policy.timeout_s, policy.retries, policy.retry_delay_s]
    classes = [name_of_class(item) for item in policy.retry_on]
    flags = [member.history, member.context]
    return [name, member.agent.fingerprint(), member.agent.description, flags, bounds, classes]


def _told(reference: Any) -> str:
    return str(getattr(reference, "__qualname__", repr(reference)))


register_decider(Swarm.kind, decide)
