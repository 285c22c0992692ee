"""A scripted stand-in for a model: no account, no network, the same answers every time.

It reads the conversation as a model would: it calls the offered tools whose arguments it can find
in the question, and then answers from their results. It understands nothing. A process that brings
its own Redis and has no model configured uses it, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from littleghost.messages import Message, ToolResult
from littleghost.providers.base import ModelRequest, ToolSpec
from littleghost.providers.registry import Models
from littleghost.providers.scripted import Call, Reply, ScriptedProvider

CONNECTION = "offline"
STAND_IN = f"{CONNECTION}:stand-in"
# So that its words can be watched as they come.
CHUNK_CHARS = 6
CHUNK_DELAY_S = 0.025
_NUMBER = re.compile(r"\d{2,}")
_WORD = re.compile(r"[a-z]{4,}")


def connect_stand_in(models: Models) -> None:
    """Make the connection that `STAND_IN` names."""
    models.connect(CONNECTION, ScriptedProvider(reply))


def reply(request: ModelRequest) -> Reply:
    """Answer a request from nothing but the request."""
    question, results = _since_question(request.messages)
    if results:
        return spoken(" ".join(_facts(results)))
    calls = [
        Call(spec.name, arguments)
        for spec in request.tools
        if (arguments := _arguments(spec, question)) is not None
    ]
    if calls:
        names = " and ".join(call.name.replace("_", " ") for call in calls)
        return spoken(f"Let me check: {names}.", calls)
    tools = ", ".join(spec.name for spec in request.tools) or "none"
    return spoken(
        "I am a scripted stand-in for a model and found nothing in that to call a tool with "
        f"(tools: {tools}). Ask me about an order number or a help topic."
    )


def spoken(text: str, calls: Sequence[Call] = ()) -> Reply:
    """Make an answer whose words come one after another, as a model's do."""
    return Reply(
        text=text,
        tool_calls=calls,
        delay_s=0.2,
        chunk_chars=CHUNK_CHARS,
        chunk_delay_s=CHUNK_DELAY_S,
    )


def _since_question(messages: Sequence[Message]) -> tuple[str, list[ToolResult]]:
    """Give the last thing a user said, and the tool results that came after it."""
    question, results = "", list[ToolResult]()
    for message in messages:
        if message.role == "user":
            question, results = message.text, []
        results += [block for block in message.content if isinstance(block, ToolResult)]
    return question, results


def _facts(results: Sequence[ToolResult]) -> Iterator[str]:
    for result in results:
        text = result.content.strip()
        yield text if result.status == "success" else f"I could not find that out: {text}"


def _arguments(spec: ToolSpec, question: str) -> dict[str, Any] | None:
    """Find a tool's required arguments in the question; None when one is not there."""
    schema = spec.input_schema
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties") or {})
    found: dict[str, Any] = {}
    for name in cast("Sequence[str]", schema.get("required") or list(properties)):
        value = _value(properties.get(name, {}), question)
        if value is None:
            return None
        found[name] = value
    return found or None


def _value(schema: Mapping[str, Any], question: str) -> Any:
    """Find one value: a choice whose word is mentioned, or a number."""
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    if choices:
        words = _WORD.findall(question.lower())
        return next((choice for choice in choices if _is_mentioned(str(choice), words)), None)
    number = _NUMBER.search(question)
    if number is None:
        return None
    if schema.get("type") in ("integer", "number"):
        return int(number[0])
    return number[0] if schema.get("type", "string") == "string" else None


def _is_mentioned(choice: str, words: Sequence[str]) -> bool:
    stem = choice.lower().rstrip("s")
    return any(word.startswith(stem) or stem.startswith(word.rstrip("s")) for word in words)
