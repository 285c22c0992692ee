"""The assembling of Anthropic's answers, without a network."""

import json

import pytest
from anthropic_wire import begin, block, call, end, sse, text
from hypothesis import given, settings
from hypothesis import strategies as st

from littleghost.errors import OverloadedError, ProviderError, StreamError
from littleghost.messages import Reasoning, Text
from littleghost.providers.anthropic_stream import MessageStream
from littleghost.providers.sse import SseParser
from littleghost.providers.tool_names import WireNames, wire_name


def assemble(*parts, **options):
    stream = MessageStream(**options)
    parser = SseParser()
    events = [
        event
        for part in parts
        for one in parser.feed(part)
        for event in stream.feed(one.data, one.event)
    ]
    events += stream.finish()
    return events, events[-1].response


def types(events):
    return [event.type for event in events]


def test_text_comes_as_it_is_written():
    events, response = assemble(begin(), text(0, "Hel", "lo"), end(), origin="anthropic:m")

    assert types(events) == ["message_start", "text_delta", "text_delta", "message_stop"]
    assert events[0].data == {"id": "msg_1", "model": "claude-test"}
    assert response.message.content == (Text("Hello"),)
    assert (response.id, response.model, response.finish) == ("msg_1", "claude-test", "stop")
    assert response.usage is None


def test_a_call_is_told_piece_by_piece_and_ended_with_its_block():
    events, response = assemble(
        begin(), call(0, "toolu_1", "f", "", '{"n":', " 1}"), text(1, "x"), end("tool_use")
    )

    assert types(events) == [
        "message_start",
        "tool_call_start",
        "tool_call_delta",
        "tool_call_delta",
        "tool_call_stop",
        "text_delta",
        "message_stop",
    ]
    (use,) = response.message.tool_uses
    assert (use.id, use.name, dict(use.input), use.arguments) == (
        "toolu_1",
        "f",
        {"n": 1},
        '{"n": 1}',
    )
    assert events[4].data == {"index": 0, "tool_use": use.to_json()}


def test_thinking_is_kept_with_its_signature_and_its_origin():
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "thinking_delta", "thinking": "m"},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    hidden = block(1, {"type": "redacted_thinking", "data": "eA=="})
    events, response = assemble(begin(), thinking, hidden, text(2, "so"), end(), origin="o:m")

    assert response.message.content == (
        Reasoning("hmm", "c2ln", details={"origin": "o:m"}),
        Reasoning(redacted="eA==", details={"origin": "o:m"}),
        Text("so"),
    )
    assert [e.data["text"] for e in events if e.type == "reasoning_delta"] == ["hm", "m"]
    assert response.message.text == "so"


def test_a_signature_without_thinking_is_kept():
    only = block(0, {"type": "thinking"}, {"type": "signature_delta", "signature": "s"})
    _, response = assemble(begin(), only, text(1, "x"), end())

    assert response.message.content[0].signature == "s"


def test_counts_at_both_ends_are_of_the_same_tokens():
    start = begin(
        input_tokens=20, output_tokens=1, cache_read_input_tokens=7, cache_creation_input_tokens=3
    )
    _, response = assemble(start, text(0, "x"), end(output_tokens=55))
    details = {"thinking_tokens": 30}
    last = sse("message_delta", usage={"output_tokens": 55, "output_tokens_details": details})
    _, thought = assemble(begin(input_tokens=20), text(0, "x"), last, end())

    assert response.usage.to_json() == {
        "input": 20,
        "output": 55,
        "cache_read": 7,
        "cache_write": 3,
    }
    assert thought.usage.to_json() == {"input": 20, "output": 25, "reasoning": 30}


def test_counts_that_come_only_at_the_end_count_and_odd_ones_do_not():
    late = begin(input_tokens=0), text(0, "x"), end(input_tokens=9, output_tokens=4)
    odd = sse("message_start", message={"usage": {"input_tokens": "many", "output_tokens": -1}})

    assert assemble(*late)[1].usage.to_json() == {"input": 9, "output": 4}
    assert assemble(odd, text(0, "x"), end())[1].usage is None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
        (None, "stop"),
    ],
)
def test_the_reason_of_an_answer_without_calls(reason, finish):
    assert assemble(begin(), text(0, "x"), end(reason))[1].finish == finish


def test_a_complete_call_decides_whatever_the_label():
    whole = call(0, "a", "f", "{}")

    assert assemble(begin(), whole, end("end_turn"))[1].finish == "tool_calls"
    assert assemble(begin(), whole, end("max_tokens"))[1].finish == "length"


def test_a_call_cut_by_length_has_an_error_and_no_input():
    _, response = assemble(begin(), call(0, "a", "f", '{"path": "/da'), end("max_tokens"))

    assert response.message.tool_uses[0].error is not None
    assert response.message.tool_uses[0].input == {}


def test_an_input_at_the_start_counts_when_no_pieces_come():
    content = {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}}
    events, response = assemble(begin(), block(0, content), end("tool_use"))
    piece = {"type": "input_json_delta", "partial_json": '{"n": 2}'}
    _, pieced = assemble(begin(), block(0, content, piece), end("tool_use"))

    assert response.message.tool_uses[0].input == {"n": 1}
    assert [e.data["arguments"] for e in events if e.type == "tool_call_delta"] == ['{"n":1}']
    assert pieced.message.tool_uses[0].input == {"n": 2}


def test_ids_that_are_taken_twice_or_unusable_are_replaced():
    calls = call(0, "old", "f"), call(1, "a", "f"), call(2, "a", "f"), call(3, "a.b:0", "f")
    _, response = assemble(begin(), *calls, end("tool_use"), taken_ids={"old"})
    ids = [use.id for use in response.message.tool_uses]

    assert len(set(ids)) == 4
    assert [id_.startswith("call_") for id_ in ids] == [True, False, True, True]


def test_wire_names_are_mapped_back():
    names = WireNames(["files.read"])
    events, response = assemble(
        begin(), call(0, "a", wire_name("files.read")), end("tool_use"), names=names
    )

    assert response.message.tool_uses[0].name == "files.read"
    assert events[1].data["name"] == "files.read"


def test_a_call_without_a_name_is_malformed_and_no_crash():
    piece = sse("content_block_delta", index=4, delta={"type": "input_json_delta"})
    _, response = assemble(begin(), piece, end("tool_use"))

    assert response.message.tool_uses[0].error == "the call does not name a tool"


def test_pieces_of_the_wrong_kind_open_a_block_of_their_own():
    mixed = sse("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "t"})
    late = sse("content_block_delta", index=0, delta={"type": "text_delta", "text": "x"})
    _, response = assemble(begin(), mixed, late, end())

    assert [item.to_json()["type"] for item in response.message.content] == ["reasoning", "text"]


def test_what_is_not_known_is_passed_over():
    search = block(
        0,
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "input_json_delta", "partial_json": "{}"},
    )
    cited = sse("content_block_delta", index=1, delta={"type": "citations_delta", "citation": {}})
    odd = sse("content_block_start", index=7, content_block="?"), sse("new_kind", x=1), sse("ping")
    _, response = assemble(begin(), search, text(1, "x"), cited, *odd, end())

    assert response.message.content == (Text("x"),)


def test_split_surrogates_are_joined_and_lone_ones_and_nul_replaced():
    events, response = assemble(begin(), text(0, "a\ud83e", "\udd80b\0", "\ud83e"), end())

    assert response.message.text == "a\U0001f980b\ufffd\ufffd"
    assert "".join(e.data["text"] for e in events if e.type == "text_delta") == (
        response.message.text
    )


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [begin()],
        [begin(), text(0, "x")],
        [begin(), text(0, "x"), sse("message_delta", delta={"stop_reason": "end_turn"})],
        [begin(), end(None)],
    ],
)
def test_an_answer_without_its_end_is_no_answer(parts):
    with pytest.raises(StreamError, match="before it was complete"):
        assemble(*parts)


def test_an_empty_answer_with_a_reason_is_an_answer():
    assert assemble(begin(), end())[1].message.content == ()


@pytest.mark.parametrize("data", ["{bad", "[1]", "7", "null", '{"a":' * 5000])
def test_an_event_that_cannot_be_read_is_an_error(data):
    with pytest.raises(StreamError):
        MessageStream().feed(data)


@pytest.mark.parametrize(
    ("kind", "code", "is_retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate_limited", True),
        ("api_error", "provider_error", True),
        ("timeout_error", "timeout", True),
        ("something_new", "provider_error", True),
        ("invalid_request_error", "invalid_request", False),
        ("authentication_error", "auth", False),
        ("permission_error", "auth", False),
        ("not_found_error", "invalid_request", False),
        ("billing_error", "rate_limited", False),
        ("request_too_large", "context_overflow", False),
    ],
)
def test_an_error_in_the_stream_is_named_by_its_type(kind, code, is_retryable):
    with pytest.raises(ProviderError) as caught:
        assemble(begin(), sse("error", error={"type": kind, "message": "what was wrong"}))

    assert (caught.value.code, caught.value.is_retryable) == (code, is_retryable)
    assert "what was wrong" in str(caught.value)


def test_an_error_is_seen_in_every_shape():
    for data, event in (
        ("no json", "error"),
        ('{"message": "m"}', "error"),
        ('{"error": {"type": "overloaded_error"}}', "message"),
    ):
        with pytest.raises(Exception, match="reported an error"):
            MessageStream().feed(data, event)


def test_a_whole_answer_is_understood():
    body = {
        "type": "message",
        "id": "r",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "text", "text": "x"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 2, "output_tokens": 1},
    }
    stream = MessageStream()
    events = [*stream.feed_whole(json.dumps(body).encode()), *stream.finish()]
    response = events[-1].response

    assert [item.to_json()["type"] for item in response.message.content] == [
        "reasoning",
        "text",
        "tool_use",
    ]
    assert (response.finish, response.usage.total) == ("tool_calls", 3)
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}
    with pytest.raises(OverloadedError):
        MessageStream().feed_whole(json.dumps(error).encode())
    with pytest.raises(StreamError):
        MessageStream().feed_whole(b'{"ok": tru')


KINDS = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "text_delta",
        "input_json_delta",
        "signature_delta",
        "thinking_delta",
    ]
)
NAMES = st.sampled_from(
    [
        "index",
        "content_block",
        "delta",
        "message",
        "usage",
        "id",
        "name",
        "input",
        "text",
        "partial_json",
        "thinking",
        "signature",
        "data",
        "stop_reason",
        "input_tokens",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | KINDS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.builds(
            lambda kind, rest: {"type": kind, **rest},
            KINDS,
            st.dictionaries(NAMES, inner, max_size=4),
        )
    ),
    max_leaves=12,
)
EVENTS = st.builds(
    lambda kind, rest: {"type": kind, **rest}, KINDS, st.dictionaries(NAMES, VALUES, max_size=4)
)


@given(st.lists(EVENTS, max_size=8))
@settings(deadline=None)
def test_no_event_makes_it_stumble(chunks):
    stream = MessageStream()
    for chunk in chunks:
        for told in stream.feed(json.dumps(chunk)):
            json.dumps(told.data, allow_nan=False)
    try:
        response = stream.finish()[-1].response
    except StreamError:
        return
    json.dumps(response.message.to_json(), allow_nan=False)
