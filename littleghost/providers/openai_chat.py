"""Builds the body of an OpenAI chat request.

Pure, and valid whatever the history holds: one bad stored item must not block a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from littleghost.messages import Document, Image, Message, Reasoning, Text
from littleghost.providers.arguments import replay_arguments
from littleghost.providers.attachments import data_url, document_text
from littleghost.providers.base import ModelRequest, ToolSpec
from littleghost.providers.history import AnsweredCall, HistoryTurn, answered_turns
from littleghost.providers.profiles import Profile
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import clean_json, clean_text

# Set by the adapter itself, or meaningless to the service.
_OWN_FIELDS = frozenset({"model", "messages", "tools", "stream", "stream_options"})
# Refused by services when no tools are offered.
_TOOL_FIELDS = frozenset({"tool_choice", "parallel_tool_calls"})


def build_request(request: ModelRequest, profile: Profile) -> dict[str, Any]:
    """Build the body of a streaming chat request.

    Args:
        request: What is asked. Its settings are passed on by their names, except that
            `max_tokens` gets the service's own name, `tool_choice` may name a tool
            (`"auto"`, `"none"`, `"required"`, or a tool's name), and None is left out.
        profile: The service's habits.

    Returns:
        The body; every text and value in it has a JSON form.
    """
    body: dict[str, Any] = {"model": request.model}
    messages: list[dict[str, Any]] = []
    for turn in answered_turns(request.messages):
        messages.extend(_render(turn, profile, request.model))
    body["messages"] = messages
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    for name, value in request.settings.items():
        if value is None or name in _OWN_FIELDS or (name in _TOOL_FIELDS and not request.tools):
            continue
        if name == "max_tokens":
            name = profile.max_tokens_field
        elif name == "tool_choice":
            value = _tool_choice(value)
        body[name] = clean_json(value)
    body["stream"] = True
    if profile.usage_in_stream:
        body["stream_options"] = {"include_usage": True}
    return body


def reasoning_origin(profile: Profile, model: str) -> str:
    """Name the model that reasoning belongs to: only that one gets it back."""
    return f"{profile.name}:{model}"


def _render(turn: HistoryTurn, profile: Profile, model: str) -> Iterable[dict[str, Any]]:
    message = turn.message
    if message.role == "assistant":
        return _assistant(turn, profile, model)
    if message.role == "user":
        content = _user_content(message)
        return ({"role": "user", "content": content},) if content else ()
    if not message.text:
        return ()
    role = message.role
    if role == "developer" and not profile.has_developer_role:
        role = "system"
    return ({"role": role, "content": clean_text(message.text)},)


def _assistant(turn: HistoryTurn, profile: Profile, model: str) -> Iterable[dict[str, Any]]:
    text = clean_text(turn.message.text)
    if not turn.calls:
        # A turn with neither text nor calls is refused by every service.
        if text:
            yield {"role": "assistant", "content": text}
        return
    content = text or (None if profile.tool_call_content == "null" else "")
    message: dict[str, Any] = {"role": "assistant", "content": content}
    message["tool_calls"] = [_call(call) for call in turn.calls]
    details = _reasoning_details(turn.message, profile, model)
    if details:
        message["reasoning_details"] = details
    yield message
    for call in turn.calls:
        yield {"role": "tool", "tool_call_id": call.wire_id, "content": clean_text(call.content)}


def _call(call: AnsweredCall) -> dict[str, Any]:
    return {
        "id": call.wire_id,
        "type": "function",
        "function": {"name": wire_name(call.use.name), "arguments": replay_arguments(call.use)},
    }


def _reasoning_details(message: Message, profile: Profile, model: str) -> list[Any]:
    """Give the reasoning that this model itself asked to get back, and no other's."""
    if not profile.keeps_reasoning:
        return []
    found: list[Any] = []
    for block in message.content:
        if isinstance(block, Reasoning) and isinstance(block.details, Mapping):
            details = cast("Mapping[str, Any]", block.details)
            if details.get("origin") == reasoning_origin(profile, model):
                found.extend(clean_json(details.get("items") or []))
    return found


def _user_content(message: Message) -> str | list[dict[str, Any]]:
    parts = _parts(message)
    if all(part["type"] == "text" for part in parts):
        # Plain text is understood everywhere, a list of parts is not.
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _parts(message: Message) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, Text):
            if block.text:
                parts.append({"type": "text", "text": clean_text(block.text)})
        elif isinstance(block, Image):
            url = data_url(block.media_type, block.data)
            parts.append({"type": "image_url", "image_url": {"url": url}})
        elif isinstance(block, Document):
            parts.append(_document(block))
    return parts


def _document(document: Document) -> dict[str, Any]:
    text = document_text(document)
    if text is not None:
        return {"type": "text", "text": text}
    file_data = data_url(document.media_type, document.data)
    return {"type": "file", "file": {"filename": clean_text(document.name), "file_data": file_data}}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    schema = clean_json(spec.input_schema) or {"type": "object", "properties": {}}
    return {
        "type": "function",
        "function": {
            "name": wire_name(spec.name),
            "description": clean_text(spec.description),
            "parameters": schema,
        },
    }


def _tool_choice(value: object) -> object:
    if not isinstance(value, str) or value in ("auto", "none", "required"):
        return value
    return {"type": "function", "function": {"name": wire_name(value)}}
