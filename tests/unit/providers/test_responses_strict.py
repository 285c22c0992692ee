"""Which schemas may be sent in strict mode."""

import json

import pytest

from littleghost.providers.responses_strict import strict_schema


def of(properties, required=None, **more):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        **more,
    }


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        of({}),
        of({"a": TEXT, "b": {"type": ["integer", "null"], "minimum": 0}}),
        of({"a": of({"b": TEXT})}),
        of({"a": {"type": "array", "items": of({"b": TEXT}), "maxItems": 3}}),
        of({"a": {"anyOf": [of({"b": TEXT}), {"type": "null"}]}}),
        of({"a": {"enum": ["x", "y"]}, "b": {"const": 1}, "c": {**TEXT, "format": "date"}}),
        of({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": of({"again": {"$ref": "#"}})}}),
    ],
)
def test_a_schema_that_keeps_the_rules_is_closed_everywhere(schema):
    before = json.dumps(schema)
    closed = strict_schema(schema)

    def check(node):
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert sorted(node["required"]) == sorted(node["properties"])
            list(map(check, node.values()))
        elif isinstance(node, list):
            list(map(check, node))

    check(closed)
    assert closed is not None
    assert json.dumps(schema) == before


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "string"},
        {"anyOf": [of({})], **of({})},
        of({"a": TEXT}, required=[]),
        of({}, additionalProperties=True),
        of({}, additionalProperties=TEXT),
        of({"a": {"type": "object", "additionalProperties": TEXT}}),
        of({"a": of({"b": TEXT}, required=[])}),
        of({"a": {"type": "array"}}),
        of({"a": {"type": "array", "items": {"type": "object"}}}),
        of({"a": {"anyOf": [of({"b": TEXT}, required=[])]}}),
        of({"a": {**TEXT, "default": "x"}}),
        of({"a": {"allOf": [TEXT]}}),
        of({"a": {**TEXT, "format": "uri-template"}}),
        of({"a": {}}),
        of({"a": True}),
        of({"a": {"type": "file"}}),
        of({"a": {"type": 3}}),
        of({"a": {"enum": []}}),
        of({"a": {"enum": 3}}),
        of({"a": {"anyOf": 3}}),
        of({"a": {"$ref": "#/$defs/Missing"}}),
        of({"a": {"$ref": "#/$defs/A", "description": "d"}}, **{"$defs": {"A": TEXT}}),
        of({"a": {"$ref": "A"}}, **{"$defs": {"A": TEXT}}),
        of({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"type": "object"}}}),
        of({"a": TEXT}, **{"$defs": 3}),
        {"type": "object", "properties": 3},
    ],
)
def test_any_other_schema_is_not_strict(schema):
    assert strict_schema(schema) is None


def test_the_limits_of_the_service():
    deep, wide = of({"a": TEXT}), of({f"p{n}": TEXT for n in range(5001)})
    for _ in range(12):
        deep = of({"a": deep})

    assert strict_schema(deep) is None
    assert strict_schema(wide) is None
    assert strict_schema(of({"a": {"enum": list(range(1001))}})) is None
