"""Builds the body of an Anthropic request from messages, tools and settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from littleghost.errors import InvalidRequestError
from littleghost.providers.anthropic_history import render_messages
from littleghost.providers.base import ModelRequest, ToolSpec
from littleghost.providers.profiles import Profile
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import clean_json, clean_text

# Tokens of the longest answer when nobody says; thinking counts. Every model takes it.
DEFAULT_MAX_TOKENS = 32_000
# Tokens left for the answer beside a thinking budget.
_BESIDE_THINKING = 8_000
# Set by the adapter itself.
_OWN_FIELDS = frozenset({"model", "messages", "system", "tools", "stream"})
# Read by name below; all other settings are passed on.
_READ_SETTINGS = frozenset(
    {
        "max_tokens",
        "max_completion_tokens",
        "tool_choice",
        "parallel_tool_calls",
        "stop",
        "stop_sequences",
        "thinking",
        "cache",
    }
)


def build_request(request: ModelRequest, profile: Profile) -> dict[str, Any]:
    """Build the body of a streaming request.

    Args:
        request: What is asked. Settings are passed on by their names, except that None is left
            out and these mean the same as elsewhere: `max_tokens` (has a default), `tool_choice`
            (`"auto"`, `"none"`, `"required"`, a tool's name, or the service's own object),
            `parallel_tool_calls`, `stop` (text or a list). `thinking` is a budget in tokens, True
            (the model decides), False, or the service's own object. `cache` (True, "5m" or "1h")
            marks tools, system prompt and conversation to be cached.
        profile: The service's habits.

    Returns:
        The body; every text and value in it has a JSON form.

    Raises:
        InvalidRequestError: `cache` or `thinking` is none of these.
    """
    given = {name: value for name, value in request.settings.items() if value is not None}
    system, messages = render_messages(request.messages, reasoning_origin(profile, request.model))
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    if system:
        body["system"] = system
    body.update(_tools(request.tools, messages, given))
    thinking = _thinking(given.get("thinking"))
    if thinking is not None and not _lacks_thinking(thinking, messages):
        body["thinking"] = thinking
    body["max_tokens"] = _max_tokens(given, thinking)
    stops = _stop_sequences(given.get("stop_sequences", given.get("stop")))
    if stops:
        body["stop_sequences"] = stops
    for name, value in given.items():
        if name not in _OWN_FIELDS and name not in _READ_SETTINGS:
            body[name] = clean_json(value)
    if given.get("cache"):
        _mark(body, given["cache"])
    body["stream"] = True
    return body


def reasoning_origin(profile: Profile, model: str) -> str:
    """Name the model that reasoning belongs to: only that one gets it back."""
    return f"{profile.name}:{model}"


def _tools(
    specs: Sequence[ToolSpec], messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any]
) -> dict[str, Any]:
    if not specs:
        # A conversation with calls needs its tools declared, though none may be called now.
        names = {block["name"]: None for block in _blocks(messages) if block["type"] == "tool_use"}
        if not names:
            return {}
        gone = [{"name": name, "input_schema": {"type": "object"}} for name in names]
        return {"tools": gone, "tool_choice": {"type": "none"}}
    fields: dict[str, Any] = {"tools": [_tool(spec) for spec in specs]}
    choice = _tool_choice(given.get("tool_choice"))
    if given.get("parallel_tool_calls") is False:
        choice = choice or {"type": "auto"}
        if choice.get("type") != "none":
            choice["disable_parallel_tool_use"] = True
    if choice:
        fields["tool_choice"] = choice
    return fields


def _tool(spec: ToolSpec) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": wire_name(spec.name)}
    description = clean_text(spec.description)
    if description.strip():
        tool["description"] = description
    tool["input_schema"] = {"type": "object", **clean_json(spec.input_schema)}
    return tool


def _tool_choice(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return clean_json(cast("Mapping[str, Any]", value))
    if not isinstance(value, str) or not value:
        return {}
    if value in ("auto", "none"):
        return {"type": value}
    if value in ("required", "any"):
        return {"type": "any"}
    return {"type": "tool", "name": wire_name(value)}


def _thinking(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return {"type": "adaptive" if value else "disabled"}
    if isinstance(value, int):
        return {"type": "enabled", "budget_tokens": value}
    if isinstance(value, Mapping):
        return clean_json(cast("Mapping[str, Any]", value))
    raise InvalidRequestError(
        f"the setting 'thinking' is {value!r}: use True, False, a budget in tokens, or an object"
    )


def _lacks_thinking(thinking: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a call is being answered that was made without thinking.

    With a budget the service refuses such a request, for example when a role has got another
    model while the run went on; the thinking begins with the next turn of the user.
    """
    if thinking.get("type") != "enabled" or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking")


def _max_tokens(given: Mapping[str, Any], thinking: Mapping[str, Any] | None) -> Any:
    asked = given.get("max_tokens", given.get("max_completion_tokens"))
    if asked is not None:
        return clean_json(asked)
    budget = (thinking or {}).get("budget_tokens")
    if isinstance(budget, int):
        return max(DEFAULT_MAX_TOKENS, budget + _BESIDE_THINKING)
    return DEFAULT_MAX_TOKENS


def _stop_sequences(value: object) -> list[str]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, Sequence):
        return []
    texts = (clean_text(item) for item in cast("Sequence[object]", items) if isinstance(item, str))
    # A blank one is refused.
    return [text for text in texts if text.strip()]


def _mark(body: dict[str, Any], cache: object) -> None:
    """Mark the ends of what repeats: the tools, the system prompt, the conversation so far.

    The user's message before the last is where the request before this one had its mark: the
    service looks back a few blocks only, and a turn may have more results than that.
    """
    if cache is not True and cache not in ("5m", "1h"):
        raise InvalidRequestError(f"the setting 'cache' is {cache!r}: use True, '5m' or '1h'")
    marker: dict[str, Any] = {"type": "ephemeral"}
    if cache is not True:
        marker["ttl"] = cache
    said = [message["content"] for message in body["messages"][-3:] if message["role"] == "user"]
    for part in (body.get("tools"), body.get("system"), *said):
        if part:
            part[-1]["cache_control"] = dict(marker)


def _blocks(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [block for message in messages for block in message["content"]]
