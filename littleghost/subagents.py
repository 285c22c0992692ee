"""Subagents: agents that another agent's model starts, talks to and waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, cast

from littleghost.engine.subagent_state import SubagentLimits
from littleghost.errors import DefinitionError
from littleghost.tool import NAME_PATTERN, Tool

__all__ = ["ControlTool", "Subagent", "SubagentLimits", "control_tools", "read_subagents"]
_NOT_STRICT: Mapping[str, Any] = {"additionalProperties": False, "type": "object"}


@dataclass(frozen=True, slots=True)
class Subagent:
    """A kind of agent that another agent's model may start.

    Attributes:
        agent: The agent class; it has its own tools, not those of the agent that starts it.
        kind: What the model calls it; the agent's id unless given.
        description: What the model is told; the agent's description unless given.
        persist: Whether its conversations outlast the run, in a session.
    """

    agent: Any
    kind: str = ""
    description: str = ""
    persist: bool = True


class ControlTool(Tool):
    """A tool by which a model directs its subagents; the engine does its work.

    Attributes:
        verb: What it asks the coordinator to do.
    """

    description = "Directs subagents."
    # Asking takes effect only when it is recorded, so it may always be repeated.
    idempotent = True
    verb: ClassVar[str] = ""
    kinds: ClassVar[Mapping[str, Subagent]] = {}

    def call(self, input: Any) -> Any:
        """Refuse: the engine passes the request on instead of calling the tool."""
        raise DefinitionError(f"tool {self.name!r} can only be called inside a run")


def read_subagents(declared: object, owner: str) -> dict[str, Subagent]:
    """Check a list of subagents and give them by kind.

    Args:
        declared: Subagents and agent classes.
        owner: What error messages call it, such as "SupportAgent.subagents".

    Raises:
        DefinitionError: The message lists everything that is wrong.
    """
    if isinstance(declared, str | Mapping) or not isinstance(declared, Iterable):
        raise DefinitionError(f"{owner} is {declared!r}; use a list of Subagent(…)")
    found: dict[str, Subagent] = {}
    problems: list[str] = []
    for item in cast("Iterable[Any]", declared):
        given = item if isinstance(item, Subagent) else Subagent(item)
        agent = given.agent
        if not (isinstance(agent, type) and getattr(agent, "kind", None) == "agent"):
            problems.append(f"{agent!r} is no agent class")
            continue
        if getattr(agent, "_abstract", False):
            problems.append(f"{agent.__qualname__} is abstract; use a subclass of it")
            continue
        if not isinstance(given.description, str):
            problems.append(f"the description of {agent.__qualname__} is no text")
            continue
        kind: object = given.kind or agent.id()
        if not isinstance(kind, str) or not NAME_PATTERN.fullmatch(kind):
            problems.append(f"kind {kind!r} must be 1 to 64 of the characters a-z A-Z 0-9 _ -")
            continue
        if kind in found:
            problems.append(f"kind {kind!r} is declared twice")
        found[kind] = Subagent(
            agent, kind, given.description or agent.description, bool(given.persist)
        )
    if problems:
        raise DefinitionError(f"{owner}: " + "; ".join(problems))
    return found


def control_tools(kinds: Mapping[str, Subagent]) -> Sequence[type[ControlTool]]:
    """Make the five tools by which a model directs subagents of some kinds."""
    return _control_tools(tuple(kinds.values())) if kinds else ()


@lru_cache(maxsize=256)
def _control_tools(kinds: tuple[Subagent, ...]) -> tuple[type[ControlTool], ...]:
    listed = "\n".join(
        f"- {item.kind}: {item.description}" if item.description else f"- {item.kind}"
        for item in kinds
    )
    by_kind = {item.kind: item for item in kinds}
    return tuple(
        type(
            name,
            (ControlTool,),
            {
                "__module__": __name__,
                "name": name,
                "description": about.replace("KINDS", listed),
                "verb": verb,
                "input_schema": _schema(fields, required, list(by_kind)),
                "kinds": by_kind,
            },
        )
        for name, verb, about, fields, required in _CONTROLS
    )


def _schema(
    fields: Mapping[str, Any], required: Sequence[str], kinds: Sequence[str]
) -> dict[str, Any]:
    properties = {name: dict(field) for name, field in fields.items()}
    if "kind" in properties:
        properties["kind"]["enum"] = list(kinds)
    return {**_NOT_STRICT, "properties": properties, "required": list(required)}


_TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
_ID: Mapping[str, Any] = {**_TEXT, "maxLength": 1_100, "description": "As spawn_subagent gave it."}
_MODE: Mapping[str, Any] = {
    "type": "string",
    "enum": ["sync", "async"],
    "description": "sync waits for the answer; async goes on at once.",
}
# Name, verb, description, input fields, required ones.
_CONTROLS: Sequence[tuple[str, str, str, Mapping[str, Any], Sequence[str]]] = (
    (
        "spawn_subagent",
        "spawn",
        "Start a subagent. It knows nothing but its task, so say all it needs. Kinds:\nKINDS",
        {
            "kind": {"type": "string"},
            "task_name": {
                "type": "string",
                "pattern": "^[a-z0-9_]{1,40}$",
                "description": "A name of its own: a-z, 0-9, _.",
            },
            "task": _TEXT,
            "mode": _MODE,
        },
        ("kind", "task_name", "task", "mode"),
    ),
    (
        "send_message_to_subagent",
        "send",
        "Send another message to a subagent; it remembers its conversation. Messages queue up.",
        {"subagent_id": _ID, "message": _TEXT, "mode": _MODE},
        ("subagent_id", "message", "mode"),
    ),
    (
        "interject_subagent",
        "interject",
        "Say something to a subagent while it works, and hear what it says to that.",
        {"subagent_id": _ID, "message": _TEXT},
        ("subagent_id", "message"),
    ),
    (
        "wait_for_subagents",
        "wait",
        "Wait until subagents have finished, for a while at most. Without ids it is all of them.",
        {"subagent_ids": {"type": "array", "items": _ID, "minItems": 1, "maxItems": 100}},
        (),
    ),
    (
        "list_subagents",
        "list",
        "List the subagents, the newest first.",
        {
            "kind": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "cursor": {"type": "string", "maxLength": 512},
        },
        (),
    ),
)
