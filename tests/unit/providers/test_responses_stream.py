"""The assembling of Responses answers, without a network."""

import json

import pytest
from responses_wire import (
    USAGE,
    answer,
    call,
    item_events,
    message,
    reasoning,
    sse,
    stream,
)
from wire_server import load_case

from littleghost.errors import ContextWindowOverflowError, InvalidRequestError, StreamError
from littleghost.messages import Reasoning, Text
from littleghost.providers.arguments import parse_arguments
from littleghost.providers.responses_stream import ResponsesStream
from littleghost.providers.sse import SseParser
from littleghost.providers.tool_names import WireNames, wire_name


def assemble(*blocks, **options):
    collected = ResponsesStream(origin="me", **options)
    parser = SseParser()
    events = [
        e
        for block in blocks
        for found in parser.feed(block)
        for e in collected.feed(found.data, found.event)
    ]
    events += collected.finish()
    return events, events[-1].response


def failure(*blocks):
    with pytest.raises(Exception) as caught:  # which one is what is tested
        assemble(*blocks)
    return caught.value


def calls_of(response):
    return [(use.id, use.name, dict(use.input)) for use in response.message.tool_uses]


def without(blocks, *kinds):
    return [b for b in blocks if not any(b.startswith(f"event: {k}".encode()) for k in kinds)]


FULL = (
    reasoning("rs_1", "c2Vj", "First.", "Then."),
    message("Checking now."),
    call("call_1", "stock", '{"sku":"A-17"}'),
    reasoning("rs_2", "bW9yZQ=="),
    call("call_2", "ping", "{}", id="fc_2"),
)


def test_an_answer_keeps_the_order_of_its_items():
    events, response = assemble(*stream(*FULL, usage=USAGE))

    blocks = response.message.content
    assert [type(block).__name__ for block in blocks] == [
        "Reasoning",
        "Text",
        "ToolUse",
        "Reasoning",
        "ToolUse",
    ]
    assert blocks[0].text == "First.\n\nThen."
    assert blocks[0].details == {"origin": "me", "items": [FULL[0]]}
    assert blocks[3].details == {"origin": "me", "items": [FULL[3]]}
    assert response.finish == "tool_calls"
    assert (response.id, response.model) == ("resp_1", "m-1")
    assert calls_of(response) == [
        ("call_1", "stock", {"sku": "A-17"}),
        ("call_2", "ping", {}),
    ]
    reasoned = "".join(e.data["text"] for e in events if e.type == "reasoning_delta")
    assert reasoned == "First.\n\nThen."
    assert [e.type for e in events if e.type.startswith("tool_call_st")] == [
        "tool_call_start",
        "tool_call_start",
        "tool_call_stop",
        "tool_call_stop",
    ]


def test_usage_is_split_into_buckets_that_do_not_overlap():
    usage = assemble(*stream(message("x"), usage=USAGE))[1].usage

    assert usage.to_json() == {"input": 8, "output": 10, "cache_read": 4, "reasoning": 20}
    assert assemble(*stream(message("x")))[1].usage is None


@pytest.mark.parametrize(
    ("more", "finish"),
    [
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"incomplete_details": None}, "length"),
    ],
)
def test_an_incomplete_answer_says_why(more, finish):
    blocks = stream(message("x"), status="incomplete", **more)
    in_the_wrong_event = [
        *blocks[:-1],
        blocks[-1].replace(b"response.incomplete", b"response.completed"),
    ]

    assert assemble(*blocks)[1].finish == finish
    assert assemble(*in_the_wrong_event)[1].finish == finish


def test_a_call_cut_by_length_is_an_error_of_that_call():
    cut = call("call_1", "write", '{"text": "ab')
    details = {"reason": "max_output_tokens"}
    response = assemble(*stream(cut, status="incomplete", incomplete_details=details))[1]

    assert response.finish == "length"
    assert response.message.tool_uses[0].error is not None


def test_a_refusal_is_the_answer():
    events, response = assemble(*stream(message("I cannot help.", kind="refusal")))

    assert response.message.text == "I cannot help."
    assert response.finish == "stop"
    assert any(e.type == "text_delta" for e in events)


def test_the_end_makes_up_for_pieces_that_never_came():
    blocks = without(
        stream(*FULL), "response.output_text", "response.function", "response.reasoning"
    )
    only_the_end = without(stream(*FULL), "response.output", "response.function", "response.reas")
    wanted = assemble(*stream(*FULL))[1].message

    assert assemble(*blocks)[1].message == wanted
    assert len(only_the_end) == 3
    assert assemble(*only_the_end)[1].message == wanted


def test_an_end_without_items_leaves_what_came():
    blocks = stream(*FULL)
    blocks[-1] = sse("response.completed", response=answer())

    assert assemble(*blocks)[1].message == assemble(*stream(*FULL))[1].message


def test_indexes_may_be_missing_and_ids_may_change():
    def sloppy(block):
        kind, data = block.decode().rstrip().split("\ndata: ")
        value = json.loads(data)
        value.pop("output_index", None)
        if "item_id" in value:
            value["item_id"] = "other"
        return f"{kind}\ndata: {json.dumps(value)}\n\n".encode()

    items = [message("one"), call("a", "f", '{"n":1}'), call("b", "f", '{"n":2}', id="fc_2")]
    response = assemble(*map(sloppy, stream(*items)))[1]

    assert response.message.text == "one"
    assert calls_of(response) == [("a", "f", {"n": 1}), ("b", "f", {"n": 2})]


def test_every_index_may_be_nought():
    items = [message("one"), call("a", "f", '{"n":1}'), call("b", "f", '{"n":2}', id="fc_2")]
    blocks = [block for item in items for block in item_events(0, item)]
    response = assemble(*blocks, sse("response.completed", response=answer(*items)))[1]

    assert calls_of(response) == [("a", "f", {"n": 1}), ("b", "f", {"n": 2})]


def test_pieces_of_parallel_calls_may_be_mixed():
    first = item_events(0, call("a", "f", '{"n":1}'))
    second = item_events(1, call("b", "g", '{"m":2}', id="fc_2"))
    mixed = [block for pair in zip(first, second, strict=True) for block in pair]
    response = assemble(*mixed, sse("response.completed", response=answer()))[1]

    assert calls_of(response) == [("a", "f", {"n": 1}), ("b", "g", {"m": 2})]


def test_pieces_that_contradict_the_whole_are_no_answer():
    text = [b.replace(b'"delta": "Che"', b'"delta": "Cha"') for b in stream(*FULL)]
    arguments = [b.replace(b'"delta": "{\\"s"', b'"delta": "{\\"z"') for b in stream(*FULL)]
    lost = [b for b in stream(message("abcdef")) if b'"delta": "abc"' not in b]

    for blocks in (text, arguments, lost):
        assert blocks != stream(*FULL)
        assert isinstance(failure(*blocks), StreamError)


def test_arguments_may_be_written_otherwise_in_the_whole():
    blocks = item_events(0, call("a", "f", '{"n":1}'))
    end = sse("response.completed", response=answer(call("a", "f", '{ "n": 1 }')))
    use = assemble(*blocks, end)[1].message.tool_uses[0]

    assert use.arguments == '{"n":1}'


def test_repeated_ids_are_told_apart_and_a_repeated_call_is_one():
    items = [
        call("a", "f", '{"n":1}'),
        call("a", "f", '{"n":2}', id="fc_2"),
        call("a", "f", '{"n":1}', id="fc_3"),
    ]
    response = assemble(*stream(*items), taken_ids={"a"})[1]
    ids = [use.id for use in response.message.tool_uses]

    assert [dict(use.input) for use in response.message.tool_uses] == [{"n": 1}, {"n": 2}]
    assert len(set(ids)) == 2
    assert "a" not in ids


def test_wire_names_are_mapped_back_and_unknown_ones_stay():
    names = WireNames(["files.read"])
    items = [call("a", wire_name("files.read"), "{}"), call("b", "made up", "{}", id="fc_2")]
    events, response = assemble(*stream(*items), names=names)

    assert [use.name for use in response.message.tool_uses] == ["files.read", "made up"]
    assert [e.data["name"] for e in events if e.type == "tool_call_start"] == [
        "files.read",
        "made up",
    ]


def test_reasoning_that_cannot_be_sent_back_is_only_text():
    first, second = (
        assemble(*stream(reasoning("rs_1", None, *summary), message("x")))[1].message.content
        for summary in (["Hm."], [])
    )

    assert first == (Reasoning("Hm."), Text("x"))
    assert second == (Text("x"),)


def test_the_phases_of_texts_are_kept():
    items = [
        message("Looking.", phase="commentary"),
        message("Done.", id="m2", phase="final_answer"),
    ]
    metadata = assemble(*stream(*items))[1].message.metadata

    assert metadata == {
        "openai_responses": {"origin": "me", "phases": ["commentary", "final_answer"]}
    }
    assert assemble(*stream(message("x")))[1].message.metadata == {}


def test_a_split_pair_of_surrogates_becomes_one_character():
    def delta(text):
        data = f'{{"type":"response.output_text.delta","output_index":0,"delta":"{text}"}}'
        return f"data: {data}\n\n".encode()

    end = sse("response.completed", response=answer())
    split = assemble(delta("a\\ud83e"), delta("\\udd80b"), delta("\\ud83e"), end)[1]
    nul = assemble(delta("a\\u0000"), end)[1]
    whole = answer(message("a\U0001f980b"))
    repaired = assemble(delta("a\\ud83e"), sse("response.completed", response=whole))[1]

    assert split.message.text == "a\U0001f980b\ufffd"
    assert nul.message.text == "a\ufffd"
    assert repaired.message.text == "a\U0001f980b"


@pytest.mark.parametrize(
    ("error", "code", "is_retryable", "wait_s"),
    [
        ({"code": "server_error", "message": "boom"}, "provider_error", True, None),
        (
            {"code": "rate_limit_exceeded", "message": "boom. Please try again in 1.5s."},
            "rate_limited",
            True,
            1.5,
        ),
        ({"code": "context_length_exceeded", "message": "boom"}, "context_overflow", False, None),
        ({"code": "insufficient_quota", "message": "boom"}, "rate_limited", False, None),
        ({"code": "invalid_prompt", "message": "boom"}, "invalid_request", False, None),
        ({"code": "image_too_large", "message": "boom"}, "invalid_request", False, None),
        ({"code": "bio_policy", "message": "boom"}, "invalid_request", False, None),
        ({"code": "server_is_overloaded", "message": "boom"}, "provider_error", True, None),
        ({"code": None, "message": "boom"}, "provider_error", True, None),
        ("boom", "provider_error", True, None),
    ],
)
def test_a_failure_is_named_in_every_place_it_stands(error, code, is_retryable, wait_s):
    begun = stream(message("some text"))[:5]
    failed = answer(status="failed", error=error)
    places = [
        sse("response.failed", response=failed),
        sse("response.completed", response=failed),
        sse("error", error=error),
        sse("response.output_text.delta", delta="x", error=error),
    ]
    if isinstance(error, dict):
        places.append(sse("error", **error))
    for place in places:
        found = failure(*begun, place)
        assert found.code == code
        assert found.is_retryable == is_retryable
        assert found.retry_after_s == wait_s
        assert "boom" in str(found)


def test_other_failures():
    plain = b"event: error\ndata: no capacity\n\n"
    status = sse("error", status=429, error={"message": "slow down"})

    assert "no capacity" in str(failure(plain))
    assert failure(status).code == "rate_limited"
    assert "cancelled" in str(
        failure(sse("response.cancelled", response=answer(status="cancelled")))
    )
    assert failure(sse("response.failed", response={})).is_retryable
    assert isinstance(failure(b'data: {"error": {"code": 400}}\n\n'), InvalidRequestError)


@pytest.mark.parametrize("data", ["{bad", "[1]", "7", "null", '{"a":' * 5000])
def test_an_event_that_cannot_be_read_is_an_error(data):
    with pytest.raises(StreamError):
        ResponsesStream().feed(data)


def test_an_answer_without_an_end_is_no_answer():
    done = b"data: [DONE]\n\n"
    blocks = stream(*FULL)

    for end in ([], blocks[:-1], [*blocks[:-1], done], [done]):
        assert "before it was complete" in str(failure(*end))
    assert assemble(*blocks, done)[1].finish == "tool_calls"
    running = sse("response.completed", response=answer(status="in_progress"))
    assert isinstance(failure(running), StreamError)


def test_a_whole_answer_in_one_object():
    collected = ResponsesStream(origin="me")
    events = collected.feed_whole(json.dumps(answer(*FULL, usage=USAGE)).encode())
    events += collected.finish()

    assert events[0].data == {"id": "resp_1", "model": "m-1"}
    assert events[-1].response.message == assemble(*stream(*FULL))[1].message
    for error in (ContextWindowOverflowError, StreamError):
        body = answer(status="queued")
        if error is ContextWindowOverflowError:
            body = {"error": {"code": "context_length_exceeded", "message": "x"}}
        with pytest.raises(error):
            ResponsesStream().feed_whole(json.dumps(body).encode())


def test_events_and_items_that_are_not_known_are_ignored():
    odd = [
        sse("response.web_search_call.searching", output_index=0, item_id="ws"),
        sse("response.output_item.added", output_index=0, item={"type": "web_search_call"}),
        sse("response.output_item.done", output_index=0, item={"type": "web_search_call"}),
        sse("response.output_item.added", output_index=1, item=None),
        sse("keepalive"),
    ]
    blocks = item_events(2, message("x"))
    end = answer({"type": "web_search_call"}, message("x"), "odd")

    assert assemble(*odd, *blocks, sse("response.completed", response=end))[1].message.text == "x"


@pytest.mark.parametrize(
    "text",
    [
        *load_case("toolcall-arguments-not-an-object")["input"]["arguments_strings"],
        load_case("toolcall-nested-values-double-encoded")["input"]["arguments_string"],
        load_case("toolcall-nested-values-double-encoded")["input"]["also_try"],
    ],
)
def test_arguments_are_read_as_in_every_dialect(text):
    use = assemble(*stream(call("a", "f", text)))[1].message.tool_uses[0]

    assert (use.input, use.error) == parse_arguments(text)


def test_a_call_without_arguments_is_a_call():
    for text in ("", " ", "null", "{}"):
        use = assemble(*stream(call("a", "f", text)))[1].message.tool_uses[0]
        assert (use.input, use.error) == ({}, None)
