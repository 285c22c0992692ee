"""The tools of one agent: declared once, resolved for each turn and call.

A declaration is a Tool class, a function decorated with `@tool`, or a tool provider: a class (or an
object) with `tools(binding)`, which returns declarations, nested lists of them, or None. Providers
let tools share one resource, such as a client.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Self, cast

from littleghost.context import Binding
from littleghost.errors import DefinitionError, ToolError
from littleghost.json_values import clean_text
from littleghost.providers.base import ToolSpec
from littleghost.tool import Tool
from littleghost.tool_check import tool_problems

_MAX_NAMES: Final = 50
# Providers may nest declarations; a list that holds itself must not hang a worker.
_MAX_NESTING: Final = 20


class Declarations:
    """An agent's tools as declared: checked once, kept with the agent class, thread-safe.

    Attributes:
        entries: Tool classes and providers, in the order of declaration.
    """

    __slots__ = ("_fixed", "entries")

    def __init__(self, entries: Iterable[type[Tool] | Any]) -> None:
        """Keep checked entries; use `validate_declarations` instead."""
        self.entries = tuple(entries)
        self._fixed: tuple[Mapping[str, type[Tool]], tuple[ToolSpec, ...]] | None = None
        if all(_is_tool_class(entry) and entry.available_if is None for entry in self.entries):
            tools = {entry.name: entry for entry in self.entries}
            self._fixed = tools, tuple(entry.specification() for entry in self.entries)

    @property
    def fixed(self) -> tuple[Mapping[str, type[Tool]], tuple[ToolSpec, ...]] | None:
        """Tools by name and their specifications, when these are the same for every binding."""
        return self._fixed


def validate_declarations(declarations: object, owner: str) -> Declarations:
    """Check everything about an agent's tools that is known before a run.

    Args:
        declarations: A list of tool classes, decorated functions and providers; None for none.
        owner: What error messages call it, such as "SupportAgent.tools".

    Returns:
        The declarations, ready for any number of toolsets.

    Raises:
        DefinitionError: The message lists every problem of every tool.
    """
    entries: list[Any] = []
    problems: list[str] = []
    if declarations is not None and not _is_list(declarations):
        raise DefinitionError(f"{owner} must be a list of tools, not {declarations!r}")
    for item in _flatten(declarations, owner):
        entry = getattr(item, "tool_class", item)
        if _is_tool_class(entry):
            found = tool_problems(entry)
        else:
            found = [] if _is_provider(entry) else [_not_a_tool(entry)]
        problems.extend(found)
        if not found:
            entries.append(entry)
    problems.extend(_repeated(entry for entry in entries if _is_tool_class(entry)))
    if problems:
        raise DefinitionError(f"{owner}: " + "; ".join(dict.fromkeys(problems)))
    return Declarations(entries)


class Toolset:
    """The tools that one binding has, by name; owns what it builds.

    Cheap where no tool has `available_if` and there are no providers: nothing is resolved then.
    """

    def __init__(
        self, declarations: Declarations | Iterable[Any] | None, binding: Binding | None = None
    ) -> None:
        """Resolve declarations.

        Args:
            declarations: What `validate_declarations` gave, or a list of declarations.
            binding: The collaborators; an empty binding when None.

        Raises:
            DefinitionError: A tool is declared wrongly or two have the same name.
        """
        if not isinstance(declarations, Declarations):
            declarations = validate_declarations(declarations, "tools")
        self._binding = Binding() if binding is None else binding
        self._owned: list[Any] = []
        self._closed = False
        if declarations.fixed is not None:
            self._tools, self._specifications = declarations.fixed
            return
        try:
            self._tools = self._resolve(declarations)
            self._specifications = tuple(tool.specification() for tool in self._tools.values())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in the order of declaration."""
        return tuple(self._tools)

    def specifications(self) -> tuple[ToolSpec, ...]:
        """Give what a model is told about the tools, in the order of declaration."""
        return self._specifications

    def get(self, name: str) -> type[Tool]:
        """Give the class of a tool.

        Args:
            name: The name, as the model wrote it.

        Raises:
            ToolError: There is none; the message lists the names there are, for the model to read.
        """
        try:
            return self._tools[name]
        except KeyError:
            raise ToolError(self._unknown(name)) from None

    def build(self, name: str, binding: Binding | None = None) -> Tool:
        """Make a tool for one call; closed with this toolset.

        Args:
            name: The name, as the model wrote it.
            binding: The call's own collaborators; those of the toolset when None.

        Raises:
            ToolError: There is no such tool.
            RuntimeError: The toolset is closed.
        """
        if self._closed:
            raise RuntimeError("the toolset is closed")
        tool = self.get(name)(self._binding if binding is None else binding)
        self._owned.append(tool)
        return tool

    def close(self) -> None:
        """Close what was built, last first. Idempotent.

        Raises:
            Exception: The first error of a `close`, after all have been tried.
        """
        self._closed = True
        first: Exception | None = None
        while self._owned:
            try:
                self._owned.pop().close()
            except Exception as error:  # noqa: BLE001 - the others must be closed all the same
                first = first or error
        if first is not None:
            raise first

    def _resolve(self, declarations: Declarations) -> dict[str, type[Tool]]:
        tools: dict[str, type[Tool]] = {}
        for entry in declarations.entries:
            for tool in [entry] if _is_tool_class(entry) else self._provided(entry, 0):
                if tool.available_if is not None and not tool.available_if(self._binding):
                    continue
                if tool.name in tools:
                    raise DefinitionError(next(_repeated([tools[tool.name], tool])))
                tools[tool.name] = tool
        return tools

    def _provided(self, provider: Any, nesting: int) -> Iterator[type[Tool]]:
        owner = f"{_name(provider)}.tools()"
        if nesting > _MAX_NESTING:
            raise DefinitionError(f"{owner} leads to providers inside of providers without end")
        if isinstance(provider, type) and not isinstance(
            inspect.getattr_static(provider, "tools"), classmethod | staticmethod
        ):
            provider = provider()
            if callable(getattr(provider, "close", None)):
                self._owned.append(provider)
        for item in _flatten(provider.tools(self._binding), owner):
            entry = getattr(item, "tool_class", item)
            if _is_tool_class(entry):
                if problems := tool_problems(entry):
                    raise DefinitionError(f"{owner}: " + "; ".join(problems))
                yield entry
            elif _is_provider(entry):
                yield from self._provided(entry, nesting + 1)
            else:
                raise DefinitionError(f"{owner}: {_not_a_tool(entry)}")

    def _unknown(self, name: str) -> str:
        shown = clean_text(name[:64])
        names = self.names[:_MAX_NAMES]
        more = len(self._tools) - len(names)
        listed = ", ".join(names) + (f" and {more} more" if more else "")
        return f"Unknown tool: {shown}. " + (
            f"Available tools: {listed}" if names else "There are none"
        )


def _flatten(declarations: Any, owner: str, nesting: int = 0) -> Iterator[Any]:
    if declarations is None:
        return
    if nesting > _MAX_NESTING:
        raise DefinitionError(f"{owner} has lists inside of lists without end")
    if isinstance(declarations, list | tuple | set | frozenset) or inspect.isgenerator(
        declarations
    ):
        for item in cast("Iterable[Any]", declarations):
            yield from _flatten(item, owner, nesting + 1)
    else:
        yield declarations


def _is_list(declarations: Any) -> bool:
    # No sets: their order differs between processes, and the order is part of every request.
    return isinstance(declarations, list | tuple) or inspect.isgenerator(declarations)


def _is_tool_class(entry: Any) -> bool:
    return isinstance(entry, type) and issubclass(entry, Tool)


def _is_provider(entry: Any) -> bool:
    return not isinstance(entry, Tool) and callable(getattr(entry, "tools", None))


def _not_a_tool(entry: Any) -> str:
    if isinstance(entry, Tool):
        return f"{_name(type(entry))} is an instance; tools live for one call, so give the class"
    if inspect.isroutine(entry):
        return f"{_name(entry)} is a plain function; decorate it with @tool"
    return (
        f"{_name(entry)} is no tool; use a Tool class, a function decorated with @tool, "
        "or a class with tools(binding)"
    )


def _repeated(tools: Iterable[type[Tool]]) -> Iterator[str]:
    first: dict[str, type[Tool]] = {}
    for tool in tools:
        other = first.get(tool.name)
        if other is None:
            first[tool.name] = tool
        elif other is tool:
            yield f"{_name(tool)} is declared twice; leave one out"
        else:
            yield f"{_name(other)} and {_name(tool)} have the same name {tool.name!r}; rename one"


def _name(entry: Any) -> str:
    named = entry if hasattr(entry, "__qualname__") else type(entry)
    return f"{named.__module__}.{named.__qualname__}"
