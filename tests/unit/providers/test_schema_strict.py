"""Schemas in OpenAI's strict mode, and the nulls that come of it."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_server import load_case

from littleghost.errors import DefinitionError
from littleghost.providers.schema_nulls import without_strict_nulls
from littleghost.providers.schema_strict import strict_or_none, strict_schema


def convert(schema):
    found = strict_schema({"type": "object", **schema}, "tool 'x'")
    assert_strict(found)
    return found


def prop(schema, **root):
    """Convert a schema as the required property p."""
    return convert({"properties": {"p": schema}, "required": ["p"], **root})["properties"]["p"]


def assert_strict(node):
    """Every object in it is closed, and all its properties are required."""
    if "$ref" in node:
        assert set(node) == {"$ref"}
        return
    types = node.get("type")
    if types == "object" or (isinstance(types, list) and "object" in types):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    assert not {"default", "title", "oneOf", "allOf", "minLength"} & set(node)
    for key in ("properties", "$defs"):
        for part in node.get(key, {}).values():
            assert_strict(part)
    for part in [*node.get("anyOf", []), *([node["items"]] if "items" in node else [])]:
        assert_strict(part)


def test_the_case():
    schema = load_case("schema-strict-mode")["input"]["schema"]
    before = copy.deepcopy(schema)

    assert strict_or_none(schema) is None
    with pytest.raises(DefinitionError, match=r"tool 'x'.*\$\.properties\.free.*free keys"):
        strict_schema(schema, "tool 'x'")
    assert schema == before

    del schema["properties"]["free"]
    found = strict_schema(schema, "tool 'x'")
    assert_strict(found)
    properties = found["properties"]
    assert properties["name"] == {"type": "string"}
    assert properties["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert properties["inner"]["type"] == ["object", "null"]
    assert properties["inner"]["properties"]["weight"] == {"type": ["number", "null"]}
    either = properties["either"]["anyOf"]
    assert either[0]["properties"]["a"] == {"type": ["integer", "null"]}
    assert either[1:] == [{"type": "string"}, {"type": "null"}]


def test_nulls_that_strict_mode_asked_for_are_taken_out_again():
    schema = load_case("schema-strict-mode")["input"]["schema"]
    value = {"name": "n", "note": None, "inner": {"label": "l", "weight": None}, "either": None}

    assert without_strict_nulls(value, schema) == {
        "name": "n",
        "note": None,
        "inner": {"label": "l"},
    }
    assert without_strict_nulls({"name": None}, schema) == {"name": None}
    listed = {
        "properties": {"l": {"type": "array", "items": {"$ref": "#/$defs/I"}}},
        "$defs": {"I": {"properties": {"a": {"type": "string"}, "b": {}}}},
    }
    given = {"l": [{"a": None, "b": None}, {"a": "x"}]}
    assert without_strict_nulls(given, listed) == {"l": [{"b": None}, {"a": "x"}]}


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "string", "default": "x", "minLength": 1}, {"type": ["string", "null"]}),
        (
            {"enum": ["a"], "description": "d"},
            {"anyOf": [{"enum": ["a"]}, {"type": "null"}], "description": "d"},
        ),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"$ref": "#/$defs/D"}, {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "null"}]}),
        (
            {"$ref": "#/$defs/D", "description": "d"},
            {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "null"}], "description": "d"},
        ),
        ({"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N"}),
    ],
)
def test_an_optional_property_becomes_nullable(schema, found):
    defs = {"D": {"type": "string"}, "N": {"type": ["string", "null"]}}

    assert convert({"properties": {"p": schema}, "$defs": defs})["properties"]["p"] == found


def test_a_recursive_schema_stays_recursive():
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/N", "description": "the next"}},
    }
    found = convert({"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})

    assert found["$defs"]["N"]["properties"]["next"] == {
        "anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}],
        "description": "the next",
    }


def test_all_of_is_put_together():
    defs = {"A": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}
    parts = [{"$ref": "#/$defs/A"}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]
    found = prop({"allOf": parts, "description": "d"}, **{"$defs": defs})

    assert set(found["properties"]) == {"a", "b"}
    assert found["description"] == "d"
    only = prop({"allOf": [{"$ref": "#/$defs/A"}], "description": "d"}, **{"$defs": defs})
    assert only == {"anyOf": [{"$ref": "#/$defs/A"}], "description": "d"}


def test_a_tool_without_arguments_is_strict():
    assert convert({}) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}},
        {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}},
        {"type": "string", "not": {"const": "a"}},
        {"patternProperties": {"^a": {}}, "properties": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/Gone"},
        {"$ref": "#/properties/p"},
        {"$ref": "https://example.com/s.json"},
        {"allOf": [{"$ref": "#/$defs/Self"}, {"type": "string"}]},
        {"allOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]},
    ],
)
def test_what_strict_mode_cannot_say_is_refused_by_path(schema):
    defs = {
        "Self": {"allOf": [{"$ref": "#/$defs/Self"}, {"type": "string"}]},
        "A": {"allOf": [{"$ref": "#/$defs/B"}]},
        "B": {"allOf": [{"$ref": "#/$defs/A"}]},
    }
    root = {"type": "object", "properties": {"p": schema}, "$defs": defs}

    with pytest.raises(DefinitionError, match=r"tool 'x': the schema at \$\.properties\.p"):
        strict_schema(root, "tool 'x'")
    assert strict_or_none(root) is None


def test_alternatives_at_the_root_are_refused():
    with pytest.raises(DefinitionError, match="one object, not alternatives"):
        strict_schema({"type": "object", "anyOf": [{"properties": {}}]}, "tool 'x'")


NAMES = st.sampled_from(["a", "b", "$ref"])
LEAVES = st.sampled_from(
    [
        {"type": "string", "minLength": 1},
        {"type": ["null", "integer"]},
        {"enum": [1, None, "a"]},
        {"const": "c"},
        {"$ref": "#/$defs/D"},
        {"$ref": "#/$defs/R", "description": "again"},
        {},
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
        st.builds(lambda p: {"oneOf": p, "title": "t"}, st.lists(inner, max_size=3)),
        st.builds(lambda p: {"allOf": p}, st.lists(inner, max_size=3)),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.dictionaries(NAMES, SCHEMAS, max_size=3))
def test_strict_is_claimed_only_for_what_is_strict(properties):
    defs = {
        "D": {"type": "boolean"},
        "R": {"type": "object", "properties": {"r": {"$ref": "#/$defs/R"}}},
    }
    found = strict_or_none({"type": "object", "properties": properties, "$defs": defs})

    if found is not None:
        assert_strict(found)
        assert set(found["properties"]) == set(properties)
    nulls = dict.fromkeys(properties)
    assert set(without_strict_nulls(nulls, {"properties": properties, "$defs": defs})) <= set(nulls)
