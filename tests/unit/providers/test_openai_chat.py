"""The building of requests: valid whatever the history holds."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from provider_checks import assert_valid_pairs
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
from littleghost.providers.history import NO_RESULT
from littleghost.providers.openai_chat import build_request
from littleghost.providers.profiles import PROFILES, Profile
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import clean_text, encode_body

OPENAI = PROFILES["openai"]


def build(*messages, profile=OPENAI, tools=(), **options):
    request = ModelRequest(model="m", messages=messages, tools=tools, settings=options)
    return build_request(request, profile)


def sent(*messages, **options):
    return build(*messages, **options)["messages"]


def calls(*ids, text=""):
    uses = tuple(ToolUse(id_, "f", {"n": 1}, '{"n": 1}') for id_ in ids)
    return Message("assistant", (Text(text), *uses) if text else uses)


def result(id_, content="r"):
    return Message("tool", (ToolResult(id_, content),))


def test_an_ordinary_conversation():
    messages = sent(system("s"), user("u"), calls("a", text="t"), result("a"), assistant("done"))

    function = {"name": "f", "arguments": '{"n": 1}'}
    assert messages == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "content": "t",
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "r"},
        {"role": "assistant", "content": "done"},
    ]


def test_servers_that_disagree_about_content_both_get_what_they_accept():
    case = load_case("history-null-content-dialects")["input"]
    call = case["conversation"][1]["tool_calls"][0]
    use = ToolUse(call["id"], call["name"], call["arguments"])
    history = [user("Add 2 and 3"), Message("assistant", (use,)), result(call["id"], "5")]

    assert sent(*history, profile=PROFILES["ollama"])[1]["content"] == ""
    assert sent(*history, profile=PROFILES["lm_studio"])[1]["content"] == ""
    assert sent(*history, profile=OPENAI)[1]["content"] is None
    assert sent(*history, profile=Profile(name="x", tool_call_content="string"))[1]["content"] == ""


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_an_empty_assistant_turn_is_left_out(profile):
    empty = [Message("assistant", ()), assistant(""), Message("assistant", (Reasoning("hm"),))]

    assert sent(user("u"), *empty, profile=profile) == [{"role": "user", "content": "u"}]


def test_a_call_without_a_result_gets_one_in_the_request():
    messages = sent(user("u"), calls("t1", "t2"), result("t1", "one"), user("again"))

    assert_valid_pairs(messages)
    assert [m["content"] for m in messages if m["role"] == "tool"] == ["one", NO_RESULT]
    assert messages[-1] == {"role": "user", "content": "again"}


def test_a_result_that_nothing_asked_for_is_left_out():
    messages = sent(result("gone"), user("u"), Message("tool", (Text("odd"),)))

    assert messages == [{"role": "user", "content": "u"}]


def test_a_result_that_comes_late_or_in_a_user_message_stands_with_its_call():
    late = Message("user", (ToolResult("b", "late"), Text("and more")))
    messages = sent(user("u"), calls("a", "b"), user("hurry"), result("a"), late)

    assert_valid_pairs(messages)
    assert [m["content"] for m in messages[2:]] == ["r", "late", "hurry", "and more"]


def test_several_results_in_one_message_become_several():
    both = Message("tool", (ToolResult("b", "2"), ToolResult("a", "1")))
    messages = sent(calls("a", "b"), both)

    assert [(m["tool_call_id"], m["content"]) for m in messages[1:]] == [("a", "1"), ("b", "2")]


def test_ids_used_twice_are_told_apart():
    messages = sent(
        calls("x", "x", ""),
        result("x", "1"),
        result("x", "2"),
        result("", "3"),
        calls("x"),
        result("x", "4"),
        calls("x"),
        result("x", "5"),
    )

    assert_valid_pairs(messages)
    ids = [call["id"] for m in messages for call in m.get("tool_calls", [])]
    assert len(set(ids)) == 5
    assert [m["content"] for m in messages if m["role"] == "tool"] == ["1", "2", "3", "4", "5"]
    assert messages == sent(
        calls("x", "x", ""),
        result("x", "1"),
        result("x", "2"),
        result("", "3"),
        calls("x"),
        result("x", "4"),
        calls("x"),
        result("x", "5"),
    )


def test_the_developer_role_is_sent_where_it_is_known():
    message = Message("developer", (Text("d"),))

    assert sent(message)[0]["role"] == "developer"
    assert sent(message, profile=PROFILES["vllm"])[0]["role"] == "system"


def test_images_and_documents():
    message = Message(
        "user",
        (
            Text("look"),
            Image(b"\x89PNG", "image/png"),
            Document(b"%PDF", "application/pdf", "a.pdf"),
            Document("né".encode(), "text/plain", "b.txt"),
        ),
    )
    parts = sent(message)[0]["content"]

    assert parts[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
    assert parts[2]["file"] == {
        "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,JVBERg==",
    }
    assert parts[3] == {"type": "text", "text": "Document b.txt:\n\nné"}


def test_settings_and_tools():
    spec = ToolSpec("files.read", "d", {})
    body = build(
        user("u"),
        tools=[spec],
        max_tokens=5,
        temperature=0.5,
        stop=None,
        model="x",
        tool_choice="files.read",
        stream=False,
    )

    assert body["model"] == "m"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_completion_tokens"] == 5
    assert body["tool_choice"]["function"]["name"] == wire_name("files.read")
    assert body["tools"][0]["function"] == {
        "name": wire_name("files.read"),
        "description": "d",
        "parameters": {"type": "object", "properties": {}},
    }
    assert "stop" not in body


def test_tool_settings_without_tools_are_left_out():
    body = build(
        user("u"),
        tool_choice="auto",
        parallel_tool_calls=False,
        max_tokens=1,
        profile=PROFILES["vllm"],
    )

    assert body.keys() == {"model", "messages", "stream", "stream_options", "max_tokens"}


def test_reasoning_goes_back_only_to_the_model_it_came_from():
    items = [{"type": "reasoning.text", "text": "a", "signature": "s"}]

    def details(origin, profile):
        block = Reasoning("a", details={"origin": origin, "items": items})
        message = Message("assistant", (block, ToolUse("a", "f", {})))
        return sent(message, profile=profile)[0].get("reasoning_details")

    assert details("openrouter:m", PROFILES["openrouter"]) == items
    assert details("openrouter:other", PROFILES["openrouter"]) is None
    assert details("openrouter:m", OPENAI) is None


def test_surrogates_and_nul_are_cleaned_everywhere():
    bad = load_case("payload-lone-surrogates")["input"]
    text = eval(bad["tool_output_python"])
    use = ToolUse("a\ud800", "n\ud800", {"k\ud800": text})
    body = encode_body(
        build(
            system(text),
            user(text + "\0"),
            Message("assistant", (Text(text), use)),
            Message("tool", (ToolResult("a\ud800", text),)),
            tools=[ToolSpec("n\ud800", text, {"description": text})],
            user=text,
        )
    )
    value = json.loads(body.decode("utf-8"))

    assert "\ud83d" not in body.decode("utf-8")
    assert value["messages"][0]["content"] == "ok \ufffd end \ufffd \U0001f980 café"
    assert value["messages"][3]["content"] == value["messages"][0]["content"]
    assert_valid_pairs(value["messages"])


def test_the_text_of_an_escape_is_left_alone():
    assert clean_text("a\\u0000b \\ud800") == "a\\u0000b \\ud800"


def test_values_without_a_json_form_are_made_to_have_one():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    use = ToolUse("a", "f", {"nan": float("nan"), "inf": float("inf"), "deep": deep, "t": (1,)})
    body = json.loads(encode_body(build(Message("assistant", (use,)), top_p=float("nan"))))
    value = json.loads(body["messages"][0]["tool_calls"][0]["function"]["arguments"])

    assert (value["nan"], value["inf"], value["t"], body["top_p"]) == (None, None, [1], None)
    assert "nested too deeply" in json.dumps(value["deep"])


def test_a_body_that_is_no_json_is_refused():
    with pytest.raises(InvalidRequestError, match="cannot be written as JSON"):
        encode_body({"a": float("nan")})


TEXTS = st.text(st.characters(codec=None), max_size=8)
IDS = st.sampled_from(["", "a", "b", "\ud800"])
BLOCKS = st.one_of(
    TEXTS.map(Text),
    st.builds(ToolUse, IDS, TEXTS, st.just({}), st.none() | TEXTS, st.none() | st.just("bad")),
    st.builds(ToolResult, IDS, TEXTS),
    st.builds(Reasoning, TEXTS),
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
MESSAGES = st.builds(Message, ROLES, st.lists(BLOCKS, max_size=4).map(tuple))


@given(st.lists(MESSAGES, max_size=8), st.sampled_from(list(PROFILES.values())))
@settings(deadline=None)
def test_any_history_makes_a_valid_request(history, profile):
    body = json.loads(encode_body(build(*history, profile=profile)).decode("utf-8"))

    assert_valid_pairs(body["messages"])
    for message in body["messages"]:
        assert message["content"] or message.get("tool_calls") or message["role"] == "tool"
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert wire_name(call["function"]["name"]) == call["function"]["name"]
