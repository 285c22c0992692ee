"""The building of Responses requests: stateless, and valid whatever the history holds."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from responses_checks import assert_valid_input
from wire_server import load_case

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
from littleghost.providers.responses_request import build_request
from littleghost.providers.tool_names import wire_name
from littleghost.providers.wire_text import encode_body

ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def build(*messages, tools=(), model="m", **options):
    request = ModelRequest(model=model, messages=messages, tools=tools, settings=options)
    return build_request(request, "me")


def sent(*messages, **options):
    return build(*messages, **options)["input"]


def own(*items, origin="me"):
    return Reasoning("hm", details={"origin": origin, "items": list(items)})


def calls(*ids, before=()):
    uses = tuple(ToolUse(id_, "f", {"n": 1}, '{"n": 1}') for id_ in ids)
    return Message("assistant", (*before, *uses))


def result(id_, content="r"):
    return Message("tool", (ToolResult(id_, content),))


def output(id_, content):
    return {"type": "function_call_output", "call_id": id_, "output": content}


def test_an_ordinary_conversation():
    turn = calls("a", before=(own(ITEM), Text("t")))
    body = build(system("s"), user("u"), turn, result("a"), assistant("done"))

    assert body == {
        "model": "m",
        "instructions": "s",
        "input": [
            {"type": "message", "role": "user", "content": "u"},
            ITEM,
            {"type": "message", "role": "assistant", "content": "t"},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"n": 1}'},
            output("a", "r"),
            {"type": "message", "role": "assistant", "content": "done"},
        ],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }


def test_system_messages_are_instructions_only_at_the_beginning():
    body = build(system("a"), system("b"), user("u"), Message("developer", (Text("d"),)))

    assert body["instructions"] == "a\n\nb"
    assert body["input"][1] == {"type": "message", "role": "developer", "content": "d"}
    assert sent(system("only"))[0] == {"type": "message", "role": "system", "content": "only"}
    assert "instructions" not in build(system("only"))


def test_reasoning_goes_back_only_to_its_own_model_and_only_before_what_it_led_to():
    foreign = calls("a", before=(own(ITEM, origin="other"),))
    plain = calls("a", before=(Reasoning("hm", signature="s"),))
    alone = Message("assistant", (own(ITEM),))
    last = Message("assistant", (Text("x"), own(ITEM)))
    empty = Message("assistant", (own(ITEM), Text("")))
    no_content = calls("a", before=(own({"type": "reasoning", "id": "rs_1", "summary": []}),))

    for message in (foreign, plain, alone, last, empty, no_content):
        assert ITEM["id"] not in json.dumps(sent(user("u"), message))


def test_reasoning_stands_before_its_own_call_and_never_twice():
    second = {**ITEM, "id": "rs_2", "status": None, "content": None}
    message = Message(
        "assistant", (own(ITEM), ToolUse("a", "f", {}), own(second), ToolUse("b", "f", {}))
    )
    items = sent(message, message)

    kinds = [item.get("id") or item.get("call_id") for item in items]
    assert kinds == ["rs_1", "a", "rs_2", "b", "a", "b", "a_2", "b_2", "a_2", "b_2"]
    assert items[2] == {**ITEM, "id": "rs_2"}


def test_reasoning_in_plain_text_goes_back_too():
    item = {"id": "r", "content": [{"type": "reasoning_text", "text": "so"}]}

    assert sent(calls("a", before=(own(item),)))[0] == {"type": "reasoning", "summary": [], **item}


def test_the_phase_of_a_text_goes_back_to_its_own_model():
    def message(origin):
        phases = {"origin": origin, "phases": ["commentary", "odd"]}
        return Message("assistant", (Text("a"), Text("b")), {"openai_responses": phases})

    assert [item.get("phase") for item in sent(message("me"))] == ["commentary", None]
    assert [item.get("phase") for item in sent(message("other"))] == [None, None]


def test_a_session_with_a_call_that_was_never_answered():
    items = sent(user("u"), calls("t1", "t2"), result("t1", "one"), user("again"))

    assert_valid_input(items)
    assert items[3:5] == [output("t1", "one"), output("t2", NO_RESULT)]


def test_results_that_nothing_asked_for_and_empty_turns_are_left_out():
    empty = (Message("assistant", ()), assistant(""), Message("assistant", (Reasoning("hm"),)))
    odd = (result("gone"), Message("tool", (Text("odd"),)), user(""), system(""))

    assert len(sent(*odd, user("u"), *empty)) == 1


def test_ids_of_calls_that_are_too_long_or_used_twice():
    long = "x" * 300
    items = sent(
        calls(long, "a"), result(long, "1"), result("a", "2"), calls("a"), result("a", "3")
    )

    assert_valid_input(items)
    outputs = [item["output"] for item in items if item["type"] == "function_call_output"]
    assert outputs == ["1", "2", "3"]


def test_illegal_names_of_tools_are_mapped():
    message = Message("assistant", (ToolUse("a", "files.read", {}), ToolUse("b", "", {})))
    items = sent(message, tools=[ToolSpec("files.read", "d", {})])

    assert_valid_input(items)
    assert items[0]["name"] == wire_name("files.read")


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

    assert sent(message)[0]["content"] == [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERg==",
        },
        {"type": "input_text", "text": "Document b.txt:\n\nné"},
    ]


def test_settings_are_put_where_this_service_wants_them():
    body = build(
        user("u"),
        tools=[ToolSpec("files.read", "d", CLOSED)],
        max_tokens=5,
        temperature=0.5,
        top_p=None,
        reasoning={"effort": "low", "summary": "auto"},
        reasoning_effort="high",
        verbosity="low",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": CLOSED, "strict": True},
        },
        tool_choice="files.read",
        parallel_tool_calls=False,
        include=["message.output_text.logprobs"],
        model_="x",
        previous_response_id="resp_0",
        conversation="c",
        background=True,
        stream=False,
        input="x",
    )

    assert body.pop("input")[0]["content"] == "u"
    assert body == {
        "model": "m",
        "tools": [
            {
                "type": "function",
                "name": wire_name("files.read"),
                "description": "d",
                "parameters": CLOSED,
                "strict": True,
            }
        ],
        "max_output_tokens": 5,
        "temperature": 0.5,
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "n", "schema": CLOSED, "strict": True},
        },
        "tool_choice": {"type": "function", "name": wire_name("files.read")},
        "parallel_tool_calls": False,
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
        "model_": "x",
        "store": False,
        "stream": True,
    }


def test_tool_choice_in_the_words_of_the_chat_dialect():
    tools = [ToolSpec("f", "d", {})]
    named = {"type": "function", "function": {"name": "files.read"}}

    assert build(user("u"), tools=tools, tool_choice=named)["tool_choice"] == {
        "type": "function",
        "name": wire_name("files.read"),
    }
    assert build(user("u"), tools=tools, tool_choice="required")["tool_choice"] == "required"
    assert "tool_choice" not in build(user("u"), tool_choice="auto")


@pytest.mark.parametrize(
    ("model", "is_asked"),
    [("gpt-5.6-luna", True), ("o4-mini", True), ("gpt-4o", False), ("gpt-4.1-mini", False)],
)
def test_models_that_do_not_reason_are_not_asked_for_reasoning(model, is_asked):
    request = ModelRequest(model=model, messages=[user("u")])

    assert ("include" in build(user("u"), model=model)) == is_asked
    assert "include" in build_request(request, "me", encrypted_reasoning=True)
    assert "include" not in build_request(request, "me", encrypted_reasoning=False)


def test_strict_mode_is_claimed_only_for_schemas_that_keep_its_rules():
    schema = load_case("schema-strict-mode")["input"]["schema"]
    open_tool, closed_tool, bare = build(
        user("u"),
        tools=[ToolSpec("a", "d", schema), ToolSpec("b", "d", CLOSED), ToolSpec("c", "d", {})],
    )["tools"]

    assert (open_tool["strict"], open_tool["parameters"]) == (False, schema)
    assert (closed_tool["strict"], closed_tool["parameters"]) == (True, CLOSED)
    assert bare["parameters"]["additionalProperties"] is False


def test_surrogates_and_nul_are_cleaned_everywhere():
    text = eval(load_case("payload-lone-surrogates")["input"]["tool_output_python"])
    use = ToolUse("a\ud800", "n\ud800", {"k\ud800": text})
    item = {**ITEM, "summary": [{"type": "summary_text", "text": text}]}
    body = encode_body(
        build(
            system(text),
            user(text + "\0"),
            Message("assistant", (own(item), Text(text), use)),
            Message("tool", (ToolResult("a\ud800", text),)),
            tools=[ToolSpec("n\ud800", text, {"description": text})],
            user=text,
        )
    )
    value = json.loads(body.decode("utf-8"))
    clean = "ok \ufffd end \ufffd \U0001f980 café"

    assert "\ud83d" not in body.decode("utf-8")
    assert value["instructions"] == value["input"][4]["output"] == clean
    assert value["input"][1]["summary"][0]["text"] == clean
    assert_valid_input(value["input"])


def test_values_without_a_json_form_are_made_to_have_one():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    use = ToolUse("a", "f", {"nan": float("nan"), "deep": deep, "t": (1,)})
    spec = ToolSpec("f", "d", {"type": "object", "properties": {"deep": {"enum": deep}}})
    body = json.loads(
        encode_body(build(Message("assistant", (use,)), tools=[spec], top_p=float("inf")))
    )
    value = json.loads(body["input"][0]["arguments"])

    assert (value["nan"], value["t"], body["top_p"]) == (None, [1], None)
    assert "nested too deeply" in json.dumps(value["deep"])


TEXTS = st.text(st.characters(codec=None), max_size=8)
IDS = st.sampled_from(["", "a", "b", "\ud800", "x" * 70])
ODD = st.none() | st.text(max_size=3) | st.lists(st.none(), max_size=1)
ITEMS = st.fixed_dictionaries(
    {"id": st.sampled_from(["rs_1", "rs_2", ""]) | ODD},
    optional={"summary": ODD, "encrypted_content": ODD, "content": ODD, "type": ODD},
)
BLOCKS = st.one_of(
    TEXTS.map(Text),
    st.builds(ToolUse, IDS, TEXTS, st.just({}), st.none() | TEXTS, st.none() | st.just("bad")),
    st.builds(ToolResult, IDS, TEXTS),
    st.lists(st.just(ITEM) | ITEMS | st.just(3), max_size=2).map(lambda items: own(*items)),
    st.builds(Reasoning, TEXTS, details=ODD | st.just({"origin": "me", "items": 3})),
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
METADATA = st.sampled_from([{}, {"openai_responses": 3}, {"openai_responses": {"origin": "me"}}])
MESSAGES = st.builds(Message, ROLES, st.lists(BLOCKS, max_size=4).map(tuple), METADATA)


@given(st.lists(MESSAGES, max_size=8))
@settings(deadline=None)
def test_any_history_makes_a_valid_request(history):
    body = json.loads(encode_body(build(*history)).decode("utf-8"))

    assert_valid_input(body["input"])
    assert body["store"] is False
