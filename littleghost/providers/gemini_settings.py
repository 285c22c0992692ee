"""Turns the settings of a request into Gemini's: generationConfig, toolConfig and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from littleghost.providers.gemini_signatures import needs_signatures
from littleghost.providers.schema_gemini import gemini_schema
from littleghost.providers.tool_names import letter_first_name
from littleghost.providers.wire_text import clean_json

# Built from the request itself, or without a meaning for Gemini.
_OWN_FIELDS = frozenset(
    {"model", "messages", "contents", "tools", "systemInstruction", "stream", "streamOptions"}
)
_IGNORED = frozenset({"parallelToolCalls", "user", "store", "metadata"})
_NAMES = {
    "maxTokens": "maxOutputTokens",
    "maxCompletionTokens": "maxOutputTokens",
    "stop": "stopSequences",
    "n": "candidateCount",
}
_TOP_LEVEL = frozenset({"safetySettings", "cachedContent", "labels", "toolConfig"})
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "any": "ANY"}
# Tokens, as Google's own OpenAI-like endpoint has them.
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


def generation_of(settings: Mapping[str, Any], *, model: str, has_tools: bool) -> dict[str, Any]:
    """Give the fields of the body that settings decide.

    Args:
        settings: By the names that all connections share, or Gemini's own in either spelling.
        model: The model's id.
        has_tools: Whether tools are offered; a tool choice means nothing otherwise.
    """
    body: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for given, value in settings.items():
        name = _camel(given)
        name = _NAMES.get(name, name)
        if value is None or name in _OWN_FIELDS or name in _IGNORED:
            continue
        if name == "toolChoice":
            if has_tools:
                body["toolConfig"] = {"functionCallingConfig": _tool_choice(value)}
        elif name == "reasoningEffort":
            config["thinkingConfig"] = {**_effort(value, model), **config.get("thinkingConfig", {})}
        elif name == "responseFormat":
            config.update(_response_format(value))
        elif name == "generationConfig" and isinstance(value, Mapping):
            config.update(clean_json(value))
        elif name == "stopSequences":
            config[name] = clean_json([value] if isinstance(value, str) else value)
        elif name in _TOP_LEVEL:
            body[name] = clean_json(value)
        else:
            config[name] = clean_json(value)
    if config:
        body["generationConfig"] = config
    return body


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _tool_choice(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        # The form of OpenAI: {"type": "function", "function": {"name": …}}.
        function: object = cast("Mapping[str, Any]", value).get("function")
        name: object = cast("Mapping[str, Any]", function or value).get("name")
        value = name if isinstance(name, str) else "auto"
    word = str(value)
    if word in _MODES:
        return {"mode": _MODES[word]}
    return {"mode": "ANY", "allowedFunctionNames": [letter_first_name(word)]}


def _effort(value: object, model: str) -> dict[str, Any]:
    word = str(value).lower()
    if needs_signatures(model):
        return {"thinkingLevel": "minimal" if word == "none" else word}
    return {"thinkingBudget": _BUDGETS[word]} if word in _BUDGETS else {}


def _response_format(value: object) -> dict[str, Any]:
    asked = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    if asked.get("type") not in ("json_object", "json_schema"):
        return {}
    config: dict[str, Any] = {"responseMimeType": "application/json"}
    wrapped = asked.get("json_schema")
    schema = cast("Mapping[str, Any]", wrapped).get("schema") if wrapped else None
    if isinstance(schema, Mapping):
        found = gemini_schema(cast("Mapping[str, Any]", schema), "response_format")
        if found is not None:
            config["responseSchema"] = found
    return config
