"""The building of Gemini requests: valid whatever the history holds."""

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_server import load_case

from littleghost.errors import DefinitionError
from littleghost.messages import (
    Document,
    Image,
    Message,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    assistant,
    system,
    user,
)
from littleghost.providers import ModelRequest, ToolSpec
from littleghost.providers.gemini_request import NOTHING_SAID, build_request
from littleghost.providers.gemini_signatures import SKIP_CHECK, Signed
from littleghost.providers.history import NO_RESULT
from littleghost.providers.tool_names import letter_first_name
from littleghost.providers.wire_text import encode_body

ORIGIN = "gemini:m"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def build(*messages, tools=(), model="m", **options):
    request = ModelRequest(model=model, messages=messages, tools=tools, settings=options)
    body = build_request(request, ORIGIN)
    assert_valid(body)
    return body


def sent(*messages, **options):
    return build(*messages, **options)["contents"]


def assert_valid(body):
    """Roles take turns, a user begins and ends, and calls are answered in their order."""
    contents = body["contents"]
    encode_body(body).decode("utf-8")
    roles = [content["role"] for content in contents]
    assert roles[0] == roles[-1] == "user"
    assert all(a != b for a, b in itertools.pairwise(roles))
    for position, content in enumerate(contents):
        assert content["parts"]
        for part in content["parts"]:
            assert part.get("text", "x") or part.get("thoughtSignature")
        calls = [p["functionCall"] for p in content["parts"] if "functionCall" in p]
        assert all(NAME.fullmatch(call["name"]) for call in calls)
        assert all(isinstance(call["args"], dict) for call in calls)
        if content["role"] == "model":
            answers = [
                part["functionResponse"]
                for part in contents[position + 1]["parts"]
                if "functionResponse" in part
            ]
            assert [(a["name"], a.get("id")) for a in answers] == [
                (c["name"], c.get("id")) for c in calls
            ]
            assert all(isinstance(answer["response"], dict) for answer in answers)
        elif position == 0:
            assert not any("functionResponse" in part for part in content["parts"])


def texts(content):
    return [part["text"] for part in content["parts"] if "text" in part]


def calls(*ids, name="f", before=()):
    uses = tuple(ToolUse(id_, name, {"n": 1}, '{"n": 1}') for id_ in ids)
    return Message("assistant", (*before, *uses))


def result(id_, content="r", status="success"):
    return Message("tool", (ToolResult(id_, content, status),))


def test_an_ordinary_conversation():
    body = build(
        system("s"),
        user("u"),
        calls("a", before=(Text("t"),)),
        result("a"),
        assistant("done"),
        user("more"),
    )

    assert body["systemInstruction"] == {"parts": [{"text": "s"}]}
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "u"}]},
        {
            "role": "model",
            "parts": [{"text": "t"}, {"functionCall": {"name": "f", "args": {"n": 1}}}],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}],
        },
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": "more"}]},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [system("only")],
        [assistant("first")],
        [user("")],
        [user("u"), Message("assistant", ()), assistant("")],
        [user("u"), Message("assistant", (Reasoning("hm", "sig"),))],
        [calls("a")],
        [assistant("a"), calls("a"), calls("b")],
        [user("a"), user("b"), assistant("c"), assistant("d")],
        [result("gone"), Message("tool", (Text("odd"),))],
    ],
)
def test_odd_histories_are_made_valid(messages):
    contents = sent(*messages)

    assert contents[0]["role"] == contents[-1]["role"] == "user"


def test_messages_of_one_role_are_put_together():
    contents = sent(user("a"), user("b"), assistant("c"), assistant("d"))

    assert [texts(content) for content in contents] == [["a", "b"], ["c", "d"], [NOTHING_SAID]]


def test_a_call_without_a_result_gets_one_that_says_so():
    contents = sent(user("u"), calls("a", "b"), result("b", "two"), user("and?"))
    answers = [p["functionResponse"]["response"] for p in contents[2]["parts"][:2]]

    assert answers == [{"error": NO_RESULT}, {"output": "two"}]
    assert texts(contents[2]) == ["and?"]


def test_an_error_is_told_as_an_error():
    contents = sent(user("u"), calls("a"), result("a", "broken", "error"))

    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"error": "broken"}


def test_a_result_that_holds_references_is_sent_as_text():
    output = json.dumps(load_case("tool-result-with-ref-text")["input"]["tool_output"])
    contents = sent(user("u"), calls("a"), result("a", output))
    answer = contents[2]["parts"][0]["functionResponse"]

    assert answer["response"] == {"output": output}


def test_names_from_the_case_become_legal_and_stay_different():
    case = load_case("tool-name-mapping")["input"]
    names = [name for name in case["tool_names"] if name]
    tools = [ToolSpec(name, "d", {}) for name in names]
    body = build(user("u"), *(calls(n, name=n) for n in names), tools=tools)
    wire = [d["name"] for d in body["tools"][0]["functionDeclarations"]]

    assert all(re.fullmatch(case["patterns"]["gemini"], name) for name in wire)
    assert len(set(wire)) == len(names)
    assert wire == [letter_first_name(name) for name in names]
    assert NAME.fullmatch(letter_first_name(""))
    assert letter_first_name("files-read") == "files-read"


def test_unreadable_arguments_are_sent_as_an_object():
    use = ToolUse("a", "f", {}, '{"n":', "not JSON")
    contents = sent(user("u"), Message("assistant", (use,)))

    assert contents[1]["parts"][0]["functionCall"]["args"] == {"_invalid": '{"n":'}


def test_images_and_documents():
    content = (
        Text("look"),
        Image(b"png", "image/png"),
        Document(b"%PDF", "application/pdf", "a.pdf"),
        Document(b"a,b", "text/csv", "t.csv"),
    )
    (only,) = sent(Message("user", content))

    assert only["parts"] == [
        {"text": "look"},
        {"inlineData": {"mimeType": "image/png", "data": "cG5n"}},
        {"text": "Document a.pdf:"},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"text": "Document t.csv:\n\na,b"},
    ]


def test_signatures_and_ids_go_back_to_where_they_came_from():
    signed = Message(
        "assistant",
        (
            Signed("thought", "s0").block(ORIGIN, "hm"),
            Reasoning("an unsigned thought"),
            Signed("next", "s1").block(ORIGIN),
            Text("t"),
            Signed("next", "s2", "their-id").block(ORIGIN),
            ToolUse("ours", "f", {}),
            ToolUse("b", "g", {}),
            Signed("text", "s3").block(ORIGIN),
        ),
    )
    contents = sent(user("u"), signed, result("ours"), result("b"))

    assert contents[1]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "s0"},
        {"text": "t", "thoughtSignature": "s1"},
        {
            "functionCall": {"name": "f", "args": {}, "id": "their-id"},
            "thoughtSignature": "s2",
        },
        {"functionCall": {"name": "g", "args": {}}},
        {"text": "", "thoughtSignature": "s3"},
    ]
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "their-id"


@pytest.mark.parametrize(
    "foreign",
    [
        Reasoning("hm", signature="claude"),
        Reasoning("hm", redacted="x"),
        Signed("next", "s", "id").block("gemini:another"),
        Signed("next", "s").block("vertex:m"),
        Reasoning("hm", details={"origin": ORIGIN, "signs": "everything"}),
        Reasoning("hm", details=[1]),
    ],
)
def test_the_reasoning_of_others_is_left_out(foreign):
    contents = sent(user("u"), calls("a", before=(foreign,)), result("a"))

    assert contents[1]["parts"] == [{"functionCall": {"name": "f", "args": {"n": 1}}}]


def test_gemini_3_is_told_of_calls_that_it_did_not_sign():
    model = "models/gemini-3.1-pro"
    contents = sent(
        user("u"),
        calls("old"),
        result("old"),
        user("again"),
        calls("a", "b"),
        result("a"),
        result("b"),
        model=model,
    )
    unsigned, now = contents[1]["parts"], contents[3]["parts"]

    assert "thoughtSignature" not in unsigned[0]
    assert [part.get("thoughtSignature") for part in now] == [SKIP_CHECK, None]
    before = sent(user("u"), calls("a"), result("a"), model="gemini-2.5-pro")
    assert "thoughtSignature" not in before[1]["parts"][0]


def test_what_cannot_be_sent_is_replaced():
    contents = sent(user("a\ud800\0b"), calls("x", before=(Text("\udc00"),)), result("x", "\0"))

    assert texts(contents[0]) == ["a\ufffd\ufffdb"]
    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"output": "\ufffd"}


def test_tools_and_their_schemas():
    schema = {"type": "object", "properties": {"n": {"const": "a"}}, "additionalProperties": False}
    body = build(user("u"), tools=[ToolSpec("f", "does f", schema), ToolSpec("g", "", {})])

    assert body["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "f",
                    "description": "does f",
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {"n": {"type": "STRING", "enum": ["a"]}},
                    },
                },
                {"name": "g", "description": ""},
            ]
        }
    ]
    with pytest.raises(DefinitionError, match=r"tool 'h'.*\$\.properties\.n refers to itself"):
        build(user("u"), tools=[ToolSpec("h", "", {"properties": {"n": {"$ref": "#"}}})])


def test_settings_get_gemini_s_names():
    tools = [ToolSpec("get.it", "d", {})]
    body = build(
        user("u"),
        tools=tools,
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        stop="END",
        seed=None,
        parallel_tool_calls=False,
        thinking_config={"includeThoughts": True},
        safety_settings=[{"category": "c", "threshold": "t"}],
        tool_choice="get.it",
        contents=[],
    )

    assert body["generationConfig"] == {
        "maxOutputTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["END"],
        "thinkingConfig": {"includeThoughts": True},
    }
    assert body["safetySettings"] == [{"category": "c", "threshold": "t"}]
    assert body["toolConfig"] == {
        "functionCallingConfig": {
            "mode": "ANY",
            "allowedFunctionNames": [letter_first_name("get.it")],
        }
    }


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (
            {"type": "function", "function": {"name": "f"}},
            {"mode": "ANY", "allowedFunctionNames": ["f"]},
        ),
    ],
)
def test_tool_choices(choice, config):
    body = build(user("u"), tools=[ToolSpec("f", "", {})], tool_choice=choice)

    assert body["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in build(user("u"), tool_choice=choice)


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3-pro", "low", {"thinkingLevel": "low"}),
        ("gemini-3-pro", "none", {"thinkingLevel": "minimal"}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "high", {"thinkingBudget": 24576}),
    ],
)
def test_reasoning_effort(model, effort, config):
    body = build(user("u"), model=model, reasoning_effort=effort)

    assert body["generationConfig"]["thinkingConfig"] == config


def test_a_response_format():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}

    assert build(user("u"), response_format=asked)["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
    }
    plain = build(user("u"), response_format={"type": "text"})
    assert "generationConfig" not in plain


TEXTS = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\ud800\udc00\0"), max_size=4
)
IDS = st.sampled_from(["a", "b", "", "\ud800"])
BLOCKS = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(ToolUse, IDS, TEXTS, st.just({"a": "\0"})),
    st.builds(ToolResult, IDS, TEXTS),
    st.builds(Reasoning, TEXTS),
    st.builds(
        lambda signs, signature, id_: Signed(signs, signature, id_).block(ORIGIN),
        st.sampled_from(["next", "text", "thought"]),
        st.just("sig"),
        st.sampled_from(["", "x"]),
    ),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    st.lists(BLOCKS, max_size=4).map(tuple),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(MESSAGES, max_size=6), st.sampled_from(["m", "gemini-3-pro"]))
def test_any_history_becomes_a_valid_request(messages, model):
    build(*messages, model=model)
