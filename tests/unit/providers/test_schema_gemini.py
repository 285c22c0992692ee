"""Schemas in the subset that Gemini takes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_server import load_case

from littleghost.errors import DefinitionError
from littleghost.providers.schema_gemini import gemini_schema

KNOWN = {
    "type",
    "format",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "anyOf",
}


def convert(schema):
    return gemini_schema(schema, "tool 'x'")


def prop(schema, **root):
    """Convert a schema as the property p of an object."""
    found = convert({"type": "object", "properties": {"p": schema}, **root})
    assert found is not None
    assert_gemini(found)
    return found["properties"]["p"]


def assert_gemini(node):
    """Every schema in it is one that Gemini takes."""
    assert set(node) <= KNOWN
    if "anyOf" in node:
        assert set(node) == {"anyOf"}
        assert len(node["anyOf"]) > 1
        for branch in node["anyOf"]:
            assert "anyOf" not in branch
            assert_gemini(branch)
        return
    assert node["type"] in ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT")
    if "enum" in node:
        assert node["type"] == "STRING"
        assert all(isinstance(value, str) and value for value in node["enum"])
    assert ("items" in node) == (node["type"] == "ARRAY")
    if "items" in node:
        assert_gemini(node["items"])
    for part in node.get("properties", {}).values():
        assert_gemini(part)
    assert set(node.get("required", ())) <= set(node.get("properties", {}))


def test_the_case():
    case = load_case("schema-for-gemini")
    schema = case["input"]["schema"]
    before = json.dumps(schema)
    found = convert(schema)
    assert found is not None
    assert_gemini(found)
    assert json.dumps(schema) == before, "arguments are checked against the original"
    properties = found["properties"]
    assert set(properties) == set(schema["properties"])
    assert properties["ship_to"]["description"] == "where to"
    assert properties["ship_to"]["required"] == ["street"]
    assert properties["ship_to"]["properties"]["zip"] == {"type": "STRING", "nullable": True}
    assert properties["lines"]["items"]["properties"]["street"] == {
        "type": "STRING",
        "minLength": 1,
    }
    assert properties["tags"]["items"] == {"type": "STRING"}
    assert properties["mode"] == {"type": "STRING", "enum": ["fast"]}
    assert properties["level"]["type"] == "INTEGER"
    assert properties["level"]["nullable"] is True
    assert properties["when"] == {"type": "STRING", "format": "date-time"}
    assert properties["$ref"] == {"type": "STRING"}
    assert found["required"] == ["ship_to"]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        (
            {"type": ["string", "integer"], "description": "d"},
            {
                "anyOf": [
                    {"type": "STRING", "description": "d"},
                    {"type": "INTEGER", "description": "d"},
                ]
            },
        ),
        ({"const": None}, {"type": "STRING", "nullable": True}),
        ({"const": 3}, {"type": "INTEGER", "description": "(one of: 3)"}),
        ({"enum": ["a", "b", "a"]}, {"type": "STRING", "enum": ["a", "b"]}),
        ({"enum": ["a", ""]}, {"type": "STRING", "description": '(one of: "a", "")'}),
        (
            {"enum": ["a", 1]},
            {
                "anyOf": [
                    {"type": "STRING", "enum": ["a"]},
                    {"type": "INTEGER", "description": "(one of: 1)"},
                ]
            },
        ),
        ({}, {"type": "STRING"}),
        (True, {"type": "STRING"}),
        ({"minimum": 1}, {"type": "NUMBER", "minimum": 1}),
        (
            {"type": "string", "format": "email", "pattern": "@", "description": "where"},
            {"type": "STRING", "description": 'where (pattern: "@"; format: email)'},
        ),
        (
            {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "string"}}, "required": ["b"]},
                ]
            },
            {
                "type": "OBJECT",
                "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING"}},
                "required": ["a", "b"],
            },
        ),
        (
            {"oneOf": [{"type": "null"}, {"anyOf": [{"type": "string"}, {"type": "boolean"}]}]},
            {
                "anyOf": [
                    {"type": "STRING", "nullable": True},
                    {"type": "BOOLEAN", "nullable": True},
                ]
            },
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            {"type": "ARRAY", "items": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}},
        ),
        (
            {"properties": {"no": False, "yes": {"type": "string"}}, "required": ["no", "yes"]},
            {"type": "OBJECT", "properties": {"yes": {"type": "STRING"}}, "required": ["yes"]},
        ),
        (
            {"properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        ),
    ],
)
def test_what_becomes_of_a_schema(schema, found):
    assert prop(schema) == found


def test_an_object_without_properties_is_no_schema():
    assert convert({"type": "object"}) is None
    assert convert({"type": "object", "properties": {}, "additionalProperties": False}) is None


def test_alternatives_at_the_root_become_one_object():
    a = {"type": "object", "properties": {"a": {"type": "string"}, "k": {}}, "required": ["a", "k"]}
    b = {"type": "object", "properties": {"b": {"type": "string"}, "k": {}}, "required": ["b", "k"]}
    found = convert({"type": "object", "oneOf": [a, b]})

    assert found is not None
    assert set(found["properties"]) == {"a", "b", "k"}
    assert found["required"] == ["k"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"n": {"$ref": "#"}}},
        {
            "properties": {"n": {"$ref": "#/$defs/N"}},
            "$defs": {
                "N": {"properties": {"next": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}
            },
        },
        {
            "properties": {"n": {"$ref": "#/$defs/A"}},
            "$defs": {
                "A": {"properties": {"b": {"$ref": "#/$defs/B", "description": "d"}}},
                "B": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]},
            },
        },
        {"properties": {"n": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {
            "properties": {"n": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}},
        },
    ],
)
def test_a_schema_that_refers_to_itself_is_refused_by_path(schema):
    with pytest.raises(DefinitionError, match=r"tool 'x'.*\$\.properties\.n.*refers to itself"):
        convert({"type": "object", **schema})


def test_one_definition_used_twice_is_no_circle():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"allOf": [{"$ref": "#/$defs/A"}] * 2}},
        "$defs": {"A": {"type": "string"}},
    }

    assert convert(schema) == {
        "type": "OBJECT",
        "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING"}},
    }


def test_references_that_explode_are_refused():
    levels = {
        f"L{n}": {"properties": {k: {"$ref": f"#/$defs/L{n + 1}"} for k in "ab"}} for n in range(20)
    }
    schema = {"properties": {"n": {"$ref": "#/$defs/L0"}}, "$defs": {**levels, "L20": {}}}

    with pytest.raises(DefinitionError, match="too large"):
        convert(schema)
    wide = {f"W{n}": {"allOf": [{"$ref": f"#/$defs/W{n + 1}"}] * 2} for n in range(30)}
    with pytest.raises(DefinitionError, match="too large"):
        convert({"properties": {"n": {"$ref": "#/$defs/W0"}}, "$defs": {**wide, "W30": {}}})


@pytest.mark.parametrize("reference", ["#/$defs/Gone", "other.json", "#anchor"])
def test_a_reference_that_cannot_be_followed_is_refused(reference):
    with pytest.raises(DefinitionError, match=r"\$\.properties\.p refers to"):
        prop({"$ref": reference})


NAMES = st.sampled_from(["a", "$ref", "anyOf", "type", ""])
LEAVES = st.sampled_from(
    [
        {},
        True,
        False,
        {"type": "string"},
        {"type": ["null", "integer"]},
        {"enum": [1, None, "a", 1.5, True]},
        {"const": {"a": 1}},
        {"type": "array"},
        {"$ref": "#/$defs/D"},
        {"format": "uri", "multipleOf": 2},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda p, r: {"type": "object", "properties": p, "required": r},
            st.dictionaries(NAMES, inner, max_size=3),
            st.lists(NAMES, max_size=2),
        ),
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(lambda p: {"anyOf": p, "description": "d"}, st.lists(inner, max_size=3)),
        st.builds(lambda p: {"allOf": p}, st.lists(inner, max_size=3)),
        st.builds(lambda i: {"additionalProperties": i}, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.dictionaries(NAMES, SCHEMAS, max_size=3))
def test_whatever_a_schema_is_made_of_the_result_is_gemini_s(properties):
    schema = {"type": "object", "properties": properties, "$defs": {"D": {"type": "boolean"}}}
    found = convert(schema)

    if found is not None:
        assert_gemini(found)
        json.dumps(found, allow_nan=False)
