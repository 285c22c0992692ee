"""Turning a declared schema into a validator that reads no network and runs no slow pattern.

Patterns run in a linear-time engine (pydantic's). The few it cannot read, those with look-around
or back-references, run in Python's on at most 256 characters, which bounds all but the most
hostile of them. jsonschema and pydantic are imported here, when the first schema is compiled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final, Protocol, cast

from jsonschema import FormatChecker, validators
from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft202012Validator
from jsonschema_specifications import REGISTRY
from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaError, SchemaValidator, core_schema
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from littleghost.errors import DefinitionError
from littleghost.json_values import dumps
from littleghost.json_walk import path_text

_MAX_SLOW_TEXT: Final = 256
_MAX_PROBLEMS: Final = 20


class Validator(Protocol):
    """What is used of a jsonschema validator."""

    def iter_errors(self, instance: Any) -> Iterator[ValidationError]:
        """Find errors one by one."""
        ...


class _Untitled(GenerateJsonSchema):
    """Leaves out titles made from field names: they say nothing and cost the model tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def model_schema(model: type[Any], owner: str) -> dict[str, Any]:
    """Give the JSON Schema of a pydantic model class.

    Raises:
        DefinitionError: It is no pydantic model class, or a field has no JSON form.
    """
    if not issubclass(model, BaseModel):
        raise DefinitionError(
            f"{owner} must be a JSON Schema (a dict) or a pydantic model class, "
            f"not the class {model.__name__}"
        )
    try:
        schema = model.model_json_schema(schema_generator=_Untitled)
    except PydanticUserError as error:
        raise DefinitionError(f"{owner} ({model.__name__}) has no JSON Schema: {error}") from error
    schemas = cast("dict[str, dict[str, Any]]", schema.get("$defs", {}))
    for name, part in [(model.__name__, schema), *schemas.items()]:
        if part.get("title") == name:
            del part["title"]
    return schema


def compile_validator(schema: Mapping[str, Any], owner: str) -> Validator:
    """Check a schema and make its validator; equal schemas share one.

    Raises:
        DefinitionError: It breaks its own draft's rules or has references that lead nowhere.
    """
    try:
        return _compile(dumps(schema))
    except ValueError as error:
        raise DefinitionError(f"{owner} {error}") from None


# Tool providers may make the same tools anew for every turn, and checking takes milliseconds.
@lru_cache(maxsize=512)
def _compile(text: str) -> Validator:
    schema = json.loads(text)
    named = isinstance(schema.get("$schema", ""), str)
    draft: Any = validators.validator_for(schema, default=cast("Any", None)) if named else None
    if draft is None and "$schema" in schema:
        raise ValueError(f"names an unknown $schema {_bounded(str(schema['$schema']))!r}")
    draft = draft or Draft202012Validator
    checker = FormatChecker(())
    checker.checks("regex", raises=ValueError)(_is_pattern)
    rules = draft(draft.META_SCHEMA, format_checker=checker)
    problems: dict[str, None] = {}
    for error in rules.iter_errors(schema):
        problems[f"{path_text(list(error.absolute_path))}: {_bounded(error.message)}"] = None
    for problem in [] if problems else _lost_references(schema):
        problems[problem] = None
    if problems:
        lines = list(problems)
        more = ["and more"] if len(lines) > _MAX_PROBLEMS else []
        listed = "; ".join(lines[:_MAX_PROBLEMS] + more)
        raise ValueError(f"is not a valid JSON Schema: {listed}")
    return cast("Validator", _guarded(draft)(schema, registry=REGISTRY))


def find_errors(validator: Validator, value: Any, limit: int) -> list[ValidationError | str]:
    """Check a value.

    Returns:
        At most `limit` errors, and a sentence when the value could not be checked to the end.
    """
    found: list[ValidationError | str] = []
    try:
        # Lazily, so that a list of 100,000 wrong items costs no more than the first ones.
        found.extend(islice(validator.iter_errors(value), limit))
    except RecursionError:
        found.append("$ cannot be checked, since it or its schema is nested too deeply")
    except (ArithmeticError, Unresolvable) as error:
        # A number outside of what floats hold, or a reference that only a value can reveal.
        found.append(f"$ cannot be checked against its schema ({type(error).__name__})")
    return found


def _lost_references(schema: Mapping[str, Any]) -> Iterator[str]:
    """Name the references that cannot be resolved inside the schema itself."""
    identifier = schema.get("$schema", Draft202012Validator.META_SCHEMA["$id"])
    specification = specification_with(identifier)
    root = specification.create_resource(schema)
    uri = root.id() or ""
    resolver = REGISTRY.with_resource(uri, root).resolver(uri)
    waiting = [(root, resolver)]
    seen: set[int] = set()
    while waiting:
        resource, resolver = waiting.pop()
        contents = resource.contents
        if id(contents) in seen:
            continue
        seen.add(id(contents))
        for keyword in ("$ref", "$dynamicRef"):
            if not isinstance(contents, Mapping) or not isinstance(contents.get(keyword), str):
                continue
            reference = contents[keyword]
            try:
                found = resolver.lookup(reference)
            except Unresolvable:
                yield (
                    f"{keyword} {_bounded(reference)!r} leads to nothing in this schema "
                    "(other documents are never fetched)"
                )
                continue
            target = specification.create_resource(found.contents)
            waiting.append((target, found.resolver))
        parts = resource.subresources()
        waiting.extend((part, resolver.in_subresource(part)) for part in parts)


@cache
def _guarded(draft: Any) -> Any:
    """The draft's validator with the keywords that could take too long, or say too little."""
    return validators.extend(
        draft,
        {
            "pattern": _check_pattern,
            "patternProperties": _check_pattern_properties,
            "additionalProperties": _check_additional,
            "uniqueItems": _check_unique,
        },
    )


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool | None]:
    """Give the search for a pattern; it answers None for text too long to be searched safely.

    Raises:
        ValueError: It is no regular expression.
    """
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
    except SchemaError:
        pass
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return lambda text: bool(compiled.search(text)) if len(text) <= _MAX_SLOW_TEXT else None


def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or matcher(value) is not None


def _check_pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matcher(pattern)(instance):
        yield ValidationError("does not match")


def _check_pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for name, value in cast("dict[str, Any]", instance).items():
            if matcher(pattern)(name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _check_additional(
    validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    patterns = [matcher(pattern) for pattern in schema.get("patternProperties", ())]
    for name, value in cast("dict[str, Any]", instance).items():
        if name not in known and not any(search(name) for search in patterns):
            if rule is False:
                yield ValidationError("is not allowed", path=[name])
            else:
                yield from validator.descend(value, rule, path=name)


def _check_unique(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        keys = [_identity(item) for item in cast("list[Any]", instance)]
        if len(set(keys)) < len(keys):
            yield ValidationError("has repeated items")


def _identity(value: Any) -> Any:
    """A hashable stand-in for a JSON value: 1 is 1.0, but not true. Linear, unlike comparing."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return (dict, frozenset((name, _identity(item)) for name, item in items.items()))
    if isinstance(value, list):
        return (list, tuple(_identity(item) for item in cast("list[Any]", value)))
    return (bool, value) if isinstance(value, bool) else value


def _bounded(text: str, size: int = 200) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
