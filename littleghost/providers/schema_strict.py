"""Turns JSON Schemas into the form that OpenAI's strict mode takes, with nothing left open.

Strict mode wants every object closed and every property required; an optional one becomes
nullable. A schema that cannot be said so is refused with the path, and is then sent without it.

Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
"""

from __future__ import annotations

from typing import Any, cast

from littleghost.errors import DefinitionError
from littleghost.providers.schema_nulls import takes_null
from littleghost.providers.schema_parts import (
    DEFINITIONS,
    MAX_DEPTH,
    Path,
    Schema,
    as_schema,
    list_of,
    look_up,
    merged,
    reference_of,
    refuse,
    schemas_in,
)
from littleghost.providers.wire_text import clean_json

_KEPT = (
    "type",
    "description",
    "enum",
    "const",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
)
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_ANNOTATIONS = frozenset({"description"})
_REFUSED = ("not", "if", "dependentRequired", "dependentSchemas", "patternProperties")


def strict_schema(schema: Schema, owner: str) -> dict[str, Any]:
    """Convert a schema for strict mode.

    Args:
        schema: A JSON Schema that describes an object.
        owner: Whose it is, for the message.

    Returns:
        A schema in which each object, at every depth, has `additionalProperties: false` and
        requires all its properties. Bounds that strict mode does not know are left out.

    Raises:
        DefinitionError: It allows what strict mode cannot, such as free keys; the message names
            the path.
    """
    if list_of(schema.get("anyOf")) or list_of(schema.get("oneOf")):
        refuse(owner, (), "must be one object, not alternatives, in strict mode")
    if not schema.get("properties") and schema.get("additionalProperties") is None:
        schema = {**schema, "additionalProperties": False}
    return clean_json(_Strict(schema, owner).root())


def strict_or_none(schema: Schema) -> dict[str, Any] | None:
    """Convert a schema for strict mode if that is possible, and give None if it is not."""
    try:
        return strict_schema(schema, "schema")
    except DefinitionError:
        return None


class _Strict:
    """The conversion of one schema."""

    def __init__(self, root: Schema, owner: str) -> None:
        self._root = root
        self._owner = owner

    def root(self) -> dict[str, Any]:
        node = self.node({**self._root, "type": "object"}, ())
        for keyword in DEFINITIONS:
            parts = dict(schemas_in(self._root.get(keyword)))
            if parts:
                node[keyword] = {
                    name: self.node(part, (keyword, name)) for name, part in parts.items()
                }
        return node

    def node(self, value: object, path: Path) -> dict[str, Any]:
        if len(path) > 2 * MAX_DEPTH:
            refuse(self._owner, path, "is nested too deeply")
        schema = as_schema(value)
        for keyword in _REFUSED:
            if schema.get(keyword):
                refuse(self._owner, path, f"uses {keyword!r}, which strict mode does not know")
        if reference_of(schema) is not None:
            return self._reference(schema, path)
        parts = list_of(schema.get("allOf"))
        if parts:
            return self.node(self._joined(schema, parts, path), path)
        node = {name: schema[name] for name in _KEPT if name in schema}
        if schema.get("format") in _FORMATS:
            node["format"] = schema["format"]
        forms = list_of(schema.get("anyOf")) or list_of(schema.get("oneOf"))
        if forms:
            beside = sorted((node.keys() | schema.keys() & {"properties", "items"}) - _ANNOTATIONS)
            if beside:
                refuse(self._owner, path, f"has {beside[0]!r} beside alternatives")
            node["anyOf"] = [self.node(f, (*path, "anyOf", i)) for i, f in enumerate(forms)]
            return node
        self._type(node, schema, path)
        return node

    def _type(self, node: dict[str, Any], schema: Schema, path: Path) -> None:
        """Add what belongs to the schema's type, if that is an object or a list."""
        types = schema.get("type")
        kinds = [types] if isinstance(types, str) else list_of(types)
        if "object" in kinds or "properties" in schema:
            node.setdefault("type", "object")
            self._close(node, schema, path)
        if "array" in kinds or "items" in schema:
            node.setdefault("type", "array")
            if not as_schema(schema.get("items")) or schema.get("prefixItems"):
                refuse(self._owner, path, "is a list whose items are not described by one schema")
            node["items"] = self.node(schema["items"], (*path, "items"))
        if not ({"type", "enum", "const"} & node.keys()):
            refuse(self._owner, path, "allows any value, which strict mode cannot say")

    def _close(self, node: dict[str, Any], schema: Schema, path: Path) -> None:
        properties = dict(schemas_in(schema.get("properties")))
        further = schema.get("additionalProperties")
        if (not properties and further is not False) or as_schema(further):
            refuse(self._owner, path, "is an object with free keys, which strict mode cannot say")
        required = set(list_of(schema.get("required")))
        closed: dict[str, Any] = {}
        for name, part in properties.items():
            inner = self.node(part, (*path, "properties", name))
            closed[name] = inner if name in required else self._nullable(inner)
        node["properties"] = closed
        node["required"] = list(closed)
        node["additionalProperties"] = False

    def _reference(self, schema: Schema, path: Path) -> dict[str, Any]:
        reference = cast("str", reference_of(schema))
        look_up(self._root, reference, self._owner, path)
        if reference != "#" and not reference.startswith(tuple(f"#/{d}/" for d in DEFINITIONS)):
            refuse(self._owner, path, f"refers to {reference!r}; strict mode takes '#/$defs/…'")
        told = schema.get("description")
        # Nothing may stand beside a reference.
        plain = {"$ref": reference}
        return {"anyOf": [plain], "description": told} if told else plain

    def _joined(self, schema: Schema, parts: list[Any], path: Path) -> Schema:
        """Put what stands in an allOf into one schema."""
        base: Schema = {name: item for name, item in schema.items() if name != "allOf"}
        only = as_schema(parts[0]) if len(parts) == 1 else {}
        if reference_of(only) is not None and not base.keys() - {"description"}:
            return {**only, **base}
        taken = 0
        while parts:
            taken += 1
            if taken > MAX_DEPTH:
                refuse(self._owner, path, "has an allOf that refers to itself or is too large")
            found = as_schema(parts.pop(0))
            reference = reference_of(found)
            if reference is not None:
                beside = {name: item for name, item in found.items() if name != "$ref"}
                target = as_schema(look_up(self._root, reference, self._owner, path))
                found = merged(target, beside)
            if reference_of(found) is not None:
                parts.append(found)
                continue
            parts.extend(list_of(found.get("allOf")))
            base = merged({k: v for k, v in found.items() if k != "allOf"}, base)
        return base

    def _nullable(self, node: dict[str, Any]) -> dict[str, Any]:
        if takes_null(node, self._root, 0):
            return node
        if isinstance(node.get("type"), str) and not ({"enum", "const"} & node.keys()):
            return {**node, "type": [node["type"], "null"]}
        if "anyOf" in node:
            return {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}
        inner = {name: item for name, item in node.items() if name != "description"}
        told = {"description": node["description"]} if "description" in node else {}
        return {"anyOf": [inner, {"type": "null"}], **told}
