"""Writes a stored conversation as the input items of an OpenAI Responses request.

Pure, and valid whatever the history holds. Nothing refers to what the service may have kept: calls
and messages have no item ids, reasoning travels as the encrypted content the service gave with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from littleghost.messages import Document, Image, Message, Reasoning, Text, ToolUse
from littleghost.providers.arguments import replay_arguments
from littleghost.providers.attachments import data_url, document_text
from littleghost.providers.history import AnsweredCall, HistoryTurn, answered_turns
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import clean_json, clean_text

# The metadata of an assistant message that holds what only this service understands.
METADATA = "openai_responses"
# Characters; the service refuses longer ids of calls, which other services give.
_MAX_CALL_ID = 64
# What a reasoning item may hold when it is sent back.
_REASONING_FIELDS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "summary": (list, tuple),
    "content": (list, tuple),
    "encrypted_content": str,
}


def build_input(messages: Sequence[Message], origin: str) -> tuple[str, list[dict[str, Any]]]:
    """Write a conversation.

    Args:
        messages: The conversation as it is stored.
        origin: Whose reasoning is sent back; that of others is left out.

    Returns:
        The instructions, which are the system messages it begins with, and the input items.
    """
    instructions: list[str] = []
    items: list[dict[str, Any]] = []
    seen: set[str] = set()
    for turn in answered_turns(messages):
        message = turn.message
        if message.role == "assistant":
            items.extend(_assistant(turn, origin, seen))
        elif message.role == "user":
            content = _user_content(message)
            if content:
                items.append({"type": "message", "role": "user", "content": content})
        elif message.text:
            text = clean_text(message.text)
            if message.role == "system" and not items:
                instructions.append(text)
            else:
                items.append({"type": "message", "role": message.role, "content": text})
    if instructions and not items:
        # A request without input is refused.
        text = "\n\n".join(instructions)
        return "", [{"type": "message", "role": "system", "content": text}]
    return "\n\n".join(instructions), items


def kept_reasoning(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give what must be kept of a reasoning item so that it can be sent back.

    Returns:
        The item; None when it says nothing that a service without memory could use.
    """
    found = {name: item.get(name) for name in _REASONING_FIELDS}
    kept = {
        name: value
        for name, value in found.items()
        if value and isinstance(value, _REASONING_FIELDS[name])
    }
    if "id" not in kept or not ("encrypted_content" in kept or "content" in kept):
        return None
    return clean_json({"type": "reasoning", "summary": [], **kept})


def _assistant(turn: HistoryTurn, origin: str, seen: set[str]) -> Iterable[dict[str, Any]]:
    """Write a turn in the model's own order; the results of its calls come at its end."""
    calls = iter(turn.calls)
    phases = iter(_phases(turn.message, origin))
    # Reasoning is refused without the item it led to, so it waits for that one.
    waiting: list[dict[str, Any]] = []
    for block in turn.message.content:
        if isinstance(block, Reasoning):
            waiting.extend(_reasoning(block, origin, seen))
            continue
        item: dict[str, Any] | None = None
        if isinstance(block, Text):
            phase = next(phases, None)
            if block.text:
                item = {"type": "message", "role": "assistant", "content": clean_text(block.text)}
                if phase:
                    item["phase"] = phase
        elif isinstance(block, ToolUse):
            item = _call(next(calls))
        if item is not None:
            yield from waiting
            waiting.clear()
            yield item
    for call in turn.calls:
        output = clean_text(call.content)
        yield {"type": "function_call_output", "call_id": _call_id(call), "output": output}


def _call(call: AnsweredCall) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": _call_id(call),
        "name": wire_name(call.use.name),
        "arguments": replay_arguments(call.use),
    }


def _call_id(call: AnsweredCall) -> str:
    if len(call.wire_id) <= _MAX_CALL_ID:
        return call.wire_id
    return "call_" + hashlib.sha256(call.wire_id.encode("utf-8")).hexdigest()[:32]


def _reasoning(block: Reasoning, origin: str, seen: set[str]) -> Iterable[dict[str, Any]]:
    details: object = block.details
    if not isinstance(details, Mapping):
        return
    details = cast("Mapping[str, Any]", details)
    items: object = details.get("items")
    if details.get("origin") != origin or not isinstance(items, list | tuple):
        return
    for item in cast("Sequence[object]", items):
        kept = (
            kept_reasoning(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else None
        )
        # The service refuses an item that stands there twice.
        if kept is not None and kept["id"] not in seen:
            seen.add(kept["id"])
            yield kept


def _phases(message: Message, origin: str) -> Sequence[str | None]:
    """Give what the model said each of a message's texts is: commentary or its final answer."""
    own: object = message.metadata.get(METADATA)
    if not isinstance(own, Mapping):
        return ()
    own = cast("Mapping[str, Any]", own)
    phases: object = own.get("phases")
    if own.get("origin") != origin or not isinstance(phases, list | tuple):
        return ()
    known = ("commentary", "final_answer")
    return [phase if phase in known else None for phase in cast("Sequence[Any]", phases)]


def _user_content(message: Message) -> str | list[dict[str, Any]]:
    parts = [part for part in map(_part, message.content) if part is not None]
    if all(part["type"] == "input_text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _part(block: object) -> dict[str, Any] | None:
    match block:
        case Text(text) if text:
            return {"type": "input_text", "text": clean_text(text)}
        case Image():
            url = data_url(block.media_type, block.data)
            return {"type": "input_image", "detail": "auto", "image_url": url}
        case Document():
            text = document_text(block)
            if text is not None:
                return {"type": "input_text", "text": text}
            file_data = data_url(block.media_type, block.data)
            filename = clean_text(block.name)
            return {"type": "input_file", "filename": filename, "file_data": file_data}
        case _:
            return None
