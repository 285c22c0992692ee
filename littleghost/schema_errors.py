"""What is wrong with a value, in sentences that a model can act on.

Sentences name paths and what the schema wants, never the value, which may be huge or secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from littleghost.json_walk import path_text

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_MAX_LISTED: Final = 200


def describe(error: ValidationError) -> list[str]:
    """Say one validation error.

    Returns:
        Sentences such as `$.city is required`; several when the schema offers alternatives.
    """
    place = path_text(list(error.absolute_path))
    keyword, wanted = cast("Any", error.validator), cast("Any", error.validator_value)
    if keyword is None:  # a schema that is just `false`, of which jsonschema loses the path
        return [f"{place} has a part that is never allowed"]
    if keyword == "required" and isinstance(wanted, list):
        instance = cast("dict[str, Any]", error.instance)
        names = cast("list[str]", wanted)
        return [f"{_below(error, name)} is required" for name in names if name not in instance]
    if keyword in ("anyOf", "oneOf"):
        return _alternatives(error, place)
    write = _SENTENCES.get(keyword)
    if write is None:
        return [f"{place} does not satisfy {keyword!r} of the schema"]
    return [f"{place} {write(wanted)}"]


def _below(error: ValidationError, name: str) -> str:
    return path_text([*error.absolute_path, name])


def _alternatives(error: ValidationError, place: str) -> list[str]:
    parts = error.context or []
    if not parts:
        return [f"{place} matches more than one of the forms that exclude each other"]
    types: list[str] = []
    for part in parts:
        if part.validator != "type" or part.path:
            break
        types.extend(_as_list(part.validator_value))
    else:
        return [f"{place} {_type(types)}"]
    closest = _closest_branch(parts, error)
    lines = [line for part in closest[:10] for line in describe(part)]
    return [
        f"{place} matches none of the allowed forms; the closest one wants: " + ", ".join(lines)
    ]


def _closest_branch(parts: list[ValidationError], error: ValidationError) -> list[ValidationError]:
    """The errors of the alternative that fits best: right kind first, then fewest errors."""
    branches: dict[Any, list[ValidationError]] = {}
    for part in parts:
        # An alternative that is just `false` leaves no path.
        number = part.relative_schema_path[0] if part.relative_schema_path else None
        branches.setdefault(number, []).append(part)
    depth = len(error.absolute_path)

    def misfit(branch: list[ValidationError]) -> tuple[bool, bool, int]:
        wrong_type = any(
            part.validator == "type" and len(part.absolute_path) == depth for part in branch
        )
        # A tag, as discriminated unions have it, says which alternative was meant.
        wrong_tag = any(part.validator in ("const", "enum") for part in branch)
        return wrong_type or not branch[0].validator, wrong_tag, len(branch)

    return min(branches.values(), key=misfit)


def _as_list(wanted: Any) -> list[str]:
    return [wanted] if isinstance(wanted, str) else list(wanted)


def _type(wanted: Any) -> str:
    names = list(dict.fromkeys(_as_list(wanted)))
    if len(names) == 1:
        return f"must be {names[0]}"
    return f"must be {', '.join(names[:-1])} or {names[-1]}"


def _one_of(values: Iterable[Any]) -> str:
    listed = ""
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        if len(listed) + len(text) > _MAX_LISTED:
            return f"must be one of {listed or 'the allowed values'}, …"
        listed += f", {text}" if listed else text
    return f"must be one of {listed}"


def _const(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"must be {text}" if len(text) <= _MAX_LISTED else "must be the one allowed value"


def _count(wanted: int, one: str) -> str:
    noun = one if wanted == 1 else "properties" if one == "property" else one + "s"
    return f"{wanted} {noun}"


def _pattern(wanted: str) -> str:
    shown = wanted if len(wanted) <= _MAX_LISTED else wanted[:_MAX_LISTED] + "…"
    return f"must match the pattern {shown}"


_SENTENCES: dict[str, Callable[[Any], str]] = {
    "type": _type,
    "enum": _one_of,
    "const": _const,
    "pattern": _pattern,
    "minimum": lambda wanted: f"must be at least {wanted}",
    "maximum": lambda wanted: f"must be at most {wanted}",
    "exclusiveMinimum": lambda wanted: f"must be more than {wanted}",
    "exclusiveMaximum": lambda wanted: f"must be less than {wanted}",
    "multipleOf": lambda wanted: f"must be a multiple of {wanted}",
    "minLength": lambda wanted: f"must have at least {_count(wanted, 'character')}",
    "maxLength": lambda wanted: f"must have at most {_count(wanted, 'character')}",
    "minItems": lambda wanted: f"must have at least {_count(wanted, 'item')}",
    "maxItems": lambda wanted: f"must have at most {_count(wanted, 'item')}",
    "minProperties": lambda wanted: f"must have at least {_count(wanted, 'property')}",
    "maxProperties": lambda wanted: f"must have at most {_count(wanted, 'property')}",
    "uniqueItems": lambda _: "must not have the same item twice",
    "contains": lambda _: "must have an item of the wanted kind",
    "minContains": lambda wanted: f"must have at least {_count(wanted, 'item')} of the wanted kind",
    "maxContains": lambda wanted: f"must have at most {_count(wanted, 'item')} of the wanted kind",
    "not": lambda _: "has a form that is not allowed",
    "dependentRequired": lambda _: "lacks a property that another one requires",
    "dependencies": lambda _: "lacks a property that another one requires",
    "additionalProperties": lambda _: "is not allowed",
    "additionalItems": lambda _: "has more items than are allowed",
    "unevaluatedItems": lambda _: "has more items than are allowed",
    "unevaluatedProperties": lambda _: "has properties that are not allowed",
    "propertyNames": lambda _: "has a property name that is not allowed",
}
