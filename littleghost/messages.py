"""Messages of a conversation and the blocks they are made of.

All are frozen values with one JSON form, which is what the journal keeps and events carry.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from littleghost.errors import InvocationError

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = ("system", "developer", "user", "assistant", "tool")
# The metadata of a user message that came in while an agent worked; only the engine writes it.
INTERJECTION = "interjection"


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text. JSON: `{"type": "text", "text": str}`."""

    text: str

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Image:
    """An image. JSON: `{"type": "image", "data": base64, "media_type": str, "name": str?}`."""

    data: bytes
    media_type: str
    name: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return _binary_json("image", self.data, self.media_type, self.name)


@dataclass(frozen=True, slots=True)
class Document:
    """A document. JSON: `{"type": "document", "data": base64, "media_type": str, "name": str}`."""

    data: bytes
    media_type: str
    name: str

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return _binary_json("document", self.data, self.media_type, self.name)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A model's request for one tool call.

    JSON: `{"type": "tool_use", "id", "name", "input": object, "arguments": str?, "error": str?}`.

    Attributes:
        input: The parsed arguments; `{}` when they could not be read.
        arguments: The exact text the model wrote, so that it can be sent back byte for byte.
        error: Why the arguments could not be read as a JSON object; the tool is then not called.
    """

    id: str
    name: str
    input: Mapping[str, Any]
    arguments: str | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        data: dict[str, Any] = {
            "type": "tool_use",
            "id": self.id,
            "name": self.name,
            "input": dict(self.input),
        }
        if self.arguments is not None:
            data["arguments"] = self.arguments
        if self.error is not None:
            data["error"] = self.error
        return data


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call gave back.

    JSON: `{"type": "tool_result", "tool_use_id", "content": str, "status": "success"|"error"}`.
    """

    tool_use_id: str
    content: str
    status: Literal["success", "error"] = "success"

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "type": "tool_result",
            "tool_use_id": self.tool_use_id,
            "content": self.content,
            "status": self.status,
        }


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's reasoning, kept so that it can be sent back where a provider requires it.

    JSON: `{"type": "reasoning", "text", "signature"?, "redacted"?, "details"?}`.
    """

    text: str = ""
    signature: str | None = None
    redacted: str | None = None
    details: Any = None

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        data: dict[str, Any] = {"type": "reasoning", "text": self.text}
        for name in ("signature", "redacted", "details"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        return data


Block: TypeAlias = Text | Image | Document | ToolUse | ToolResult | Reasoning


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    JSON: `{"role": str, "content": [block, …], "metadata": object?}`.
    """

    role: Role
    content: tuple[Block, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """All text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls this message asks for, in the model's order."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))

    def without_reasoning(self) -> Message:
        """Give the same message without its reasoning blocks."""
        kept = tuple(block for block in self.content if not isinstance(block, Reasoning))
        return self if len(kept) == len(self.content) else Message(self.role, kept, self.metadata)

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        data: dict[str, Any] = {
            "role": self.role,
            "content": [block.to_json() for block in self.content],
        }
        if self.metadata:
            data["metadata"] = dict(self.metadata)
        return data

    @classmethod
    def from_json(cls, data: object) -> Message:
        """Read a message.

        Args:
            data: A message, a mapping in the JSON form, or text (a user message).

        Raises:
            InvocationError: It is none of these; the message says where it went wrong.
        """
        if isinstance(data, Message):
            return data
        if isinstance(data, str):
            return user(data)
        if not isinstance(data, Mapping):
            raise InvocationError(f"a message must be text or an object, not {type(data).__name__}")
        data = cast("Mapping[str, Any]", data)
        role = data.get("role", "user")
        if role not in ROLES:
            raise InvocationError(f"unknown message role {role!r}; use one of {', '.join(ROLES)}")
        content: object = data.get("content")
        items = [content] if isinstance(content, str | Mapping) else content
        if not isinstance(items, Iterable):
            raise InvocationError("a message needs content: text or a list of blocks")
        blocks = tuple(block_from_json(item) for item in cast("Iterable[object]", items))
        metadata = data.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise InvocationError("a message's metadata must be an object")
        return cls(role, blocks, MappingProxyType(dict(cast("Mapping[str, Any]", metadata))))


def user(text: str) -> Message:
    """Make a user message of plain text."""
    return Message("user", (Text(text),))


def system(text: str) -> Message:
    """Make a system message of plain text."""
    return Message("system", (Text(text),))


def assistant(text: str) -> Message:
    """Make an assistant message of plain text."""
    return Message("assistant", (Text(text),))


def block_from_json(data: object) -> Block:
    """Read one content block.

    Raises:
        InvocationError: The type is unknown or a field has the wrong type.
    """
    if isinstance(data, Text | Image | Document | ToolUse | ToolResult | Reasoning):
        return data
    if isinstance(data, str):
        return Text(data)
    if not isinstance(data, Mapping):
        raise InvocationError(f"a content block must be an object, not {type(data).__name__}")
    data = cast("Mapping[str, Any]", data)
    kind = data.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise InvocationError(
            f"unknown content block type {kind!r}; use one of {', '.join(_READERS)}"
        )
    return reader(data)


def _text_of(data: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str):
        raise InvocationError(f"{data.get('type')} block: {name!r} must be text")
    return value


def _optional_text(data: Mapping[str, Any], name: str) -> str | None:
    return None if data.get(name) is None else _text_of(data, name)


def _bytes_of(data: Mapping[str, Any]) -> bytes:
    value = data.get("data")
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(_text_of(data, "data"), validate=True)
    except binascii.Error as error:
        raise InvocationError(f"{data.get('type')} block: 'data' is not base64") from error


def _binary_json(kind: str, data: bytes, media_type: str, name: str | None) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "type": kind,
        "data": base64.b64encode(data).decode("ascii"),
        "media_type": media_type,
    }
    if name is not None:
        shape["name"] = name
    return shape


def _read_tool_use(data: Mapping[str, Any]) -> ToolUse:
    value = data.get("input", {})
    if not isinstance(value, Mapping):
        raise InvocationError("tool_use block: 'input' must be an object")
    return ToolUse(
        _text_of(data, "id"),
        _text_of(data, "name"),
        MappingProxyType(dict(cast("Mapping[str, Any]", value))),
        _optional_text(data, "arguments"),
        _optional_text(data, "error"),
    )


def _read_tool_result(data: Mapping[str, Any]) -> ToolResult:
    status = data.get("status", "success")
    if status not in ("success", "error"):
        raise InvocationError(f"tool_result block: status {status!r} must be success or error")
    return ToolResult(_text_of(data, "tool_use_id"), _text_of(data, "content"), status)


def _read_reasoning(data: Mapping[str, Any]) -> Reasoning:
    return Reasoning(
        _text_of(data, "text", ""),
        _optional_text(data, "signature"),
        _optional_text(data, "redacted"),
        data.get("details"),
    )


def _read_text(data: Mapping[str, Any]) -> Text:
    return Text(_text_of(data, "text"))


def _read_image(data: Mapping[str, Any]) -> Image:
    return Image(_bytes_of(data), _text_of(data, "media_type"), _optional_text(data, "name"))


def _read_document(data: Mapping[str, Any]) -> Document:
    return Document(_bytes_of(data), _text_of(data, "media_type"), _text_of(data, "name"))


_READERS: dict[str, Callable[[Mapping[str, Any]], Block]] = {
    "text": _read_text,
    "image": _read_image,
    "document": _read_document,
    "tool_use": _read_tool_use,
    "tool_result": _read_tool_result,
    "reasoning": _read_reasoning,
}
