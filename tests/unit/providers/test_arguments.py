import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_server import load_case

from littleghost.messages import ToolUse
from littleghost.providers.arguments import (
    make_tool_use,
    parse_arguments,
    replay_arguments,
)

CASE = load_case("toolcall-arguments-not-an-object")
NESTED = load_case("toolcall-nested-values-double-encoded")


def strict(text):
    def refuse(name):
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("text", CASE["input"]["arguments_strings"])
def test_arguments_are_an_object_or_an_error_and_can_be_sent_back(text):
    value, error = parse_arguments(text)
    use = make_tool_use("call_1", "f", text)

    if text in CASE["expected"]["accept_repair"]:
        assert (value, error) == ({"n": 1}, None)
        assert replay_arguments(use) == '{"n":1}'
    else:
        assert value == {}
        assert error is not None
        assert use.arguments == text
        assert strict(replay_arguments(use)) == {"_invalid": text}


@pytest.mark.parametrize("text", ["", "  \n", "null", None])
def test_no_arguments_are_an_empty_object(text):
    use = make_tool_use("call_1", "f", text)

    assert use.input == {}
    assert use.error is None
    assert replay_arguments(use) == "{}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "not an array"),
        ('"text"', "not text"),
        ('{"n": NaN}', "NaN is not JSON"),
        ('{"n": 1e999}', "too large"),
        ('{"n": 1, "n": 2}', "'n' stands there twice"),
        ('{"n": 1} {"n": 2}', "Extra data"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested more than 64"),
        ('{"a":' + "[" * 100_000, "nested more than 64"),
        ('{"n": ' + "9" * 5000 + "}", "4300"),
        ('{"a": "' + "x" * 2**20 + '"}', "longer than 1048576"),
    ],
)
def test_the_model_is_told_what_is_wrong(text, told):
    value, error = parse_arguments(text)

    assert value == {}
    assert error is not None
    assert told in error


def test_many_flat_brackets_are_not_deep():
    text = json.dumps({"rows": [[n] for n in range(1000)], "text": "[" * 500})

    assert parse_arguments(text)[1] is None


def test_valid_arguments_go_back_byte_for_byte():
    text = '{ "b" : 1.50,\n "a" : "\\u00e9" }'

    assert replay_arguments(make_tool_use("1", "f", text)) == text


def test_lone_surrogates_and_nul_are_replaced_in_the_value_and_in_what_goes_back():
    text = load_case("payload-lone-surrogates")["input"]["tool_arguments_wire"]
    use = make_tool_use("1", "f", text[:-1] + ', "nul": "a\\u0000b", "six": "\\\\u0000"}')

    assert use.input["text"] == "\ufffd \u3131"
    assert use.input["pair"] == "\U0001f980"
    assert use.input["nul"] == "a\ufffdb"
    assert use.input["six"] == "\\u0000"
    sent = replay_arguments(use)
    assert json.loads(sent) == use.input
    sent.encode("utf-8")


def test_an_object_that_was_encoded_twice_is_taken():
    inner = NESTED["input"]["arguments_string"]

    assert parse_arguments(NESTED["input"]["also_try"]) == parse_arguments(inner)


def test_a_stored_call_with_unusable_text_still_makes_a_valid_request():
    use = ToolUse("1", "f", {"n": 1}, arguments="{'n': 1}")

    assert strict(replay_arguments(use)) == {"_invalid": "{'n': 1}"}


def test_a_call_without_a_name_is_an_error():
    assert make_tool_use("1", "", "{}").error == "the call does not name a tool"


@given(
    st.text(max_size=60)
    | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_whatever_the_model_writes_what_goes_back_is_a_strict_json_object(text):
    use = make_tool_use("1", "f", text)
    sent = replay_arguments(use)

    sent.encode("utf-8")
    assert isinstance(strict(sent), dict)
    if use.error is None:
        assert strict(sent) == use.input
