"""Chunks of Gemini answers, in every shape in which they come."""

import json

import pytest
from gemini_checks import USAGE, call, candidate

from littleghost.errors import (
    InvalidRequestError,
    MalformedToolCallError,
    OverloadedError,
    ProviderError,
    RateLimitedError,
    StreamError,
)
from littleghost.messages import Message, Reasoning, Text, ToolResult, ToolUse, user
from littleghost.providers import ModelRequest
from littleghost.providers.gemini_request import build_request
from littleghost.providers.gemini_signatures import Signed
from littleghost.providers.gemini_stream import GeminiStream
from littleghost.providers.gemini_usage import read_usage
from littleghost.providers.tool_names import WireNames, letter_first_name

ORIGIN = "gemini:m"


def collect(*chunks, **options):
    stream = GeminiStream(origin=ORIGIN, **options)
    events = []
    for chunk in chunks:
        events.extend(stream.feed(json.dumps(chunk)))
    events.extend(stream.finish())
    return events


def respond(*chunks, **options):
    return collect(*chunks, **options)[-1].response


def text(value, **more):
    return {"text": value, **more}


def test_text_comes_in_pieces():
    events = collect(
        candidate(text("Hel")), candidate(text("lo"), finish="STOP", usageMetadata=USAGE)
    )

    assert [event.type for event in events] == [
        "message_start",
        "text_delta",
        "text_delta",
        "usage",
        "message_stop",
    ]
    assert events[0].data == {"id": "r-1", "model": "test-model"}
    response = events[-1].response
    assert response.message == Message("assistant", (Text("Hello"),))
    assert (response.finish, response.id, response.model) == ("stop", "r-1", "test-model")
    assert response.usage.to_json() == {"input": 8, "output": 9}


def test_thoughts_are_kept_apart_from_text():
    events = collect(
        candidate(text("I th", thought=True)),
        candidate(text("ink", thought=True)),
        candidate(text("So")),
        candidate(text("", thoughtSignature="sig"), finish="STOP"),
    )

    deltas = [(e.type, e.data["text"]) for e in events if e.type.endswith("delta")]
    assert deltas == [("reasoning_delta", "I th"), ("reasoning_delta", "ink"), ("text_delta", "So")]
    assert events[-1].response.message.content == (
        Reasoning("I think"),
        Text("So"),
        Signed("text", "sig").block(ORIGIN),
    )


def test_parts_come_back_as_they_were_received():
    parts = [
        text("hm", thought=True, thoughtSignature="s0"),
        text("one"),
        text("two", thoughtSignature="s1"),
        call("f", {"a": 1}, "s2", id="their-1"),
        call("f", {"a": 2}, id="their-2"),
        call("g", {}),
        text("", thoughtSignature="s3"),
    ]
    message = respond(*(candidate(part) for part in parts), candidate(finish="STOP")).message
    body = build_request(ModelRequest(model="m", messages=[user("u"), message]), ORIGIN)

    assert body["contents"][1]["parts"] == parts
    answers = [p["functionResponse"] for p in body["contents"][2]["parts"]]
    assert [(a["name"], a.get("id")) for a in answers] == [
        ("f", "their-1"),
        ("f", "their-2"),
        ("g", None),
    ]
    again = Message.from_json(json.loads(json.dumps(message.to_json())))
    assert again.to_json() == message.to_json()


def test_an_old_service_puts_the_signature_into_the_call():
    message = respond(candidate(call("f", thoughtSignature="s"), finish="STOP")).message

    assert message.content[0] == Signed("next", "s").block(ORIGIN)


def test_calls_without_ids_get_ids_of_ours():
    response = respond(candidate(call("f", {}), call("f", {}), call("g")), candidate(finish="STOP"))
    uses = response.message.tool_uses

    assert response.finish == "tool_calls"
    assert len({use.id for use in uses}) == 3
    assert all(use.id.startswith("call_") for use in uses)
    assert [use.input for use in uses] == [{}, {}, {}]


def test_an_id_of_an_earlier_call_is_not_used_again_but_sent_back():
    message = respond(candidate(call("f", {}, id="x"), finish="STOP"), taken_ids={"x"}).message
    use = message.tool_uses[0]
    result = Message("tool", (ToolResult(use.id, "r"),))
    contents = build_request(ModelRequest(model="m", messages=[user("u"), message, result]), ORIGIN)

    assert use.id != "x"
    assert contents["contents"][1]["parts"][0]["functionCall"]["id"] == "x"
    assert contents["contents"][2]["parts"][0]["functionResponse"]["id"] == "x"


def test_the_same_call_sent_twice_is_one_call():
    once = call("f", {"a": 1}, "s", id="x")
    message = respond(candidate(once, once, call("g", {}, "t")), candidate(finish="STOP")).message

    assert [use.name for use in message.tool_uses] == ["f", "g"]
    assert [b.details["signature"] for b in message.content if isinstance(b, Reasoning)] == [
        "s",
        "t",
    ]


def test_wire_names_are_mapped_back():
    names = WireNames(["1st.tool"], letter_first_name)
    wire = letter_first_name("1st.tool")
    response = respond(candidate(call(wire, {}), call("made up", {}), finish="STOP"), names=names)

    assert [use.name for use in response.message.tool_uses] == ["1st.tool", "made up"]


@pytest.mark.parametrize("args", [[1], "text", 7, float("nan"), {"n": float("inf")}])
def test_arguments_that_are_no_object_are_an_error_of_the_call(args):
    (use,) = respond(candidate(call("f", args), finish="STOP")).message.tool_uses

    assert use.error is not None
    assert use.input == {}


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("LANGUAGE", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("OTHER", "stop"),
        ("SOMETHING_NEW", "stop"),
    ],
)
def test_the_reason_of_the_end(reason, finish):
    assert respond(candidate(text("x"), finish=reason)).finish == finish


def test_an_empty_answer_with_a_reason_is_an_answer():
    response = respond({"candidates": [{"finishReason": "STOP"}]})

    assert response.message.content == ()
    assert response.finish == "stop"


@pytest.mark.parametrize(
    ("reason", "error", "is_retryable"),
    [
        ("MALFORMED_FUNCTION_CALL", MalformedToolCallError, True),
        ("UNEXPECTED_TOOL_CALL", MalformedToolCallError, True),
        ("MISSING_THOUGHT_SIGNATURE", InvalidRequestError, False),
        ("MALFORMED_RESPONSE", ProviderError, True),
        ("OTHER", ProviderError, True),
    ],
)
def test_an_end_that_is_no_answer(reason, error, is_retryable):
    chunk = candidate(finish=reason)
    chunk["candidates"][0]["finishMessage"] = "why it was"
    with pytest.raises(error, match=f"{reason}: why it was") as caught:
        respond(chunk)

    assert caught.value.is_retryable == is_retryable


def test_a_prompt_that_is_refused_is_a_filtered_answer():
    response = respond(
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": USAGE}
    )

    assert response.finish == "content_filter"
    assert response.message.content == ()
    assert response.usage.input == 8


@pytest.mark.parametrize(
    ("data", "usage"),
    [
        (
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 60,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 5,
                "toolUsePromptTokenCount": 3,
                "totalTokenCount": 128,
            },
            {"input": 43, "cache_read": 60, "output": 20, "reasoning": 5},
        ),
        (
            {
                "promptTokenCount": 10,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 5,
                "totalTokenCount": 30,
            },
            {"input": 10, "output": 15, "reasoning": 5},
        ),
        ({"promptTokenCount": 5, "cachedContentTokenCount": 9}, {"cache_read": 9}),
        ({"promptTokenCount": -1, "candidatesTokenCount": "x"}, None),
        ({}, None),
    ],
)
def test_usage(data, usage):
    found = read_usage(data)

    assert (found.to_json() if found else None) == usage


def test_counts_are_snapshots_that_are_not_summed():
    response = respond(
        candidate(text("a"), usageMetadata={"promptTokenCount": 8, "totalTokenCount": 8}),
        candidate(text("b"), usageMetadata={"promptTokenCount": 8, "candidatesTokenCount": 1}),
        candidate(finish="STOP", usageMetadata={"candidatesTokenCount": 2}),
    )

    assert response.usage.to_json() == {"input": 8, "output": 2}


@pytest.mark.parametrize("data", ["{", "[1]", "7", '"x"', "nonsense"])
def test_a_chunk_that_cannot_be_read_is_an_error(data):
    with pytest.raises(StreamError):
        GeminiStream().feed(data)


def test_an_answer_without_a_reason_of_its_end_is_no_answer():
    with pytest.raises(StreamError, match="ended before it was complete"):
        respond(candidate(text("x"), call("f", {})))
    with pytest.raises(StreamError):
        GeminiStream().finish()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}, OverloadedError),
        ({"status": "UNAVAILABLE", "message": "x"}, OverloadedError),
        (
            {
                "code": 429,
                "message": "You exceeded your current quota",
                "details": [{"retryDelay": "7s"}],
            },
            RateLimitedError,
        ),
    ],
)
def test_an_error_in_the_stream(error, kind):
    with pytest.raises(kind) as caught:
        respond(candidate(text("x")), {"error": error})

    assert caught.value.is_retryable
    assert caught.value.retry_after_s == (7 if kind is RateLimitedError else None)


def test_odd_fields_and_other_candidates_are_ignored():
    odd = {
        "candidates": [
            None,
            {"index": 1, "content": {"parts": [text("no")]}, "finishReason": "STOP"},
        ]
    }
    response = respond(
        odd,
        {"candidates": None, "usageMetadata": 3, "promptFeedback": {}},
        {"candidates": [{"content": {"parts": [None, 3, {"text": None}, {"inlineData": {}}]}}]},
        candidate({"executableCode": {"code": "1"}}, text("yes"), finish="STOP"),
    )

    assert response.message.text == "yes"


def test_a_split_pair_of_surrogates_becomes_one_character():
    response = respond(candidate(text("\ud83d")), candidate(text("\ude00!"), finish="STOP"))

    assert response.message.text == "\U0001f600!"
    assert respond(candidate(text("\ud83d"), finish="STOP")).message.text == "\ufffd"


def test_a_list_of_chunks_is_an_answer_too():
    stream = GeminiStream()
    chunks = [candidate(text("a")), candidate(text("b"), finish="STOP")]
    stream.feed_whole(json.dumps(chunks).encode())

    assert stream.finish()[-1].response.message.text == "ab"
    for bad in (b"[1]", b"[{", b"{}x"):
        with pytest.raises(StreamError):
            GeminiStream().feed_whole(bad)


def test_blocks_keep_the_order_of_the_parts():
    response = respond(candidate(text("a"), call("f", {}), text("b"), finish="STOP"))

    assert [type(block) for block in response.message.content] == [Text, ToolUse, Text]
