"""What one schema says by itself in Gemini's subset: its type, its bounds, and hints in words."""

from __future__ import annotations

import json
from typing import Any

from littleghost.providers.schema_parts import Schema, list_of
from littleghost.providers.wire_text import clean_json

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_KEPT: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_HINTED = ("pattern", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems")
# What betrays the type of a schema that does not say it.
_SIGNS = (
    ("object", ("properties", "additionalProperties", "required", "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


def begin(schema: Schema, kind: str) -> dict[str, Any]:
    """Start the converted schema of a type with the bounds that Gemini knows."""
    node: dict[str, Any] = {"type": kind.upper()}
    if schema.get("nullable") is True:
        node["nullable"] = True
    for name in _KEPT.get(kind, ()):
        value = schema.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            node[name] = value
    return node


def hints_of(schema: Schema) -> list[str]:
    """Say in words what Gemini has no keyword for."""
    return [f"{name}: {in_words(schema[name])}" for name in _HINTED if name in schema]


def describe(node: dict[str, Any], schema: Schema, hints: list[str]) -> dict[str, Any]:
    """Add the description, with the hints after it."""
    told = schema.get("description")
    words = [told] if isinstance(told, str) and told else []
    if hints:
        words.append(f"({'; '.join(hints)})")
    if words:
        node["description"] = " ".join(words)
    return node


def type_of(schema: Schema, values: list[Any]) -> str:
    """Find a schema's type; `values` are those it allows, if it lists them."""
    named = schema.get("type")
    if isinstance(named, str) and named in _TYPES:
        return named
    found = next((kind for kind in map(kind_of, values) if kind != "null"), None)
    if found is not None:
        return found
    for kind, signs in _SIGNS:
        if any(sign in schema for sign in signs):
            return kind
    # Gemini wants a type; what fits least badly to "anything" is text.
    return "string"


def is_null(schema: Schema) -> bool:
    """Say whether a schema allows null and nothing else."""
    values = [schema["const"]] if "const" in schema else list_of(schema.get("enum"))
    only_null = bool(values) and all(value is None for value in values)
    return schema.get("type") == "null" or (only_null and "type" not in schema)


def kind_of(value: object) -> str:
    """Name the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return "array" if isinstance(value, list | tuple) else "object"


def in_words(value: object) -> str:
    """Write a value for a description."""
    return json.dumps(clean_json(value), ensure_ascii=False)
