"""Agents declared at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import isroutine
from typing import Any, Self

from littleghost.agent import Agent
from littleghost.assembly import Assembly
from littleghost.builders.base import Builder
from littleghost.builders.form import FORMS, Declared, Form, Part
from littleghost.builders.reading import Reader
from littleghost.builders.writing import Writer
from littleghost.delegation import AssemblyTool
from littleghost.errors import DefinitionError
from littleghost.functions import tool as make_tool


@dataclass(frozen=True, slots=True)
class FunctionEntry:
    """A plain function as a tool, with the options it was given."""

    function: Any
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def make(self) -> Any:
        """Make the tool."""
        return make_tool(**self.options)(self.function)


@dataclass(frozen=True, slots=True)
class AssemblyEntry:
    """An assembly as a tool."""

    assembly: Any
    name: str | None = None
    description: str | None = None


class AgentBuilder(Builder):
    """Declares an agent at run time; see `Agent` for what it may be told."""

    kind = "agent"

    def model(self, selection: Any) -> Self:
        """Choose the model: as `Agent.model`, or a function of the agent that chooses."""
        return self._set("model", selection)

    def system_prompt(self, text: Any) -> Self:
        """Set the instructions: text, or a function of the agent that writes them."""
        return self._set("system_prompt", text)

    def tool(
        self, item: Any, *, name: str | None = None, description: str | None = None, **options: Any
    ) -> Self:
        """Add a tool.

        Args:
            item: A tool class, a decorated function, a tool provider class, a plain function,
                an assembly class or a builder.
            name: How the model calls it; for a plain function, an assembly or a builder.
            description: What the model is told; for the same.
            options: exclusive, idempotent, timeout_s, queue or available_if, for a plain function.

        Raises:
            DefinitionError: An option is unknown, or what is added has its own.
        """
        told = {"name": name, "description": description}
        given = {key: value for key, value in told.items() if value is not None}
        if isinstance(item, Builder) or (isinstance(item, type) and issubclass(item, Assembly)):
            if options:
                raise DefinitionError(f"{self!r}.tool: an assembly has no {', '.join(options)}")
            return self._add("tools", AssemblyEntry(item, name, description))
        if isroutine(item):
            entry = FunctionEntry(item, {**given, **options})
            entry.make()
            return self._add("tools", entry)
        if given or options:
            raise DefinitionError(
                f"{self!r}.tool: {item!r} says itself what it is; leave out "
                f"{', '.join([*given, *options])}"
            )
        return self._add("tools", item)

    def tools(self, *items: Any) -> Self:
        """Add several tools; see `tool`."""
        for item in items:
            self.tool(item)
        return self


def _settle(declared: Declared, part: Part) -> Declared:
    if "tools" not in declared:
        return declared
    tools = [
        replace(item, assembly=part(item.assembly, f"tools[{index}]"))
        if isinstance(item, AssemblyEntry)
        else item
        for index, item in enumerate(declared["tools"])
    ]
    return {**declared, "tools": tools}


def _write(declared: Declared, writer: Writer) -> dict[str, Any]:
    written: dict[str, Any] = {
        name: writer.either(declared[name], name)
        for name in ("model", "system_prompt")
        if name in declared
    }
    if "tools" in declared:
        written["tools"] = [
            _write_tool(item, writer, f"tools[{index}]")
            for index, item in enumerate(declared["tools"])
        ]
    return written


def _write_tool(item: Any, writer: Writer, where: str) -> dict[str, Any]:
    if isinstance(item, FunctionEntry):
        options = {
            name: writer.either(value, f"{where}: {name}") for name, value in item.options.items()
        }
        return {"function": writer.function(item.function, where), "options": options}
    if isinstance(item, type) and issubclass(item, AssemblyTool):
        item = AssemblyEntry(item.assembly, item.name, item.description)
    if isinstance(item, AssemblyEntry):
        return {
            "assembly": writer.assembly(item.assembly, where),
            "name": writer.literal(item.name, f"{where}: name"),
            "description": writer.literal(item.description, f"{where}: description"),
        }
    return {"tool": writer.tool(item, where)}


def _read(data: Mapping[str, Any], reader: Reader) -> Declared:
    declared: Declared = {
        name: reader.either(data[name]) for name in ("model", "system_prompt") if name in data
    }
    if "tools" in data:
        declared["tools"] = [_read_tool(item, reader) for item in data["tools"]]
    return declared


def _read_tool(data: Mapping[str, Any], reader: Reader) -> Any:
    if "function" in data:
        options = {name: reader.either(value) for name, value in data["options"].items()}
        return FunctionEntry(reader.function(data["function"]), options)
    if "assembly" in data:
        assembly = reader.assembly(data["assembly"])
        return AssemblyEntry(assembly, data["name"], data["description"])
    return reader.tool(data["tool"])


def _attributes(base: Any, declared: Declared) -> Declared:
    del base
    body = {name: declared[name] for name in ("model", "system_prompt") if name in declared}
    return {**body, "tools": [_made(item) for item in declared.get("tools", ())]}


def _made(item: Any) -> Any:
    if isinstance(item, FunctionEntry):
        return item.make()
    if isinstance(item, AssemblyEntry):
        return item.assembly.as_tool(name=item.name, description=item.description)
    return item


FORMS[AgentBuilder.kind] = Form(Agent, _settle, _write, _read, _attributes)
