"""Every wire case over real HTTP, with the bytes cut three ways."""

import json
import re

import pytest
from provider_checks import ask, assert_valid_pairs
from wire_server import case_chunks, load_case, replay, three_ways

from littleghost.messages import Message, ToolResult, user
from littleghost.providers import ModelRequest
from littleghost.providers.openai_chat import build_request
from littleghost.providers.profiles import PROFILES

WAYS = ["given", "one", "bytes"]
PLAIN = [
    "error-object-in-200-stream",
    "sse-comments-and-control-blocks",
    "sse-event-name-separated-from-data",
    "sse-final-event-unterminated-lf",
    "sse-final-event-unterminated-none",
    "sse-mixed-line-ends",
    "sse-utf8-one-byte-per-chunk",
    "stream-cut-without-finish",
    "toolcall-arguments-empty-string",
    "toolcall-duplicate-ids",
    "toolcall-finish-stop",
    "toolcall-index-missing-parallel",
    "toolcall-name-after-arguments",
    "toolcall-same-id-two-indexes",
    "usage-chunks-empty-choices",
]


def run(serve, connect, chunks, request=None):
    return ask(connect(serve(replay(chunks))), request)


def check_error(outcome, wanted):
    assert outcome.error is not None, "an error must not be taken for an answer"
    assert outcome.error.code == wanted["class"]
    assert outcome.error.is_retryable == wanted["retryable"]
    assert wanted.get("message_contains", "") in str(outcome.error)


def check_answer(outcome, wanted):
    response = outcome.response
    assert response.message.text == outcome.text == wanted.get("text", "")
    assert response.finish == wanted["finish"]
    calls = response.message.tool_uses
    assert [(use.name, dict(use.input)) for use in calls] == [
        (call["name"], call["arguments"]) for call in wanted["tool_calls"]
    ]
    assert all(use.error is None for use in calls)
    assert len({use.id for use in calls}) == len(calls)
    for use, call in zip(calls, wanted["tool_calls"], strict=True):
        assert use.id == call["id"] or call["id"].startswith("<")
    usage = wanted.get("usage")
    if usage is None:
        assert response.usage is None
    else:
        cached = usage.get("cached_input", 0)
        assert response.usage is not None
        assert response.usage.to_json() == {
            "input": usage["input"] - cached,
            "output": usage["output"],
            **({"cache_read": cached} if cached else {}),
        }


def check_events(outcome):
    """Each call is started once, and its pieces add up to it."""
    types = [event.type for event in outcome.events]
    assert types[0] == "message_start"
    stops = {e.data["index"]: e.data for e in outcome.events if e.type == "tool_call_stop"}
    starts = {e.data["index"]: e.data for e in outcome.events if e.type == "tool_call_start"}
    assert starts.keys() == stops.keys()
    assert types.count("tool_call_start") == len(starts)
    for index, stop in stops.items():
        pieces = [
            e.data["arguments"]
            for e in outcome.events
            if e.type == "tool_call_delta" and e.data["index"] == index
        ]
        assert all(pieces)
        assert ("".join(pieces) or "{}") == stop["tool_use"]["arguments"]
        assert stop["tool_use"]["id"] == starts[index]["id"]
        assert stop["tool_use"]["name"] == starts[index]["name"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PLAIN)
def test_a_case_gives_its_answer(serve, connect, name, way):
    case = load_case(name)
    outcome = run(serve, connect, three_ways(case_chunks(case))[way])

    if case["expected"].get("error"):
        check_error(outcome, case["expected"]["error"])
    else:
        check_answer(outcome, case["expected"])
        check_events(outcome)


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_cut_by_length_says_so_and_lists_its_calls(serve, connect, way):
    case = load_case("toolcall-turn-cut-by-length")
    response = run(serve, connect, three_ways(case_chunks(case))[way]).response

    assert response.finish == "length"
    first, second = response.message.tool_uses
    assert first.input == {"path": "a", "text": "ok"}
    assert second.input == {}
    assert second.error is not None
    assert response.usage is not None
    assert (response.usage.input, response.usage.output) == (50, 64)


@pytest.mark.parametrize("finish", load_case("toolcall-finish-stop")["input"]["finish_variants"])
def test_a_complete_call_decides_whatever_the_label(serve, connect, finish):
    case = load_case("toolcall-finish-stop")
    data = b"".join(case_chunks(case))
    new = json.dumps(finish).encode()
    outcome = run(
        serve, connect, [data.replace(b'"finish_reason":"stop"', b'"finish_reason":' + new)]
    )

    check_answer(outcome, case["expected"])


def test_a_label_that_never_comes_is_made_up_for_by_done(serve, connect):
    case = load_case("toolcall-finish-stop")
    data = b"".join(case_chunks(case)).replace(b'"finish_reason":"stop"', b'"finish_reason":null')

    check_answer(run(serve, connect, [data]), case["expected"])


def error_variants():
    data = b"".join(case_chunks(load_case("error-object-in-200-stream")))
    blocks = data.split(b"\n\n")
    error = blocks[1]
    text = blocks[0].replace(b'"content":""', b'"content":"some text"')
    message = b"upstream worker limit reached"

    def joined(*parts):
        return b"\n\n".join([*parts, b""])

    plain = b'data: {"id": "g", "choices": [], "error": "' + message + b'"}'
    return {
        "plain string": (joined(blocks[0], plain, b"data: [DONE]"), True),
        "no choices": (joined(blocks[0], error.replace(b'"choices": [], ', b"")), True),
        "choices null": (joined(error.replace(b"[]", b"null"), b"data: [DONE]"), True),
        "after text": (joined(text, error, b"data: [DONE]"), True),
        "no done": (joined(blocks[0], error), True),
        "code null": (joined(blocks[0], error.replace(b"502", b"null"), b"data: [DONE]"), True),
        "code 429": (joined(blocks[0], error.replace(b"502", b"429"), b"data: [DONE]"), True),
        "code 400": (joined(blocks[0], error.replace(b"502", b"400"), b"data: [DONE]"), False),
        "code as text": (joined(error.replace(b"502", b'"503"')), True),
        "named event": (joined(b"event: error\ndata: " + message), True),
        "named event with object": (
            joined(b'event: error\ndata: {"message": "' + message + b'"}'),
            True,
        ),
        "in the choice": (
            joined(
                b'data: {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": '
                b'"error", "error": {"code": 502, "message": "' + message + b'"}}]}'
            ),
            True,
        ),
        "object error": (
            joined(b'data: {"object": "error", "message": "' + message + b'", "code": 500}'),
            True,
        ),
        "error_message": (
            joined(
                b'data: {"choices": null, "error_type": "x", "error_message": "' + message + b'"}'
            ),
            True,
        ),
    }


@pytest.mark.parametrize("name", error_variants())
def test_an_error_in_a_good_answer_is_an_error_in_every_shape(serve, connect, name):
    data, is_retryable = error_variants()[name]
    outcome = run(serve, connect, [data])

    assert outcome.error is not None
    assert outcome.error.is_retryable == is_retryable
    assert "upstream worker limit reached" in str(outcome.error)


def test_usage_variants(serve, connect):
    case = load_case("usage-chunks-empty-choices")
    blocks = b"".join(case_chunks(case)).split(b"\n\n")
    only_last = [b"\n\n".join([blocks[1], blocks[2].split(b',"usage"')[0] + b"}", *blocks[3:]])]
    no_key = [b"\n\n".join([*blocks[:3], blocks[3].replace(b'"choices":[],', b""), *blocks[4:]])]
    none = [b"\n\n".join([blocks[0], blocks[1], only_last[0].split(b"\n\n")[1], *blocks[4:]])]

    check_answer(run(serve, connect, only_last), case["expected"])
    check_answer(run(serve, connect, no_key), case["expected"])
    assert run(serve, connect, none).response.usage is None


def test_ids_stay_unique_when_the_service_repeats_them_in_the_next_turn(serve, connect):
    case = load_case("toolcall-duplicate-ids")
    provider = connect(serve(replay(case_chunks(case))))
    messages = [user("add")]
    for _ in range(case["input"]["repeat_turns"]):
        message = ask(provider, ModelRequest(model="m", messages=messages)).response.message
        results = [ToolResult(use.id, str(use.input["a"])) for use in message.tool_uses]
        messages += [message, *(Message("tool", (result,)) for result in results)]
    ids = [use.id for message in messages for use in message.tool_uses]
    body = build_request(ModelRequest(model="m", messages=messages), PROFILES["openai"])

    assert len(set(ids)) == len(ids) == 8
    assert_valid_pairs(body["messages"])
    values = {
        call["id"]: str(json.loads(call["function"]["arguments"])["a"])
        for message in body["messages"]
        for call in message.get("tool_calls", [])
    }
    answers = {m["tool_call_id"]: m["content"] for m in body["messages"] if m["role"] == "tool"}
    assert answers == values


def test_a_made_up_tool_name_can_be_sent_back(serve, connect):
    case = load_case("tool-unknown-and-illegal-name")
    message = run(serve, connect, case_chunks(case)).response.message
    results = [Message("tool", (ToolResult(use.id, "r"),)) for use in message.tool_uses]
    body = build_request(
        ModelRequest(model="m", messages=[user("q"), message, *results]), PROFILES["openai"]
    )

    assert [use.name for use in message.tool_uses] == ["get_US_A PresidentialInfo", "ping"]
    assert_valid_pairs(body["messages"])
    for call in body["messages"][1]["tool_calls"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"])


def test_text_in_a_fence_stays_the_text(serve, connect):
    case = load_case("structured-output-in-fence")
    response = run(serve, connect, case_chunks(case)).response

    assert response.finish == "stop"
    assert response.message.text.endswith("Anything else?")
