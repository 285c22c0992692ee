"""The tool with which a member of a swarm hands the work to another member.

It is offered to a participant whose header grants it, beside the agent's own tools, and is never
run as a call: a valid handoff ends the member's invocation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from littleghost.errors import ProtocolError, ToolError
from littleghost.json_values import dumps
from littleghost.messages import Message, ToolUse, user
from littleghost.providers.base import ToolSpec
from littleghost.schema import CompiledSchema

HANDOFF: Final = "handoff_to_agent"
# The stop reason of an invocation that ended with a handoff.
TRANSITION: Final = "assembly_transition"

# `{"id", "description"}` of each member that may get the work.
Targets = Sequence[Mapping[str, Any]]

_ALONE = (
    f"Not run: {HANDOFF} must be the only call of an answer, so none of its calls was run. "
    f"Make the other calls first, then call {HANDOFF} by itself."
)
_BESIDE = (
    f"Not run: this answer also called {HANDOFF}, which must be the only call of an answer. "
    "Send this call again without it."
)
_ABOUT = (
    "Hand the work to another agent and end your own part. Call it by itself. The other agent sees "
    "nothing of this conversation: put all it needs to know, the original request included, into "
    "the message. Agents:"
)


@dataclass(frozen=True, slots=True)
class Handoff:
    """What a member hands over. JSON: `{"to", "message", "context"}`.

    Attributes:
        to: The id of the member that goes on.
        message: What that member is to know and do.
        context: Data that belongs to the message, or None.
    """

    to: str
    message: str
    context: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {"to": self.to, "message": self.message, "context": self.context}

    @classmethod
    def from_json(cls, data: object) -> Handoff:
        """Read a handoff.

        Raises:
            ProtocolError: It is malformed.
        """
        if not isinstance(data, Mapping):
            raise ProtocolError(f"a handoff is {type(data).__name__}; it must be an object")
        fields = cast("Mapping[str, Any]", data)
        to, message, context = (fields.get(name) for name in ("to", "message", "context"))
        if not isinstance(to, str) or not to:
            raise ProtocolError("a handoff does not say to whom: 'to' must be an agent's id")
        if not isinstance(message, str):
            raise ProtocolError(f"the handoff to {to!r} has no message that is text")
        if context is not None and not isinstance(context, Mapping):
            raise ProtocolError(f"the context of the handoff to {to!r} must be an object")
        return cls(to, message, context)

    def told(self, by: str) -> Message:
        """Write what the next member is told.

        Args:
            by: The id of the member that hands over.
        """
        text = f"Handoff from {by}:\n{self.message}"
        if self.context is not None:
            text += f"\n\nContext:\n{dumps(self.context)}"
        return user(text)


def grant(targets: Targets) -> dict[str, Any]:
    """Give what a participant's header says when it may hand off."""
    return {"handoff": [dict(target) for target in targets]}


def targets_of(header: Mapping[str, Any]) -> Targets:
    """Read from a participant's header to whom it may hand off; empty for nobody."""
    granted = cast("Mapping[str, Any]", header.get("gr") or {})
    return cast("Targets", granted.get("handoff") or ())


def input_schema(targets: Targets) -> dict[str, Any]:
    """Give the JSON Schema of the tool's input."""
    return {
        "type": "object",
        "properties": {
            "agent_id": {
                "type": "string",
                "enum": [target["id"] for target in targets],
                "description": "Who goes on.",
            },
            "message": {"type": "string", "description": "What the agent is to know and do."},
            "context": {"type": "object", "description": "Data that belongs to the message."},
        },
        "required": ["agent_id", "message"],
        "additionalProperties": False,
    }


def specification(targets: Targets) -> ToolSpec:
    """Give what a model is told about the tool."""
    lines = [
        f"- {target['id']}: {target['description']}"
        if target["description"]
        else f"- {target['id']}"
        for target in targets
    ]
    return ToolSpec(HANDOFF, "\n".join([_ABOUT, *lines]), input_schema(targets))


def read_call(use: ToolUse, targets: Targets) -> Handoff:
    """Read a call of the tool.

    Raises:
        ToolError: The input is refused; the message says why and is for the model.
    """
    if use.error is not None:
        raise ToolError(f"Invalid tool input: {use.error}")
    schema = CompiledSchema(input_schema(targets), owner=HANDOFF)
    data = cast("Mapping[str, Any]", schema.read(use.input))
    return Handoff(data["agent_id"], data["message"], data.get("context"))


def refusals(uses: Sequence[ToolUse], targets: Targets) -> list[str]:
    """Say for each call of an answer why none of them was run; empty for a valid handoff."""
    if len(uses) > 1:
        return [_ALONE if use.name == HANDOFF else _BESIDE for use in uses]
    try:
        read_call(uses[0], targets)
    except ToolError as error:
        return [str(error)]
    return []


def is_asked(uses: Sequence[ToolUse], targets: Targets) -> bool:
    """Say whether an answer asks for a handoff, allowed or not."""
    return bool(targets) and any(use.name == HANDOFF for use in uses)
