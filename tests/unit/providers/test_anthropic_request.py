"""The building of Anthropic requests: valid whatever the history holds."""

import json

import pytest
from anthropic_wire import assert_valid_request
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_server import load_case

from littleghost.errors import InvalidRequestError
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
from littleghost.providers.anthropic_history import GO_ON, NO_OUTPUT, OPENING
from littleghost.providers.anthropic_request import DEFAULT_MAX_TOKENS, build_request
from littleghost.providers.history import NO_RESULT
from littleghost.providers.profiles import PROFILES
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import encode_body

ORIGIN = {"origin": "anthropic:m"}
SPEC = ToolSpec("f", "d", {"type": "object", "properties": {"n": {"type": "integer"}}})
EPHEMERAL = {"type": "ephemeral"}


def build(*messages, tools=(), **options):
    request = ModelRequest(model="m", messages=messages, tools=tools, settings=options)
    body = build_request(request, PROFILES["anthropic"])
    assert_valid_request(json.loads(encode_body(body)))
    return body


def sent(*messages, **options):
    return build(*messages, **options)["messages"]


def calls(*ids, text=""):
    uses = tuple(ToolUse(id_, "f", {"n": 1}, '{"n": 1}') for id_ in ids)
    return Message("assistant", (Text(text), *uses) if text else uses)


def result(id_, content="r", status="success"):
    return Message("tool", (ToolResult(id_, content, status),))


def text(value):
    return {"type": "text", "text": value}


def test_an_ordinary_conversation():
    body = build(
        system("s"), user("u"), calls("a", text="t"), result("a"), assistant("done"), user("more")
    )

    assert body["system"] == [text("s")]
    assert body["messages"] == [
        {"role": "user", "content": [text("u")]},
        {
            "role": "assistant",
            "content": [text("t"), {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}],
        },
        {"role": "assistant", "content": [text("done")]},
        {"role": "user", "content": [text("more")]},
    ]
    assert (body["model"], body["stream"], body["max_tokens"]) == ("m", True, DEFAULT_MAX_TOKENS)


def test_messages_of_one_role_are_joined():
    messages = sent(user("a"), user("b"), assistant("c"), assistant("d"), user("e"))

    assert [[part["text"] for part in m["content"]] for m in messages] == [
        ["a", "b"],
        ["c", "d"],
        ["e"],
    ]


def test_results_of_one_turn_come_in_one_message_before_anything_else():
    messages = sent(user("u"), calls("a", "b"), result("b", "2"), user("and"), result("a", "1"))

    assert [part.get("tool_use_id", part.get("text")) for part in messages[2]["content"]] == [
        "a",
        "b",
        "and",
    ]
    assert [part["content"] for part in messages[2]["content"][:2]] == ["1", "2"]


def test_a_call_without_a_result_gets_one_that_is_an_error():
    case = load_case("dangling-tool-calls-in-session")
    messages = sent(user("u"), calls("t1", "t2"), result("t1", "one"), user("again"))
    first, second = messages[2]["content"][:2]

    assert case["firmness"] == "must"
    assert first == {"type": "tool_result", "tool_use_id": "t1", "content": "one"}
    assert second["content"] == NO_RESULT
    assert second["is_error"] is True


def test_a_failed_call_says_so():
    part = sent(user("u"), calls("a"), result("a", "no", "error"))[2]["content"][0]

    assert (part["content"], part["is_error"]) == ("no", True)


def test_blank_texts_are_left_out_and_blank_results_are_named():
    messages = sent(
        user("go"),
        calls("a", text="\n\n"),
        result("a", ""),
        assistant(" "),
        Message("assistant", ()),
        user("again"),
    )

    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert [part["type"] for part in messages[1]["content"]] == ["tool_use"]
    assert [part.get("content") for part in messages[2]["content"]] == [NO_OUTPUT, None]


def test_a_turn_that_only_calls_has_no_text():
    case = load_case("history-null-content-dialects")["input"]
    told = case["conversation"][1]["tool_calls"][0]
    use = ToolUse(told["id"], told["name"], told["arguments"])
    messages = sent(user("Add 2 and 3"), Message("assistant", (use,)), result(told["id"], "5"))

    assert [part["type"] for part in messages[1]["content"]] == ["tool_use"]


def test_a_user_begins_and_ends():
    assert sent() == [{"role": "user", "content": [text(GO_ON)]}]
    assert sent(system("s")) == [{"role": "user", "content": [text(GO_ON)]}]
    assert [m["content"][0]["text"] for m in sent(assistant("a"))] == [OPENING, "a", GO_ON]


def test_a_late_system_message_stays_in_its_place():
    body = build(
        system("s"), Message("developer", (Text("d"),)), user("u"), assistant("a"), system("late")
    )

    assert body["system"] == [text("s"), text("d")]
    assert body["messages"][2]["content"] == [text("<system>\nlate\n</system>")]


def test_images_and_documents():
    message = Message(
        "user",
        (
            Image(b"\x89PNG", "image/png"),
            Image(b"\xff", "image/JPG"),
            Image(b"?", "image/tiff", "x"),
            Document(b"%PDF", "application/pdf", "a.pdf"),
            Document("né".encode(), "text/markdown", "b.md"),
            Document(b" ", "text/plain", "c.txt"),
            Document(b"PK", "application/zip", "d\ud800.zip"),
        ),
    )
    parts = sent(message)[0]["content"]

    assert parts[0]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert parts[1]["source"]["media_type"] == "image/jpeg"
    assert parts[2] == text("[Image 'x' of type 'image/tiff' cannot be shown to you.]")
    assert parts[3] == {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
        "title": "a.pdf",
    }
    assert parts[4]["source"] == {"type": "text", "media_type": "text/plain", "data": "né"}
    assert parts[5] == text("[Document 'c.txt' is empty.]")
    assert "cannot be shown" in parts[6]["text"]


def test_names_and_ids_are_made_legal():
    names = load_case("tool-name-mapping")["input"]["tool_names"]
    uses = tuple(ToolUse(f"functions.f:{n}", name, {}) for n, name in enumerate(names))
    results = tuple(ToolResult(use.id, use.name) for use in uses)
    specs = [ToolSpec(name, "", {}) for name in names]
    body = build(user("u"), Message("assistant", uses), Message("tool", results), tools=specs)

    sent_names = [part["name"] for part in body["messages"][1]["content"]]
    assert sent_names == [tool["name"] for tool in body["tools"]]
    assert len(set(sent_names)) == len(names)
    assert body["tools"][0].keys() == {"name", "input_schema"}
    assert body["tools"][0]["input_schema"] == {"type": "object"}


def test_reasoning_goes_back_only_to_the_model_that_signed_it():
    def kinds(block, **options):
        message = Message("assistant", (block, ToolUse("a", "f", {})))
        return [part["type"] for part in sent(user("u"), message, **options)[1]["content"]]

    assert kinds(Reasoning("t", "s", details=ORIGIN)) == ["thinking", "tool_use"]
    assert kinds(Reasoning("", "s", details=ORIGIN)) == ["thinking", "tool_use"]
    assert kinds(Reasoning(redacted="d", details=ORIGIN)) == ["redacted_thinking", "tool_use"]
    for foreign in (
        Reasoning("t", "s"),
        Reasoning("t", "s", details={"origin": "anthropic:other"}),
        Reasoning("t", "s", details={"origin": "openrouter:m", "items": []}),
        Reasoning("t", "s", details="odd"),
        Reasoning("t", details=ORIGIN),
    ):
        assert kinds(foreign) == ["tool_use"]


def test_a_turn_never_ends_with_thinking():
    thought = Reasoning("t", "s", details=ORIGIN)
    messages = sent(
        user("u"), Message("assistant", (thought,)), Message("assistant", (Text("x"), thought))
    )

    assert messages[1]["content"] == [text("x")]


def test_the_schema_and_description_of_a_tool():
    tool = build(user("u"), tools=[SPEC])["tools"][0]

    assert tool == {"name": "f", "description": "d", "input_schema": SPEC.input_schema}


def test_a_conversation_with_calls_keeps_its_tools_declared_when_none_are_offered():
    body = build(user("u"), calls("a", "b"), result("a"))

    assert body["tools"] == [{"name": "f", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}
    assert "tools" not in build(user("u"), tool_choice="auto", parallel_tool_calls=False)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "a.b"}, {"type": "tool", "name": wire_name("a.b")}),
        ({"tool_choice": {"type": "any"}}, {"type": "any"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"parallel_tool_calls": True}, None),
        ({}, None),
    ],
)
def test_the_choice_of_tools(given, choice):
    assert build(user("u"), tools=[SPEC], **given).get("tool_choice") == choice


def test_settings():
    body = build(
        user("u"),
        max_tokens=5,
        temperature=0.5,
        top_p=None,
        stop=["END", " "],
        model="x",
        stream=False,
        metadata={"user_id": "7\ud800"},
    )

    assert (body["model"], body["stream"], body["max_tokens"]) == ("m", True, 5)
    assert (body["temperature"], body["stop_sequences"]) == (0.5, ["END"])
    assert body["metadata"] == {"user_id": "7\ufffd"}
    assert not body.keys() & {"top_p", "stop"}
    assert build(user("u"), max_completion_tokens=6)["max_tokens"] == 6
    assert build(user("u"), stop="END")["stop_sequences"] == ["END"]


@pytest.mark.parametrize(
    ("given", "thinking", "max_tokens"),
    [
        (True, {"type": "adaptive"}, DEFAULT_MAX_TOKENS),
        (False, {"type": "disabled"}, DEFAULT_MAX_TOKENS),
        (2048, {"type": "enabled", "budget_tokens": 2048}, DEFAULT_MAX_TOKENS),
        (50_000, {"type": "enabled", "budget_tokens": 50_000}, 58_000),
        ({"type": "adaptive", "display": "omitted"}, None, DEFAULT_MAX_TOKENS),
    ],
)
def test_thinking(given, thinking, max_tokens):
    body = build(user("u"), thinking=given)

    assert body["thinking"] == (thinking or given)
    assert body["max_tokens"] == max_tokens


def test_a_budget_waits_for_a_turn_that_it_can_begin_with():
    made = Reasoning("t", "s", details=ORIGIN)
    with_thinking = Message("assistant", (made, ToolUse("a", "f", {})))

    assert "thinking" in build(user("u"), with_thinking, result("a"), thinking=2048)
    assert "thinking" not in build(user("u"), calls("a"), result("a"), thinking=2048)
    assert "thinking" in build(user("u"), calls("a"), result("a"), thinking=True)


def test_cache_marks_stand_at_the_end_of_what_repeats():
    two = [SPEC, ToolSpec("g", "", {})]
    turns = [user("u"), calls("a"), result("a"), calls("b"), result("b")]
    body = build(system("s"), *turns, tools=two, cache=True)
    hour = build(user("u"), cache="1h")
    plain = build(system("s"), user("u"), tools=two)

    assert [tool.get("cache_control") for tool in body["tools"]] == [None, EPHEMERAL]
    assert body["system"][-1]["cache_control"] == EPHEMERAL
    marked = [message["content"][-1].get("cache_control") for message in body["messages"]]
    assert marked == [None, None, EPHEMERAL, None, EPHEMERAL]
    # The service takes four at most.
    assert json.dumps(body).count("cache_control") == 4
    assert "cache" not in body
    assert hour["messages"][0]["content"][0]["cache_control"] == {**EPHEMERAL, "ttl": "1h"}
    assert "cache_control" not in json.dumps(plain)


@pytest.mark.parametrize(("name", "value"), [("cache", "2h"), ("cache", 7), ("thinking", "high")])
def test_a_setting_that_means_nothing_is_refused_by_name(name, value):
    with pytest.raises(InvalidRequestError, match=f"'{name}' is {value!r}"):
        build(user("u"), **{name: value})


def test_surrogates_and_nul_are_cleaned_everywhere():
    bad = eval(load_case("payload-lone-surrogates")["input"]["tool_output_python"]) + "\0"
    use = ToolUse("a\ud800", "n\ud800", {"k\ud800": bad})
    thought = Reasoning(bad, bad, details=ORIGIN)
    body = build(
        system(bad),
        user(bad),
        Message("assistant", (thought, Text(bad), use)),
        Message("tool", (ToolResult("a\ud800", bad),)),
        tools=[ToolSpec("n\ud800", bad, {"description": bad})],
        metadata={"user_id": bad},
    )

    assert body["system"][0]["text"] == "ok \ufffd end \ufffd \U0001f980 café\ufffd"
    assert body["messages"][2]["content"][0]["content"] == body["system"][0]["text"]
    assert body["messages"][1]["content"][2]["input"] == {"k\ufffd": body["system"][0]["text"]}


def test_unreadable_arguments_and_values_without_a_json_form_can_be_sent():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    odd = ToolUse("a", "f", {"nan": float("nan"), "deep": deep})
    broken = ToolUse("b", "f", {}, "{broken", "the arguments are not valid JSON")
    parts = sent(user("u"), Message("assistant", (odd, broken)))[1]["content"]

    assert parts[0]["input"]["nan"] is None
    assert parts[1]["input"] == {"_invalid": "{broken"}


TEXTS = st.text(st.characters(codec=None), max_size=8)
IDS = st.sampled_from(["", "a", "b", "a.b", "\ud800"])
ORIGINS = st.sampled_from([None, ORIGIN, {"origin": "other"}, "odd"])
BLOCKS = st.one_of(
    TEXTS.map(Text),
    st.builds(ToolUse, IDS, TEXTS, st.just({}), st.none() | TEXTS, st.none() | st.just("bad")),
    st.builds(ToolResult, IDS, TEXTS),
    st.builds(Reasoning, TEXTS, st.none() | TEXTS, st.none() | TEXTS, ORIGINS),
    st.builds(Image, st.binary(max_size=2), st.sampled_from(["image/png", "image/bmp"])),
    st.builds(
        Document,
        st.binary(max_size=2),
        st.sampled_from(["text/plain", "application/pdf", "x/y"]),
        TEXTS,
    ),
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
MESSAGES = st.builds(Message, ROLES, st.lists(BLOCKS, max_size=4).map(tuple))


@given(st.lists(MESSAGES, max_size=8), st.booleans())
@settings(deadline=None)
def test_any_history_makes_a_valid_request(history, has_tools):
    build(*history, tools=[SPEC] if has_tools else (), cache=True, thinking=2048)
