"""What the conversions of JSON Schemas share: references, merging, and the refusal with a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, cast
from urllib.parse import unquote

from littleghost.errors import DefinitionError
from littleghost.json_walk import path_text

Schema: TypeAlias = Mapping[str, Any]
Path: TypeAlias = tuple[str | int, ...]

# Beyond this a schema is a mistake, or inlining its references makes it explode.
MAX_NODES = 5_000
MAX_DEPTH = 32
DEFINITIONS = ("$defs", "definitions")


def refuse(owner: str, path: Path, why: str) -> NoReturn:
    """Raise the error for a place in a schema that has no form in a dialect."""
    raise DefinitionError(f"{owner}: the schema at {path_text(list(path))} {why}")


def as_schema(value: object) -> Schema:
    """Give a subschema that is an object; every other is taken for one that allows anything."""
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def schemas_in(value: object) -> Iterator[tuple[str, object]]:
    """Go through a mapping of names to schemas; what is none has no entries."""
    if isinstance(value, Mapping):
        yield from cast("Mapping[str, object]", value).items()


def list_of(value: object) -> list[Any]:
    """Give a list, [] for anything else."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else []


def reference_of(schema: Schema) -> str | None:
    """Give the reference that a schema is, if it is one; a property called $ref is none."""
    found = schema.get("$ref")
    return found if isinstance(found, str) else None


def look_up(root: Schema, reference: str, owner: str, path: Path) -> object:
    """Find what a reference means.

    Args:
        root: The whole schema.
        reference: "#", or "#/…" as in JSON Pointer.
        owner: Whose schema it is, for the message.
        path: Where the reference stands, for the message.

    Raises:
        DefinitionError: It leads to nothing in this schema, or is of another form.
    """
    if reference != "#" and not reference.startswith("#/"):
        refuse(owner, path, f"refers to {reference!r}; only '#/…' can be converted")
    found: Any = root
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and name in found:
            found = cast("Any", found[name])
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):  # pyright: ignore[reportUnknownArgumentType]
            found = cast("Any", found[int(name)])
        else:
            refuse(owner, path, f"refers to {reference!r}, which is not there")
    return cast("object", found)


def merged(base: Schema, over: Schema) -> dict[str, Any]:
    """Put two schemas that must both hold into one, as far as their keywords allow.

    `over` wins, but properties and required names of both count.
    """
    result = {**base, **over}
    if isinstance(base.get("properties"), Mapping) and isinstance(over.get("properties"), Mapping):
        both: dict[str, Any] = dict(base["properties"])
        for name, schema in over["properties"].items():
            both[name] = {"allOf": [both[name], schema]} if name in both else schema
        result["properties"] = both
    names = [*list_of(base.get("required")), *list_of(over.get("required"))]
    if names:
        result["required"] = list(dict.fromkeys(name for name in names if isinstance(name, str)))
    return result
