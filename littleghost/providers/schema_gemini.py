"""Turns JSON Schemas into the subset that Gemini's function declarations take.

What the subset cannot say becomes a hint in the description, or is left out: a call's arguments
are checked against the original schema before the tool runs, and the model is told what is wrong.

Source: https://ai.google.dev/api/caching#Schema
"""

from __future__ import annotations

from typing import Any

from littleghost.providers.schema_leaves import (
    begin,
    describe,
    hints_of,
    in_words,
    is_null,
    kind_of,
    type_of,
)
from littleghost.providers.schema_parts import (
    MAX_DEPTH,
    MAX_NODES,
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


def gemini_schema(schema: Schema, owner: str) -> dict[str, Any] | None:
    """Convert the schema of a tool's input, or of a result.

    Args:
        schema: A JSON Schema that describes an object.
        owner: Whose it is, for the message.

    Returns:
        The converted schema; None when it names no property, which Gemini writes as no schema.

    Raises:
        DefinitionError: It refers to itself, which Gemini cannot say, or is far too large; the
            message names the path.
    """
    found = _Conversion(schema, owner).root()
    return clean_json(found) if found.get("properties") else None


class _Conversion:
    """The conversion of one schema."""

    def __init__(self, root: Schema, owner: str) -> None:
        self._root = root
        self._owner = owner
        self._nodes = 0

    def root(self) -> dict[str, Any]:
        schema, refs = self._plain(self._root, (), ())
        names = [name for name in ("anyOf", "oneOf") if list_of(schema.get(name))]
        if names:
            # The root must be one object: offer what any of its forms offers.
            forms = [self._plain(part, refs, (names[0],))[0] for part in list_of(schema[names[0]])]
            base = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            offered: dict[str, Any] = {}
            for form in forms:
                offered.update(schemas_in(form.get("properties")))
            common = [set(list_of(form.get("required"))) for form in forms]
            needed = set.intersection(*common) if common else set[Any]()
            schema = merged({"properties": offered, "required": sorted(needed, key=str)}, base)
        return self._object({**schema, "type": "object"}, (), refs)

    def node(self, value: object, path: Path, refs: tuple[str, ...]) -> dict[str, Any]:
        schema, refs = self._plain(value, refs, path)
        forms = self._forms(schema, refs, path)
        if forms is not None:
            return self._any_of(forms, path)
        return self._one(schema, path, refs)

    def _plain(
        self, value: object, refs: tuple[str, ...], path: Path
    ) -> tuple[Schema, tuple[str, ...]]:
        """Inline the reference that a schema is, and what stands in its allOf."""
        self._nodes += 1
        if self._nodes > MAX_NODES or len(path) > 2 * MAX_DEPTH:
            refuse(self._owner, path, "is too large or too deep once its references are inlined")
        schema = as_schema(value)
        while (reference := reference_of(schema)) is not None:
            if reference in refs or reference == "#":
                refuse(
                    self._owner,
                    path,
                    f"refers to itself ({reference}): Gemini takes no recursive schema. "
                    "Limit the depth, or take the nested value as JSON text",
                )
            refs = (*refs, reference)
            target = as_schema(look_up(self._root, reference, self._owner, path))
            beside = {key: item for key, item in schema.items() if key != "$ref"}
            schema = merged(target, beside)
        parts = list_of(schema.get("allOf"))
        if parts:
            base: Schema = {key: item for key, item in schema.items() if key != "allOf"}
            both: Schema = {}
            used = refs
            for part in parts:
                plain, of_part = self._plain(part, refs, path)
                both = merged(both, plain)
                used = (*used, *of_part[len(refs) :])
            return self._plain(merged(both, base), used, path)
        return schema, refs

    def _forms(
        self, schema: Schema, refs: tuple[str, ...], path: Path
    ) -> list[tuple[Schema, tuple[str, ...]]] | None:
        """Give the alternatives a schema has, each with all that holds beside them; or None."""
        keyword = next((key for key in ("anyOf", "oneOf") if list_of(schema.get(key))), None)
        if keyword is not None:
            base = {key: item for key, item in schema.items() if key not in ("anyOf", "oneOf")}
            plain = [self._plain(part, refs, path) for part in list_of(schema[keyword])]
            if base.get("properties") and not any(p.get("properties") for p, _ in plain):
                # They only say which properties go together.
                return [(base, refs)]
            return [(merged(base, part), used) for part, used in plain]
        types = schema.get("type")
        if isinstance(types, list | tuple):
            return [({**schema, "type": name}, refs) for name in list_of(types)]
        values = [schema["const"]] if "const" in schema else list_of(schema.get("enum"))
        kinds = list(dict.fromkeys(map(kind_of, values)))
        if len(kinds) > 1 and not schema.get("type"):
            base = {key: item for key, item in schema.items() if key != "const"}
            return [
                ({**base, "type": kind, "enum": [v for v in values if kind_of(v) == kind]}, refs)
                for kind in kinds
            ]
        return None

    def _any_of(self, forms: list[tuple[Schema, tuple[str, ...]]], path: Path) -> dict[str, Any]:
        wanted = [(form, refs) for form, refs in forms if not is_null(form)]
        nodes = [self.node(form, path, refs) for form, refs in wanted] or [{"type": "STRING"}]
        if len(wanted) < len(forms):
            for node in nodes:
                for branch in node.get("anyOf", [node]):
                    branch["nullable"] = True
        # Gemini takes no other keyword beside anyOf, and no anyOf right inside another.
        flat = [branch for node in nodes for branch in node.get("anyOf", [node])]
        distinct: list[dict[str, Any]] = []
        for node in flat:
            if node not in distinct:
                distinct.append(node)
        return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}

    def _one(self, schema: Schema, path: Path, refs: tuple[str, ...]) -> dict[str, Any]:
        values = [schema["const"]] if "const" in schema else list_of(schema.get("enum"))
        kind = type_of(schema, values)
        if kind == "object":
            return self._object(schema, path, refs)
        node = begin(schema, kind)
        hints = hints_of(schema)
        allowed = [value for value in values if value is not None]
        if len(allowed) < len(values):
            node["nullable"] = True
        if allowed and kind == "string" and all(isinstance(v, str) and v for v in allowed):
            node["enum"] = list(dict.fromkeys(allowed))
        elif allowed:
            hints.append(f"one of: {', '.join(map(in_words, allowed))}")
        if kind == "string" and schema.get("format") in ("date-time", "enum"):
            node["format"] = schema["format"]
        elif isinstance(schema.get("format"), str):
            hints.append(f"format: {schema['format']}")
        if kind == "array":
            node["items"] = self._items(schema, path, refs)
        return describe(node, schema, hints)

    def _items(self, schema: Schema, path: Path, refs: tuple[str, ...]) -> dict[str, Any]:
        items = schema.get("items")
        places = list_of(schema.get("prefixItems")) or list_of(items)
        if places:
            return self.node({"anyOf": places}, (*path, "items"), refs)
        return self.node(items, (*path, "items"), refs)

    def _object(self, schema: Schema, path: Path, refs: tuple[str, ...]) -> dict[str, Any]:
        node = begin(schema, "object")
        properties = {
            name: self.node(part, (*path, "properties", name), refs)
            for name, part in schemas_in(schema.get("properties"))
            if part is not False
        }
        hints = hints_of(schema)
        further = schema.get("additionalProperties")
        if as_schema(further):
            kind = type_of(as_schema(further), [])
            hints.append(f"further keys are free, with values of type {kind}")
        if properties:
            node["properties"] = properties
            required = [name for name in list_of(schema.get("required")) if name in properties]
            if required:
                node["required"] = required
        return describe(node, schema, hints)
