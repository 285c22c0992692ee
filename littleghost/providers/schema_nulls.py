"""Where a schema allows null, and which nulls of a model mean that a property is absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from littleghost.providers.schema_parts import (
    MAX_DEPTH,
    Schema,
    as_schema,
    list_of,
    look_up,
    reference_of,
    schemas_in,
)


def without_strict_nulls(value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Leave out the nulls that strict mode made the model write for absent properties.

    Args:
        value: The model's arguments.
        schema: The original schema.

    Returns:
        A copy without properties that are null, optional, and may not be null by themselves.
        Inside of alternatives only what is the same in all of them is looked at.
    """
    return cast("dict[str, Any]", _relaxed(value, schema, schema, 0))


def takes_null(schema: Schema, root: Schema, depth: int) -> bool:
    """Say whether a schema allows null."""
    if depth > MAX_DEPTH:
        return False
    reference = reference_of(schema)
    if reference is not None:
        return takes_null(as_schema(look_up(root, reference, "schema", ())), root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        forms = list_of(schema.get(keyword))
        if forms:
            return any(takes_null(as_schema(form), root, depth + 1) for form in forms)
    if "const" in schema:
        return schema["const"] is None
    values = list_of(schema.get("enum"))
    if values:
        return None in values
    types = schema.get("type")
    return types == "null" or "null" in list_of(types) or types is None


def _relaxed(value: object, schema: Schema, root: Schema, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return value
    while (reference := reference_of(schema)) is not None and depth <= MAX_DEPTH:
        depth += 1
        schema = as_schema(look_up(root, reference, "schema", ()))
    if isinstance(value, Mapping):
        properties = dict(schemas_in(schema.get("properties")))
        required = list_of(schema.get("required"))
        found: dict[str, Any] = {}
        for name, item in cast("Mapping[str, Any]", value).items():
            part = as_schema(properties.get(name))
            is_made_up = item is None and name in properties and name not in required
            if not (is_made_up and not takes_null(part, root, 0)):
                found[name] = _relaxed(item, part, root, depth + 1)
        return found
    if isinstance(value, list):
        items = as_schema(schema.get("items"))
        return [_relaxed(item, items, root, depth + 1) for item in cast("list[Any]", value)]
    return value
