"""Describes an assembly as indented lines: what is known of it before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from littleghost import registry
from littleghost.agent import Agent
from littleghost.assembly import Assembly
from littleghost.delegation import AssemblyTool
from littleghost.graph import Graph
from littleghost.swarm import Swarm
from littleghost.tool import Tool

_INDENT = "  "


def outline(cls: type[Assembly], *, name: str = "", seen: tuple[Any, ...] = ()) -> Iterator[str]:
    """Give the lines of an assembly; what it is made of stands below it, further in.

    Args:
        name: What it is called where it is used; its id unless given.
        seen: The assemblies around it; one of them is named only.
    """
    called = f"{name}: " if name else ""
    yield f"{called}{cls.kind} {cls.id()}  ({registry.name_of(cls)})"
    if cls in seen:
        yield f"{_INDENT}(as above)"
        return
    inside = (*seen, cls)
    if issubclass(cls, Graph):
        yield from _indented(_graph(cls, inside))
    elif issubclass(cls, Swarm):
        yield from _indented(_swarm(cls, inside))
    elif issubclass(cls, Agent):
        yield from _indented(_agent(cls, inside))
    else:
        yield f"{_INDENT}its code decides what runs: perform()"


def _agent(cls: type[Agent], seen: tuple[Any, ...]) -> Iterator[str]:
    model = cls.model
    if model is not None:
        yield f"model {'chosen for each run' if callable(model) else model}"
    for entry in cls.declarations().entries:
        if not (isinstance(entry, type) and issubclass(entry, Tool)):
            yield f"tools of {getattr(entry, '__qualname__', type(entry).__qualname__)}"
            continue
        yield f"tool {entry.name}{_marks(_tool_words(entry))}"
        if issubclass(entry, AssemblyTool):
            yield from _indented(outline(entry.assembly, seen=seen))


def _tool_words(tool: type[Tool]) -> Iterator[str]:
    if tool.requires_approval is not False:
        asks = tool.requires_approval is True
        yield "a person must allow it" if asks else "a person may have to allow it"
    if tool.available_if is not None:
        yield "not always offered"
    if tool.exclusive:
        yield "exclusive"
    if tool.idempotent and not issubclass(tool, AssemblyTool):
        yield "idempotent"


def _swarm(cls: type[Swarm], seen: tuple[Any, ...]) -> Iterator[str]:
    yield f"at most {cls.max_steps} steps"
    for name, member in cls.roster().items():
        yield from outline(member.agent, name=name, seen=seen)
        words = ["start"] if name == cls.first() else []
        targets = [target["id"] for target in cls.targets(name)]
        words.append(f"hands off to {', '.join(targets)}" if targets else "answers")
        yield f"{_INDENT}{'; '.join(words)}"


def _graph(cls: type[Graph], seen: tuple[Any, ...]) -> Iterator[str]:
    plan = cls.plan()
    yield f"at most {plan.max_steps} steps"
    yield "nodes"
    for name, node in plan.nodes.items():
        lines = outline(node.assembly, name=name, seen=seen)
        ends = {"start": plan.start, "finish": plan.finish}
        places = _marks(word for word, at in ends.items() if at == name)
        yield from _indented(iter([next(lines) + places, *lines]))
    yield "edges"
    yield from _indented(_edges(plan))


def _edges(plan: Any) -> Iterator[str]:
    routes = [route for own in plan.routes.values() for route in own]
    # An edge that a fork's branches end with is a join, however it was declared.
    joins: dict[tuple[str, ...], str] = {
        route.fork.order: route.fork.join for route in routes if route.fork
    }
    joined = {(end, join) for ends, join in joins.items() for end in ends}
    for route in routes:
        targets = [name for name in route.targets if (route.source, name) not in joined]
        if targets:
            said = {"condition": route.when, "fork": route.fork}
            words = _marks(word for word, is_said in said.items() if is_said)
            yield f"{route.source} → {', '.join(targets)}{words}"
    for ends, join in joins.items():
        yield f"{', '.join(ends)} → {join}{_marks(['join'])}"
    for own in plan.errors.values():
        for route in own:
            names = ", ".join(kind.__name__ for kind in route.on)
            yield f"{route.source} → {route.target}{_marks([f'error: {names}'])}"


def _marks(words: Iterable[str]) -> str:
    said = "; ".join(words)
    return f"  [{said}]" if said else ""


def _indented(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield _INDENT + line
