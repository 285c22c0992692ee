"""Says whether a tool's schema may be sent in OpenAI's strict mode, where arguments are enforced.

Pure. Strict mode takes a small part of JSON Schema: objects are closed and all their properties
required. A schema that means anything else is sent as it is, without strict mode: nothing is
made nullable, so what a model may leave out stays what it may leave out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

# Limits of the service.
_MAX_DEPTH = 10
_MAX_PROPERTIES = 5_000
_MAX_ENUM = 1_000
_PLAIN = frozenset(
    {
        "title",
        "description",
        "enum",
        "const",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    }
)
_KNOWN = _PLAIN | {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "format",
    "$ref",
    "$defs",
}
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_REFUSED = "strict mode does not take this"
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the schema in the form that strict mode wants.

    Args:
        schema: A tool's input schema, already plain JSON.

    Returns:
        The same schema with its objects closed where it did not say; None when strict mode does
        not know a keyword of it, or an object in it is open or has an optional property.
    """
    if schema.get("type") != "object" or "anyOf" in schema:
        return None
    defs: object = schema.get("$defs", {})
    if not isinstance(defs, Mapping):
        return None
    try:
        return _Closing(cast("Mapping[str, Any]", defs)).close(schema, 0)
    except (ValueError, TypeError, AttributeError):
        return None


class _Closing:
    def __init__(self, defs: Mapping[str, Any]) -> None:
        self._defs = defs
        self._properties = 0

    def close(self, node: object, depth: int) -> dict[str, Any]:
        if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
            raise ValueError(_REFUSED)
        node = cast("Mapping[str, Any]", node)
        if not _KNOWN.issuperset(node) or ("$defs" in node and depth):
            raise ValueError(_REFUSED)
        if "$ref" in node:
            return self._ref(node)
        types = _types(node)
        if not types and not ("anyOf" in node or "enum" in node or "const" in node):
            raise ValueError(_REFUSED)
        if "format" in node and node["format"] not in _FORMATS:
            raise ValueError(_REFUSED)
        if "enum" in node and not 0 < len(node["enum"]) <= _MAX_ENUM:
            raise ValueError(_REFUSED)
        closed = dict(node)
        if "anyOf" in node:
            closed["anyOf"] = [self.close(branch, depth) for branch in node["anyOf"]]
        if "object" in types:
            self._close_object(closed, depth)
        elif "properties" in node or "additionalProperties" in node or "required" in node:
            raise ValueError(_REFUSED)
        if "array" in types or "items" in node:
            closed["items"] = self.close(node.get("items"), depth + 1)
        if "$defs" in node:
            closed["$defs"] = {name: self.close(item, 1) for name, item in self._defs.items()}
        return closed

    def _close_object(self, node: dict[str, Any], depth: int) -> None:
        properties: object = node.get("properties")
        if not isinstance(properties, Mapping) or node.get("additionalProperties", False):
            raise ValueError(_REFUSED)
        properties = cast("Mapping[str, Any]", properties)
        self._properties += len(properties)
        required: list[str] = node.get("required", [])
        if set(required) != set(properties) or self._properties > _MAX_PROPERTIES:
            raise ValueError(_REFUSED)
        node["properties"] = {
            name: self.close(item, depth + 1) for name, item in properties.items()
        }
        node["required"] = list(properties)
        node["additionalProperties"] = False

    def _ref(self, node: Mapping[str, Any]) -> dict[str, Any]:
        target: object = node["$ref"]
        known = {"#", *(f"#/$defs/{name}" for name in self._defs)}
        # The service refuses a reference that has company.
        if len(node) > 1 or target not in known:
            raise ValueError(_REFUSED)
        return dict(node)


def _types(node: Mapping[str, Any]) -> list[str]:
    found: object = node.get("type", [])
    types = [found] if isinstance(found, str) else found
    names = cast("list[str]", types)
    if not isinstance(types, list) or any(name not in _TYPES for name in names):
        raise ValueError(_REFUSED)
    return names
