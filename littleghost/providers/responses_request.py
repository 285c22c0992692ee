"""Builds the body of an OpenAI Responses request: stateless, so that the journal is all there is.

Pure. Settings keep the names they have for the chat dialect where there is one, so that a model
can be changed without changing its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from littleghost.providers.base import ModelRequest, ToolSpec
from littleghost.providers.responses_input import build_input
from littleghost.providers.responses_strict import strict_schema
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import clean_json, clean_text

ENCRYPTED = "reasoning.encrypted_content"
# Set by the adapter itself, or about state that the service would keep.
_OWN_FIELDS = frozenset(
    {
        "model",
        "input",
        "instructions",
        "tools",
        "stream",
        "stream_options",
        "previous_response_id",
        "conversation",
        "background",
    }
)
_TOOL_FIELDS = frozenset({"tool_choice", "parallel_tool_calls", "max_tool_calls"})
_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
# Settings that stand inside another one.
_NESTED = {
    "reasoning_effort": ("reasoning", "effort"),
    "reasoning_summary": ("reasoning", "summary"),
    "verbosity": ("text", "verbosity"),
    "text_verbosity": ("text", "verbosity"),
    "response_format": ("text", "format"),
}
# Models that do not reason answer 400 when they are asked for encrypted reasoning.
_NO_REASONING = ("gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat", "ft:gpt-3", "ft:gpt-4")


def build_request(
    request: ModelRequest, origin: str, *, encrypted_reasoning: bool | None = None
) -> dict[str, Any]:
    """Build the body of a streaming request.

    Args:
        request: What is asked. Its settings are passed on by their names, except that
            `max_tokens`, `reasoning_effort`, `reasoning_summary`, `verbosity` and
            `response_format` are put where this service wants them, `tool_choice` may name a
            tool, and None is left out.
        origin: Whose reasoning is sent back; see `reasoning_origin`.
        encrypted_reasoning: Whether to ask for reasoning that can be sent back; None decides by
            the model's name.

    Returns:
        The body; every text and value in it has a JSON form.
    """
    instructions, items = build_input(request.messages, origin)
    body: dict[str, Any] = {"model": request.model, "input": items}
    if instructions:
        body["instructions"] = instructions
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    for name, value in request.settings.items():
        if value is None or name in _OWN_FIELDS or (name in _TOOL_FIELDS and not request.tools):
            continue
        _put(body, name, value)
    body.setdefault("store", False)
    if encrypted_reasoning is None:
        encrypted_reasoning = not request.model.lower().startswith(_NO_REASONING)
    if encrypted_reasoning:
        asked: object = body.get("include")
        others = cast("list[object]", asked) if isinstance(asked, list) else []
        body["include"] = [*(item for item in others if item != ENCRYPTED), ENCRYPTED]
    body["stream"] = True
    return body


def reasoning_origin(host: str, model: str) -> str:
    """Name the model that reasoning belongs to: only that one, at that service, gets it back."""
    return f"openai_responses:{host}:{model}"


def _put(body: dict[str, Any], name: str, value: object) -> None:
    if name in _NESTED:
        outer, name = _NESTED[name]
        value = _format(value) if name == "format" else value
        _merge(body, outer, {name: clean_json(value)})
    elif name in ("reasoning", "text") and isinstance(value, Mapping):
        _merge(body, name, clean_json(value))
    else:
        value = _tool_choice(value) if name == "tool_choice" else value
        body[_RENAMED.get(name, name)] = clean_json(value)


def _merge(body: dict[str, Any], name: str, more: dict[str, Any]) -> None:
    body[name] = {**body.get(name, {}), **more}


def _format(value: object) -> object:
    """Give the chat dialect's response format in this one, where it is one level flatter."""
    if isinstance(value, Mapping):
        format_ = cast("Mapping[str, Any]", value)
        inner: object = format_.get("json_schema")
        if format_.get("type") == "json_schema" and isinstance(inner, Mapping):
            return {**cast("Mapping[str, Any]", inner), "type": "json_schema"}
    return cast("object", value)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    schema = clean_json(spec.input_schema) or {"type": "object", "properties": {}}
    strict = strict_schema(schema)
    return {
        "type": "function",
        "name": wire_name(spec.name),
        "description": clean_text(spec.description),
        "parameters": schema if strict is None else strict,
        # Said either way: where it is missing, the service makes any schema strict.
        "strict": strict is not None,
    }


def _tool_choice(value: object) -> object:
    if isinstance(value, str):
        named = value not in ("auto", "none", "required")
        return {"type": "function", "name": wire_name(value)} if named else value
    if isinstance(value, Mapping):
        choice = cast("Mapping[str, Any]", value)
        function: object = choice.get("function")
        if isinstance(function, Mapping):
            name = cast("Mapping[str, Any]", function).get("name")
            return {"type": "function", "name": wire_name(str(name))}
    return cast("object", value)
