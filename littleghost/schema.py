"""JSON Schemas, compiled once: check values, say everything that is wrong, unwrap double encoding.

A schema is a dict (JSON Schema 2020-12, or the draft its `$schema` names) or a pydantic model
class. Nothing is ever fetched: a `$ref` to anything but the schema itself is refused. `format` is
an annotation, as the standard has it. A schema checks shape, never permission.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from littleghost.errors import DefinitionError, ToolError
from littleghost.frozen_json import freeze, thaw
from littleghost.json_values import JsonLimits, JsonValue, check_json, dumps, loads, to_json_value
from littleghost.json_walk import path_text

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

# A model's arguments or answer: far beyond any output limit, far below what would hurt a worker.
INPUT_LIMITS: Final = JsonLimits(size=1 << 20)
# More errors than this do not help a model to correct itself.
MAX_ERRORS: Final = 50
# How often encoded values inside encoded values are looked for.
_MAX_UNWRAPS: Final = 5


class CompiledSchema:
    """A schema that is ready to check values; thread-safe."""

    def __init__(self, declaration: object, *, owner: str, object_only: bool = True) -> None:
        """Compile a declared schema.

        Args:
            declaration: A JSON Schema as a mapping, or a pydantic model class.
            owner: What error messages call it, such as "OrderStatusTool.input_schema".
            object_only: Accept only objects at the root, as the arguments of a tool are.

        Raises:
            DefinitionError: It is no valid schema, refers to something that it does not hold,
                or cannot describe an object; the message lists all that is wrong, with paths.
        """
        from littleghost.schema_compile import compile_validator, model_schema

        self.model: type[Any] | None = None
        if isinstance(declaration, type):
            self.model = declaration
            declared = model_schema(declaration, owner)
        elif isinstance(declaration, Mapping):
            declared = cast("object", declaration)
        else:
            raise DefinitionError(
                f"{owner} must be a JSON Schema (a dict) or a pydantic model class, "
                f"not {type(declaration).__name__}"
            )
        try:
            schema = check_json(declared)
        except ValueError as error:
            raise DefinitionError(f"{owner} is not plain JSON data: {error}") from None
        schema = cast("dict[str, JsonValue]", schema)
        if object_only and schema.setdefault("type", "object") != "object":
            raise DefinitionError(
                f"{owner} must describe an object, not {schema['type']!r}; "
                "put the value into a property"
            )
        self._validator = compile_validator(schema, owner)
        self._plain = schema

    @cached_property
    def json(self) -> Mapping[str, Any]:
        """The schema as read-only JSON data, the same object each time."""
        return freeze(self._plain)

    def to_json(self) -> dict[str, JsonValue]:
        """Give a copy of the schema that the caller may change."""
        return cast("dict[str, JsonValue]", thaw(self._plain))

    def validate(self, value: JsonValue) -> list[str]:
        """Say everything that is wrong with a value.

        Args:
            value: JSON data.

        Returns:
            At most 50 sentences such as `$.city is required`, which never quote the value;
            empty when it is valid.
        """
        return self._sentences(self._errors(value))

    def coerce(self, value: JsonValue) -> JsonValue:
        """Unwrap objects and lists that a model encoded as JSON text.

        Text is unwrapped only where the schema accepts no text and where it holds a value of the
        type that is wanted, never by guess. The whole value may be encoded, too.

        Returns:
            The value itself when nothing had to be done, otherwise a corrected copy.
        """
        return self._accept(value)[0]

    def parse(self, value: JsonValue) -> Any:
        """Give what a declaration's owner works with: an instance of the pydantic model, if any.

        Args:
            value: A valid value.

        Raises:
            ValueError: The model's own rules refuse it; the message is safe for a model to read.
        """
        if self.model is None:
            return value
        import pydantic

        try:
            # In its JSON mode pydantic knows that a list may mean a tuple and text a date.
            return self.model.model_validate_json(dumps(value))
        except pydantic.ValidationError as error:
            details = error.errors(include_url=False, include_context=False, include_input=False)
            found = [f"{path_text(item['loc'])}: {item['msg']}" for item in details[:MAX_ERRORS]]
            raise ValueError("; ".join(found)) from error

    def read(self, value: object) -> Any:
        """Check a model's input and give it in the declared form.

        Args:
            value: Parsed JSON; a whole object that is encoded as JSON text is unwrapped.

        Returns:
            A dict of the caller's own, or an instance of the pydantic model.

        Raises:
            ToolError: The input is refused; the message lists every reason and is safe to show.
        """
        try:
            data, errors = self._accept(to_json_value(value, limits=INPUT_LIMITS))
            if errors:
                raise ValueError("; ".join(errors))
            return self.parse(data)
        except ValueError as error:
            raise ToolError(f"Invalid tool input: {error}") from error

    def _accept(self, value: JsonValue) -> tuple[JsonValue, list[str]]:
        errors = self._errors(value)
        for attempt in range(_MAX_UNWRAPS):
            fixes = [fix for error in errors if (fix := _unwrapped(error))] if errors else []
            if not fixes:
                break
            if attempt == 0:
                value = copy.deepcopy(value)
            for path, inner in fixes:
                value = _put(value, path, inner)
            errors = self._errors(value)
        return value, self._sentences(errors) if errors else []

    def _errors(self, value: JsonValue) -> list[ValidationError | str]:
        from littleghost.schema_compile import find_errors

        return find_errors(self._validator, value, MAX_ERRORS + 1)

    def _sentences(self, errors: list[ValidationError | str]) -> list[str]:
        if not errors:
            return []
        from littleghost.schema_errors import describe

        lines: dict[str, None] = {}
        for error in errors:
            for line in [error] if isinstance(error, str) else describe(error):
                lines[line] = None
        if len(lines) > MAX_ERRORS:
            return [*islice(lines, MAX_ERRORS - 1), "and more"]
        return list(lines)


def _unwrapped(error: ValidationError | str) -> tuple[list[str | int], JsonValue] | None:
    """Find what the text at an error's place holds, if that is what the schema wants there."""
    if isinstance(error, str) or not isinstance(error.instance, str):
        return None
    if error.instance.lstrip()[:1] not in ("{", "["):
        return None
    try:
        inner = loads(error.instance, limits=INPUT_LIMITS)
    except ValueError:
        return None
    if ("object" if isinstance(inner, dict) else "array") not in _wanted_types(error):
        return None
    return list(error.absolute_path), inner


def _wanted_types(error: ValidationError) -> Iterator[str]:
    """The types a place accepts, if it was refused only for its type."""
    if error.validator == "type":
        wanted = cast("str | list[str]", error.validator_value)
        yield from [wanted] if isinstance(wanted, str) else wanted
    elif error.validator in ("anyOf", "oneOf"):
        parts = error.context or []
        # Any other reason in a branch means that the branch takes some kind of text.
        if all(part.validator == "type" and not part.path for part in parts):
            for part in parts:
                yield from _wanted_types(part)


def _put(value: JsonValue, path: list[str | int], inner: JsonValue) -> JsonValue:
    if not path:
        return inner
    place: Any = value
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = inner
    return value
