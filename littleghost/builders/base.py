"""What every builder can do: be changed, be checked, and be called like a class."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, ClassVar, Literal, Self

from littleghost import registry
from littleghost.agent import Agent
from littleghost.assembly import Assembly, Input
from littleghost.builders.definition import check_id, label_of, make, write
from littleghost.builders.form import FORMS, Declared
from littleghost.errors import DefinitionError
from littleghost.limits import Limits
from littleghost.registry import Built
from littleghost.run import AsyncRunStream, Run, RunStream

# Builders whose classes are being made: one that holds itself is told by that.
_building: ContextVar[tuple[Builder, ...]] = ContextVar("builders being built", default=())


class Builder:
    """Declares an assembly at run time; every method that declares gives the builder back.

    A builder may be changed at any time, from any thread. A call takes a snapshot: what is said
    later is for later calls. The snapshot is kept with the run as data, so code in it must be
    functions and classes that workers find in their imported modules.
    """

    kind: ClassVar[str] = ""

    def __init__(
        self, id: str = "", *, description: str | None = None, base: type[Any] | None = None
    ) -> None:
        """Begin a declaration.

        Args:
            id: The assembly's id; that of `base` unless given.
            description: What it is for; shown to a model that may delegate to it.
            base: A class of the kind, whose declarations and code this one adds to.

        Raises:
            DefinitionError: The id is no short text, or the base is of another kind.
        """
        family = FORMS[self.kind].family
        self._base: type[Assembly] = family if base is None else base
        if not (isinstance(self._base, type) and issubclass(self._base, family)):
            raise DefinitionError(
                f"{type(self).__name__}: base is {base!r}; use a {family.__name__} class"
            )
        self._id = check_id(id or (self._base.id() if base is not None else id))
        self._lock = threading.Lock()
        self._declared: Declared = {}
        self._problems: list[str] = []
        self._version = 0
        # Of which version, with which classes inside, and the class.
        self._made: tuple[int, list[Any], Any] | None = None
        if description is not None:
            self.description(description)

    def __repr__(self) -> str:
        return label_of(self.kind, self._id)

    @property
    def id(self) -> str:
        """The assembly's id."""
        return self._id

    def description(self, text: str) -> Self:
        """Say what it is for; shown to a model that may delegate to it."""
        return self._set("description", text)

    def limits(self, limits: Limits | None = None, **values: Any) -> Self:
        """Say what one invocation may use up: `Limits`, or its fields.

        Raises:
            DefinitionError: A value is out of range, or there is no such field.
        """
        if values:
            try:
                limits = Limits(**values)
            except TypeError as error:
                raise DefinitionError(f"{self!r}.limits: {error}") from error
        return self._set("limits", limits)

    def _set(self, name: str, value: Any) -> Self:
        with self._lock:
            self._declared[name] = deepcopy(value) if isinstance(value, Mapping) else value
            self._version += 1
        return self

    def _add(self, name: str, value: Any) -> Self:
        with self._lock:
            self._declared[name] = [*self._declared.get(name, ()), value]
            self._version += 1
        return self

    def _put(self, name: str, key: Any, value: Any, what: str) -> Self:
        """Set one entry of a mapping; a second one for the same key is a mistake."""
        if not isinstance(key, Hashable):
            raise DefinitionError(f"{self!r}: {what} is {key!r:.80}; use its name")
        with self._lock:
            known: Mapping[Any, Any] = self._declared.get(name, {})
            if key in known:
                self._problems.append(f"{what} {key!r} is declared twice")
            self._declared[name] = {**known, key: value}
            self._version += 1
        return self

    # What is made of it.

    def build(self) -> Any:
        """Make the class that a call uses, checked: a snapshot.

        Returns:
            A class, to be used like a declared one: as a node, in `invoke`, as a base.

        Raises:
            DefinitionError: Something is declared wrongly; the message lists all of it.
        """
        building = _building.get()
        if self in building:
            raise DefinitionError(f"{self!r} holds itself")
        with self._lock:
            declared, problems = dict(self._declared), list(self._problems)
            version, made = self._version, self._made
        token = _building.set((*building, self))
        try:
            parts: list[Any] = []
            settled = FORMS[self.kind].settle(declared, _Parts(parts, problems).settle)
        finally:
            _building.reset(token)
        if made is not None and not problems and made[:2] == (version, parts):
            registry.keep(made[2])
            return made[2]
        cls = self._class(settled, problems)
        registry.keep(cls)
        self._made = (version, parts, cls)
        return cls

    def _class(self, settled: Declared, problems: list[str]) -> Any:
        built = write(self._id, self._base, settled, problems)
        try:
            cls = make(self._id, self._base, settled, built)
            cls.check()
        except DefinitionError as error:
            problems.append(str(error).replace(f"{self!r}.", ""))
        else:
            if not problems:
                return cls
        raise DefinitionError(f"{self!r}: " + "; ".join(dict.fromkeys(problems)))

    def validate(self) -> Self:
        """Check all of it without starting a run.

        Raises:
            DefinitionError: Something is declared wrongly; the message lists all of it.
        """
        self.build()
        return self

    def definition(self) -> str:
        """Give the definition as JSON, the way a run keeps it.

        Raises:
            DefinitionError: Something is declared wrongly; the message lists all of it.
        """
        built: Built = self.build().built
        return built.text

    def as_tool(self, *, name: str | None = None, description: str | None = None) -> Any:
        """Offer a snapshot of it to another agent's model as a tool; see `Assembly.as_tool`."""
        return self.build().as_tool(name=name, description=description)

    # Calls; arguments and errors as for the methods of an assembly class.

    def enqueue(self, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any) -> Run:
        """Start a run and return at once; see `Assembly.enqueue`."""
        return self.build().enqueue(message, lane=lane, **fields)

    def ask(self, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any) -> Run:
        """Start a run and wait until it has ended; see `Assembly.ask`."""
        return self.build().ask(message, lane=lane, **fields)

    def stream_ask(
        self, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any
    ) -> RunStream:
        """Start a run and watch it; see `Assembly.stream_ask`."""
        return self.build().stream_ask(message, lane=lane, **fields)

    async def aenqueue(
        self, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any
    ) -> Run:
        """Start a run without blocking the event loop; see `enqueue`."""
        return await self.build().aenqueue(message, lane=lane, **fields)

    async def aask(self, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any) -> Run:
        """Start a run and wait for it without blocking the event loop; see `ask`."""
        return await self.build().aask(message, lane=lane, **fields)

    def astream_ask(
        self, message: Input, *, lane: Literal["", "batch"] = "", **fields: Any
    ) -> AsyncRunStream:
        """Start a run and watch it with `async for`; the snapshot is taken at once."""
        return self.build().astream_ask(message, lane=lane, **fields)


class _Parts:
    """Makes the classes of builders inside a builder, and notes them."""

    def __init__(self, parts: list[Any], problems: list[str]) -> None:
        self._parts = parts
        self._problems = problems

    def settle(self, value: Any, where: str) -> Any:
        """Give the class of a builder; anything else stays as it is."""
        if not isinstance(value, Builder):
            return value
        try:
            made = value.build()
        except DefinitionError as error:
            self._problems.append(f"{where}: {error}")
            # Something sound in its place, so that the rest can be checked as well.
            body = {"assembly_id": value.id, "built": Built("", ""), "__module__": __name__}
            made = type("Unsound", (Agent,), body)
        self._parts.append(made)
        return made
