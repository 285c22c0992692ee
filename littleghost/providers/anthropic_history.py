"""Writes a stored conversation as the messages of an Anthropic request.

Pure, and valid whatever the history holds: the roles take turns, a user begins and ends, no text
is blank, every call is answered at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from littleghost.messages import Document, Image, Message, Reasoning, Text, ToolUse
from littleghost.providers.arguments import replay_arguments
from littleghost.providers.attachments import base64_text, text_in
from littleghost.providers.history import AnsweredCall, HistoryTurn, answered_turns
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import clean_text

# Said for the user where the service wants a user to speak and nobody did.
OPENING = "(The conversation began earlier.)"
GO_ON = "Continue."
NO_OUTPUT = "(no output)"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def render_messages(
    messages: Sequence[Message], origin: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Render a conversation.

    Args:
        messages: The conversation.
        origin: Whose reasoning may be sent back; all other is left out.

    Returns:
        The text blocks of the system prompt, and the messages. A system message that comes after
        the beginning stays in its place, as text of the user in a `<system>` element: moving it
        to the front would make the service forget what it has cached.
    """
    system: list[dict[str, Any]] = []
    wire: list[dict[str, Any]] = []
    for turn in answered_turns(messages):
        role = turn.message.role
        if role == "assistant":
            _append(wire, "assistant", _assistant(turn, origin))
            _append(wire, "user", [_result(call) for call in turn.calls])
        elif role == "user":
            _append(wire, "user", _user(turn.message))
        elif wire:
            text = "".join(block["text"] for block in _texts(turn.message))
            if text:
                _append(wire, "user", [_text(f"<system>\n{text}\n</system>")])
        else:
            system.extend(_texts(turn.message))
    if not wire or wire[0]["role"] != "user":
        wire.insert(0, {"role": "user", "content": [_text(OPENING if wire else GO_ON)]})
    if wire[-1]["role"] != "user":
        # Newer models refuse to go on with a text of their own.
        wire.append({"role": "user", "content": [_text(GO_ON)]})
    return system, wire


def wire_id(call: AnsweredCall) -> str:
    """Give a call's id in the letters that the service takes."""
    return wire_name(call.wire_id)


def _append(wire: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    if not blocks:
        return
    if wire and wire[-1]["role"] == role:
        wire[-1]["content"].extend(blocks)
    else:
        wire.append({"role": role, "content": blocks})


def _assistant(turn: HistoryTurn, origin: str) -> list[dict[str, Any]]:
    calls = iter(turn.calls)
    blocks: list[dict[str, Any]] = []
    for block in turn.message.content:
        if isinstance(block, Text):
            blocks.extend(_texts(Message("assistant", (block,))))
        elif isinstance(block, ToolUse):
            blocks.append(_call(next(calls)))
        elif isinstance(block, Reasoning):
            blocks.extend(_reasoning(block, origin))
    # The service refuses a turn that ends with thinking.
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()
    return blocks


def _reasoning(block: Reasoning, origin: str) -> list[dict[str, Any]]:
    """Give back the reasoning that this model signed; any other would be refused."""
    details: object = block.details
    if not isinstance(details, Mapping):
        return []
    if cast("Mapping[str, Any]", details).get("origin") != origin:
        return []
    if block.redacted:
        return [{"type": "redacted_thinking", "data": clean_text(block.redacted)}]
    if not block.signature:
        return []
    return [
        {
            "type": "thinking",
            "thinking": clean_text(block.text),
            "signature": clean_text(block.signature),
        }
    ]


def _call(call: AnsweredCall) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": wire_id(call),
        "name": wire_name(call.use.name),
        "input": json.loads(replay_arguments(call.use)),
    }


def _result(call: AnsweredCall) -> dict[str, Any]:
    text = clean_text(call.content)
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": wire_id(call),
        "content": text if text.strip() else NO_OUTPUT,
    }
    if call.result is None or call.result.status == "error":
        result["is_error"] = True
    return result


def _user(message: Message) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, Text):
            blocks.extend(_texts(Message("user", (block,))))
        elif isinstance(block, Image):
            blocks.append(_image(block))
        elif isinstance(block, Document):
            blocks.append(_document(block))
    return blocks


def _image(image: Image) -> dict[str, Any]:
    media_type = image.media_type.lower()
    if media_type == "image/jpg":
        media_type = "image/jpeg"
    if media_type not in _IMAGES or not image.data:
        return _unreadable("Image", image.name or "", image.media_type)
    return {"type": "image", "source": _base64(media_type, image.data)}


def _document(document: Document) -> dict[str, Any]:
    media_type, text = document.media_type.lower(), text_in(document)
    if media_type == "application/pdf" and document.data:
        source = _base64(media_type, document.data)
    elif text is not None:
        if not text.strip():
            return _text(f"[Document {clean_text(document.name)!r} is empty.]")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        return _unreadable("Document", document.name, document.media_type)
    block: dict[str, Any] = {"type": "document", "source": source}
    title = clean_text(document.name).strip()
    if title:
        block["title"] = title
    return block


def _unreadable(what: str, name: str, media_type: str) -> dict[str, Any]:
    # Told to the model, since a stored attachment must not block its session for good.
    named = f" {clean_text(name)!r}" if name else ""
    return _text(f"[{what}{named} of type {clean_text(media_type)!r} cannot be shown to you.]")


def _base64(media_type: str, data: bytes) -> dict[str, Any]:
    return {"type": "base64", "media_type": media_type, "data": base64_text(data)}


def _texts(message: Message) -> list[dict[str, Any]]:
    texts = (clean_text(block.text) for block in message.content if isinstance(block, Text))
    return [_text(text) for text in texts if text.strip()]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
