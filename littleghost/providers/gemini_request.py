"""Builds the body of a Gemini request, for the Gemini API and for Vertex AI.

Pure, and valid whatever the history holds: the roles user and model take turns, a user begins and
ends, each call is answered right after it, in the order of the calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from littleghost.messages import Document, Image, Message, Reasoning, Text, ToolUse
from littleghost.providers.arguments import replay_arguments
from littleghost.providers.attachments import base64_text, document_text
from littleghost.providers.base import ModelRequest, ToolSpec
from littleghost.providers.gemini_settings import generation_of
from littleghost.providers.gemini_signatures import SKIP_CHECK, Signed, needs_signatures, signed_of
from littleghost.providers.history import AnsweredCall, HistoryTurn, answered_turns
from littleghost.providers.schema_gemini import gemini_schema
from littleghost.providers.tool_names import letter_first_name
from littleghost.providers.wire_text import clean_text

Part: TypeAlias = dict[str, Any]

# Stands where Gemini wants a user's turn and the history has none.
NOTHING_SAID = "Continue."


def build_request(request: ModelRequest, origin: str) -> dict[str, Any]:
    """Build the body of a request.

    Args:
        request: What is asked. Settings have the names that all connections share (`max_tokens`,
            `temperature`, `top_p`, `stop`, `tool_choice` …) or Gemini's own, in either spelling.
        origin: The service and model that signatures must come from to be sent back.

    Returns:
        The body; every text and value in it has a JSON form.

    Raises:
        DefinitionError: A tool's schema refers to itself; tool and path are named.
    """
    turns = answered_turns(request.messages)
    body: dict[str, Any] = {"contents": _contents(turns, origin, needs_signatures(request.model))}
    told = [
        {"text": clean_text(turn.message.text)}
        for turn in turns
        if turn.message.role in ("system", "developer") and turn.message.text
    ]
    if told:
        body["systemInstruction"] = {"parts": told}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(t) for t in request.tools]}]
    body.update(generation_of(request.settings, model=request.model, has_tools=bool(request.tools)))
    return body


def _contents(turns: Sequence[HistoryTurn], origin: str, is_strict: bool) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []

    def add(role: str, parts: list[Part]) -> None:
        if not parts:
            return
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"].extend(parts)
        else:
            if not contents and role == "model":
                add("user", [{"text": NOTHING_SAID}])
            contents.append({"role": role, "parts": parts})

    last_asked = max((i for i, t in enumerate(turns) if t.message.role == "user"), default=-1)
    for position, turn in enumerate(turns):
        if turn.message.role == "user":
            add("user", _user_parts(turn.message))
        elif turn.message.role == "assistant":
            signs = _signs(turn.message, origin)
            if turn.calls and contents and contents[-1]["role"] == "model":
                # Calls come right after what a user or a tool said, in a turn of their own.
                add("user", [{"text": NOTHING_SAID}])
            # What was before the last question is not checked.
            checks = is_strict and position > last_asked
            add("model", list(_model_parts(turn, signs, checks)))
            ids = [sign.id if sign else None for block, sign in signs if isinstance(block, ToolUse)]
            add("user", [_answer(c, i) for c, i in zip(turn.calls, ids, strict=True)])
    if not contents or contents[-1]["role"] == "model":
        add("user", [{"text": NOTHING_SAID}])
    return contents


def _signs(message: Message, origin: str) -> list[tuple[Any, Signed | None]]:
    """Pair each block of a message with what its service signed it with."""
    pairs: list[tuple[Any, Signed | None]] = []
    waiting: Signed | None = None
    for block in message.content:
        sign = signed_of(block, origin) if isinstance(block, Reasoning) else None
        if sign is not None and sign.is_for_next:
            waiting = sign
        elif isinstance(block, Reasoning):
            pairs.append((block, sign))
        else:
            pairs.append((block, waiting))
            waiting = None
    return pairs


def _model_parts(
    turn: HistoryTurn, signs: list[tuple[Any, Signed | None]], checks: bool
) -> Iterator[Part]:
    is_first_call = True
    for block, sign in signs:
        part: Part | None = None
        if isinstance(block, Text) and block.text:
            part = {"text": clean_text(block.text)}
        elif isinstance(block, Reasoning) and sign is not None:
            part = {"text": clean_text(block.text)}
            if sign.is_thought:
                part["thought"] = True
        elif isinstance(block, ToolUse):
            part = _call(block, sign)
            if is_first_call and checks and not (sign and sign.signature):
                # Another model's call, or one of a run before: Gemini 3 wants to be told so.
                part["thoughtSignature"] = SKIP_CHECK
            is_first_call = False
        if part is None:
            continue
        if sign is not None and sign.signature:
            part["thoughtSignature"] = sign.signature
        yield part


def _call(use: ToolUse, sign: Signed | None) -> Part:
    call: dict[str, Any] = {
        "name": letter_first_name(use.name),
        "args": json.loads(replay_arguments(use)),
    }
    if sign is not None and sign.id:
        call["id"] = sign.id
    return {"functionCall": call}


def _answer(call: AnsweredCall, id_: str | None) -> Part:
    # A text, whatever it holds: Gemini takes keys such as $ref inside an answer for its own.
    is_error = call.result is None or call.result.status == "error"
    answer: dict[str, Any] = {
        "name": letter_first_name(call.use.name),
        "response": {"error" if is_error else "output": clean_text(call.content)},
    }
    if id_:
        answer["id"] = id_
    return {"functionResponse": answer}


def _user_parts(message: Message) -> list[Part]:
    parts: list[Part] = []
    for block in message.content:
        if isinstance(block, Text):
            if block.text:
                parts.append({"text": clean_text(block.text)})
        elif isinstance(block, Image):
            parts.append(_inline(block.media_type, block.data))
        elif isinstance(block, Document):
            parts.extend(_document(block))
    return parts


def _document(document: Document) -> Iterator[Part]:
    text = document_text(document)
    if text is not None:
        yield {"text": text}
        return
    yield {"text": f"Document {clean_text(document.name)}:"}
    yield _inline(document.media_type, document.data)


def _inline(media_type: str, data: bytes) -> Part:
    return {"inlineData": {"mimeType": clean_text(media_type), "data": base64_text(data)}}


def _declaration(spec: ToolSpec) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": letter_first_name(spec.name),
        "description": clean_text(spec.description),
    }
    schema = gemini_schema(spec.input_schema, f"tool {spec.name!r}")
    if schema is not None:
        found["parameters"] = schema
    return found
