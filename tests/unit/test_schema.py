from __future__ import annotations

import copy
import json
import subprocess
import sys
import tracemalloc
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, RootModel, field_validator

from littleghost.errors import DefinitionError, ToolError
from littleghost.json_values import loads
from littleghost.schema import CompiledSchema

CASES = Path(__file__).parent.parent / "cases"


def case(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def compiled(schema: object, **options: Any) -> CompiledSchema:
    return CompiledSchema(schema, owner="T.input_schema", **options)


def prop(schema: Any) -> CompiledSchema:
    return compiled({"type": "object", "properties": {"v": schema}})


WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "array", "items": {"type": "integer"}},
        "unit": {"enum": ["c", "f"]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}


def test_all_errors_are_named_with_their_paths() -> None:
    errors = compiled(WEATHER).validate({"days": ["x", 1, None], "unit": "k", "extra": 1, "a b": 2})

    assert errors == [
        "$.days[0] must be integer",
        "$.days[2] must be integer",
        '$.unit must be one of "c", "f"',
        "$.city is required",
        "$.extra is not allowed",
        '$["a b"] is not allowed',
    ]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": ["integer", "string", "null"]}, [], "$.v must be integer, string or null"),
        ({"type": "integer"}, True, "$.v must be integer"),
        ({"type": "integer"}, 1.5, "$.v must be integer"),
        ({"const": "x"}, 1, '$.v must be "x"'),
        ({"minimum": 1}, 0, "$.v must be at least 1"),
        ({"maximum": 1}, 2, "$.v must be at most 1"),
        ({"exclusiveMinimum": 1}, 1, "$.v must be more than 1"),
        ({"exclusiveMaximum": 1}, 1, "$.v must be less than 1"),
        ({"multipleOf": 5}, 3, "$.v must be a multiple of 5"),
        ({"minLength": 2}, "x", "$.v must have at least 2 characters"),
        ({"maxLength": 1}, "xx", "$.v must have at most 1 character"),
        ({"pattern": "^[a-z]+$"}, "X", "$.v must match the pattern ^[a-z]+$"),
        ({"minItems": 1}, [], "$.v must have at least 1 item"),
        ({"maxItems": 1}, [1, 2], "$.v must have at most 1 item"),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], "$.v must not have the same item twice"),
        ({"minProperties": 1}, {}, "$.v must have at least 1 property"),
        ({"maxProperties": 0}, {"a": 1}, "$.v must have at most 0 properties"),
        ({"contains": {"const": 1}}, [2], "$.v must have an item of the wanted kind"),
        ({"not": {"type": "string"}}, "x", "$.v has a form that is not allowed"),
        ({"additionalProperties": {"type": "integer"}}, {"a": "x"}, "$.v.a must be integer"),
        (
            {"patternProperties": {"^x-": {"type": "integer"}}},
            {"x-a": ""},
            "$.v.x-a must be integer",
        ),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "$.v must have at most 1 character"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "$.v lacks a property"),
        ({"unevaluatedProperties": False}, {"a": 1}, "$.v has properties that are not allowed"),
        ({"prefixItems": [True], "items": False}, [1, 2], "$.v"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "$.v must be integer or null"),
        ({"anyOf": [False]}, 3, "$.v matches none of the allowed forms"),
        ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3, "$.v matches more than one"),
    ],
)
def test_each_keyword_has_a_sentence(schema: Any, value: Any, expected: str) -> None:
    errors = prop(schema).validate({"v": value})

    assert len(errors) == 1
    assert errors[0].startswith(expected)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"uniqueItems": True}, [1, True, "1", 0, False, [1], {"a": 1}]),
        ({"pattern": "b"}, "abc"),
        ({"pattern": "^a"}, 5),
        ({"patternProperties": {"^x-": True}, "additionalProperties": False}, {"x-a": 1}),
        ({"type": "integer"}, 10**300),
        ({"format": "date"}, "not checked"),
        ({}, None),
    ],
)
def test_valid_values_have_no_errors(schema: Any, value: Any) -> None:
    assert prop(schema).validate({"v": value}) == []


def test_the_closest_alternative_is_explained() -> None:
    shapes = {
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                "required": ["kind", "r"],
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
                "required": ["kind", "side"],
            },
            {"type": "string"},
        ]
    }

    assert prop(shapes).validate({"v": {"kind": "square"}}) == [
        "$.v matches none of the allowed forms; the closest one wants: $.v.side is required"
    ]


TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }
    },
}


def test_recursive_schemas_work_to_the_depth_limit() -> None:
    schema = compiled(TREE)
    value: dict[str, Any] = {"name": 1}
    for _ in range(20):
        value = {"name": "x", "children": [value]}

    assert schema.validate({"root": value}) == [
        "$.root.children[0].children[0].children[0].children … .children[0].name must be string"
    ]
    for _ in range(5000):
        value = {"name": "x", "children": [value]}
    with pytest.raises(ToolError, match="nested more than 64 levels deep"):
        schema.read({"root": value})


def test_a_schema_that_refers_to_itself_without_end_is_an_error_not_a_crash() -> None:
    schema = compiled({"properties": {"a": {"$ref": "#/properties/a"}}})

    assert schema.validate({"a": 1}) == [
        "$ cannot be checked, since it or its schema is nested too deeply"
    ]


@pytest.mark.parametrize(
    ("schema", "messages"),
    [
        ([], ["must be a JSON Schema (a dict) or a pydantic model class, not list"]),
        (dict, ["not the class dict"]),
        ({"type": "array"}, ["must describe an object, not 'array'"]),
        (RootModel[list[int]], ["must describe an object, not 'array'"]),
        ({"properties": {"a": object()}}, ["plain JSON data: $.properties.a is of type object"]),
        ({"$schema": "https://example.com/mine"}, ["unknown $schema 'https://example.com/mine'"]),
        (
            {
                "properties": {
                    "a": {"type": "strng"},
                    "b": {"minimum": "x"},
                    "c": {"pattern": "("},
                },
                "required": "a",
            },
            [
                "$.properties.a.type",
                "$.properties.b.minimum",
                "$.properties.c.pattern",
                "$.required",
            ],
        ),
        (
            {
                "properties": {
                    "a": {"$ref": "#/$defs/no"},
                    "b": {"$ref": "https://example.com/s.json"},
                }
            },
            ["'#/$defs/no' leads to nothing", "'https://example.com/s.json' leads to nothing"],
        ),
        ({"$schema": []}, ["names an unknown $schema '[]'"]),
        ({"$ref": "#/x/a", "x": {"a": {"$ref": "#/y"}}}, ["'#/y' leads to nothing"]),
        ({"$ref": "file:///etc/passwd"}, ["'file:///etc/passwd' leads to nothing"]),
        ({"$defs": {"a": {"items": {"$ref": "other.json"}}}}, ["'other.json' leads to nothing"]),
    ],
)
def test_a_wrong_schema_is_refused_with_all_that_is_wrong(schema: Any, messages: list[str]) -> None:
    with pytest.raises(DefinitionError) as caught:
        compiled(schema)

    assert str(caught.value).startswith("T.input_schema ")
    for message in messages:
        assert message in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {
            "$id": "urn:lg:one",
            "$ref": "#/$defs/a",
            "$defs": {"a": {"$anchor": "x", "type": "object"}},
        },
        {"properties": {"a": {"$ref": "#x"}}, "$defs": {"a": {"$anchor": "x"}}},
        {"properties": {"a": {"$ref": "urn:lg:b"}}, "$defs": {"b": {"$id": "urn:lg:b"}}},
        {"properties": {"$ref": {"type": "string"}, "pattern": {"const": "("}}},
        {"properties": {"a": {"enum": [{"$ref": "nowhere"}]}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"$ref": "#/definitions/b"}},
            "definitions": {"b": {"type": "integer"}},
        },
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}},
        },
    ],
)
def test_references_inside_the_schema_are_fine(schema: Any) -> None:
    assert compiled(schema).validate({}) == []


def test_other_drafts_keep_their_own_rules() -> None:
    schema = compiled(
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}},
        }
    )

    assert schema.validate({"a": 1}) == ["$.a must be at least 1"]


def test_errors_never_quote_huge_values_and_are_bounded_in_number() -> None:
    secret = "s3cret" * 10_000
    schema = compiled(WEATHER)
    text = "; ".join(schema.validate({"city": [secret], "days": [secret] * 500, "unit": secret}))

    assert "s3cret" not in text
    assert len(text) < 5000
    errors = schema.validate({"city": "x", "days": ["x"] * 1000})

    assert len(errors) == 50
    assert errors[-1] == "and more"
    long_name = schema.validate({"city": "x", "days": [], "n" * 5000: 1})

    assert len(long_name[0]) < 200


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "(x+x+)+y", "^(?:a?){60}a{60}$"])
def test_patterns_that_backtrack_for_ever_elsewhere_are_fast(pattern: str) -> None:
    schema = prop({"pattern": pattern})
    tags = compiled(
        {"patternProperties": {pattern: {"type": "null"}}, "additionalProperties": True}
    )
    text = "a" * 50_000 + "x" * 50_000 + "!"

    assert schema.validate({"v": text})
    assert tags.validate({text: None}) == []


def test_a_pattern_with_look_around_matches_short_text_only() -> None:
    schema = prop({"pattern": r"^(?=.*\d)(?=.*[a-z]).{4,}$"})

    assert schema.validate({"v": "abc1"}) == []
    assert schema.validate({"v": "abcd"})
    assert schema.validate({"v": "a1" * 200})


def test_many_items_are_compared_in_linear_time() -> None:
    schema = prop({"uniqueItems": True})

    assert schema.validate({"v": [{"n": number} for number in range(50_000)]}) == []


def test_numbers_outside_of_floats_do_not_crash() -> None:
    assert len(prop({"multipleOf": 0.1}).validate({"v": 10**400})) <= 1


def test_double_encoded_values_are_unwrapped_where_the_schema_wants_them() -> None:
    given = case("toolcall-nested-values-double-encoded")
    schema = compiled(given["input"]["schema"])
    for key in ("arguments_string", "also_try"):
        value = loads(given["input"][key])
        before = copy.deepcopy(value)

        assert schema.coerce(value) == given["expected"]["arguments"]
        assert schema.read(value) == given["expected"]["arguments"]
        assert value == before


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": ["array", "string"]}, "[1]", "[1]"),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, '{"a": 1}', {"a": 1}),
        ({"anyOf": [{"type": "object"}, {"type": "string"}]}, '{"a": 1}', '{"a": 1}'),
        ({"anyOf": [{"type": "object"}, {"enum": ["all"]}]}, '{"a": 1}', '{"a": 1}'),
        ({"type": "array"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "integer"}, "42", "42"),
        ({"type": "array"}, "[1, NaN]", "[1, NaN]"),
        ({"type": "array"}, "[" * 5000, "[" * 5000),
        ({"type": "array", "items": {"type": "array"}}, '["[1]", [2]]', [[1], [2]]),
        ({"$ref": "#/$defs/list"}, " [1] ", [1]),
        ({"enum": [["a"]]}, '["a"]', '["a"]'),
    ],
)
def test_values_are_unwrapped_by_the_schema_never_by_guess(
    schema: Any, value: Any, expected: Any
) -> None:
    schema = compiled({"properties": {"v": schema}, "$defs": {"list": {"type": "array"}}})

    assert schema.coerce({"v": value}) == {"v": expected}


def test_a_valid_value_is_given_back_itself() -> None:
    value = {"city": "[1]", "days": [1]}

    assert compiled(WEATHER).coerce(value) is value


NO_OBJECT = case("toolcall-arguments-not-an-object")["input"]


@pytest.mark.parametrize("text", NO_OBJECT["arguments_strings"])
def test_arguments_that_are_no_object_are_never_guessed(text: str) -> None:
    schema = compiled(NO_OBJECT["schema"])
    with pytest.raises((ValueError, ToolError)) as caught:
        schema.read(loads(text))
    reason = str(caught.value)

    assert reason == "Invalid tool input: $ must be object" or reason.startswith("not valid JSON: ")


def test_the_schema_is_copied_and_read_only() -> None:
    declared = copy.deepcopy(WEATHER)
    schema = compiled(declared)
    declared["properties"]["city"]["type"] = "null"  # type: ignore[index]

    assert schema.json == WEATHER
    assert schema.json is schema.json
    assert json.loads(json.dumps(schema.json)) == WEATHER
    with pytest.raises(TypeError):
        schema.json["properties"]["x"] = {}
    schema.to_json()["properties"] = {}

    assert schema.to_json() == WEATHER
    assert compiled({"properties": {}}).to_json() == {"properties": {}, "type": "object"}


class Item(BaseModel):
    """One line of an order."""

    sku: str
    count: int = 1


class OrderInput(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["buy", "sell"]
    items: tuple[Item, ...]
    due: date | None = None

    @field_validator("items")
    @classmethod
    def _some(cls, items: tuple[Item, ...]) -> tuple[Item, ...]:
        if not items:
            raise ValueError("order at least one item")
        return items


def test_a_pydantic_model_gives_its_schema_and_its_instances() -> None:
    schema = compiled(OrderInput)
    parsed = schema.read({"kind": "buy", "items": '[{"sku": "a"}]', "due": "2026-01-15"})

    assert parsed == OrderInput(kind="buy", items=(Item(sku="a"),), due=date(2026, 1, 15))
    assert schema.model is OrderInput
    assert schema.json["$defs"]["Item"] == {
        "description": "One line of an order.",
        "properties": {"sku": {"type": "string"}, "count": {"default": 1, "type": "integer"}},
        "required": ["sku"],
        "type": "object",
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"kind": "x", "items": [{"count": "1"}], "more": 1},
            'Invalid tool input: $.more is not allowed; $.kind must be one of "buy", "sell"; ',
        ),
        ({"kind": "buy", "items": []}, "$.items: Value error, order at least one item"),
        ({"kind": "buy", "items": [{"sku": "a"}], "due": "soon"}, "$.due: Input should"),
        ([1], "Invalid tool input: $ must be object"),
        ("{}", "$.kind is required; $.items is required"),
        ({"kind": "buy", "items": [], "x": float("nan")}, "Invalid tool input: $.x is NaN"),
    ],
)
def test_a_pydantic_model_says_what_is_wrong(value: Any, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        compiled(OrderInput).read(value)

    assert message in str(caught.value)


class Unwritable(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    thing: CompiledSchema


def test_a_model_without_a_json_form_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"T.input_schema \(Unwritable\) has no JSON Schema"):
        compiled(Unwritable)


def test_other_kinds_of_values_may_be_described_where_objects_are_not_needed() -> None:
    schema = compiled({"type": "array", "items": {"type": "integer"}}, object_only=False)

    assert schema.validate([1]) == []
    assert schema.coerce("[1]") == [1]
    assert schema.to_json() == {"type": "array", "items": {"type": "integer"}}


def test_checking_large_input_is_bounded_in_memory() -> None:
    schema = compiled(WEATHER)
    value = {"city": "x" * (1 << 21), "days": []}
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match="more than 1048576 bytes"):
            schema.read(value)

        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_importing_tools_loads_neither_pydantic_nor_jsonschema() -> None:
    code = (
        "import sys; import littleghost.functions, littleghost.toolset;"
        "print([n for n in ('pydantic', 'jsonschema', 'asyncio') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[]", done.stderr
