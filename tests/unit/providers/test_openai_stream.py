"""The assembling of answers, without a network."""

import json

import pytest
from wire_server import DONE, event

from littleghost.errors import StreamError
from littleghost.providers.openai_stream import ChatStream
from littleghost.providers.sse import SseParser
from littleghost.providers.tool_names import WireNames, wire_name


def assemble(*blocks, **options):
    chat = ChatStream(**options)
    parser = SseParser()
    events = [e for block in blocks for sse in parser.feed(block) for e in chat.feed(sse.data)]
    events += chat.finish()
    return events, events[-1].response


def calls(*deltas, finish="tool_calls"):
    blocks = [event({"tool_calls": [delta]}) for delta in deltas]
    _, response = assemble(*blocks, event(finish=finish), DONE)
    return [(use.id, use.name, dict(use.input)) for use in response.message.tool_uses]


def delta(index=None, id=None, name=None, arguments=None):
    function = {"name": name, "arguments": arguments}
    function = {key: value for key, value in function.items() if value is not None}
    item = {"index": index, "id": id, "function": function}
    return {key: value for key, value in item.items() if value is not None}


def test_the_head_of_a_second_call_may_carry_the_index_of_the_first():
    found = calls(
        delta(0, "a", "f", '{"n": 1}'),
        delta(0, "b", "f", '{"n":'),
        delta(1, None, None, " 2}"),
    )

    assert found == [("a", "f", {"n": 1}), ("b", "f", {"n": 2})]


def test_the_index_may_change_between_pieces_of_one_call():
    found = calls(delta(0, "a", "f", ""), delta(1, None, None, '{"n":'), delta(2, None, None, "1}"))

    assert found == [("a", "f", {"n": 1})]


def test_pieces_of_parallel_calls_may_be_mixed():
    found = calls(
        delta(0, "a", "f", ""),
        delta(1, "b", "g", ""),
        delta(0, None, None, '{"n":'),
        delta(1, None, None, '{"m":'),
        delta(0, None, None, "1}"),
        delta(1, None, None, "2}"),
    )

    assert found == [("a", "f", {"n": 1}), ("b", "g", {"m": 2})]


def test_id_and_name_may_be_repeated_with_every_piece():
    found = calls(
        delta(0, "a", "f", ""),
        delta(0, "a", "f", '{"n":'),
        delta(0, "a", "f", "1}"),
        delta(0, "a", "f", ""),
    )

    assert found == [("a", "f", {"n": 1})]


def test_the_name_may_be_repeated_without_an_id():
    found = calls(delta(0, None, "f", '{"n":'), delta(0, None, "f", "1}"), delta(0, None, "f", ""))

    assert [call[1:] for call in found] == [("f", {"n": 1})]


def test_whole_calls_without_id_and_index_are_told_apart_by_their_names():
    found = calls(
        delta(None, None, "f", "{}"), delta(None, None, "f", '{"n": 2}'), delta(None, None, "g", "")
    )

    assert [call[1:] for call in found] == [("f", {}), ("f", {"n": 2}), ("g", {})]
    assert len({call[0] for call in found}) == 3


def test_the_whole_call_sent_once_more_at_the_end_is_one_call():
    found = calls(
        delta(0, "a", "f", '{"n":'), delta(0, None, None, "1}"), delta(0, "a", "f", '{"n":1}')
    )

    assert found == [("a", "f", {"n": 1})]


def test_a_name_may_come_in_pieces_or_grow():
    assert calls(delta(0, "a", "get_"), delta(0, None, "weather", "{}"))[0][1] == "get_weather"
    assert calls(delta(0, "a", "get_"), delta(0, "a", "get_weather", "{}"))[0][1] == "get_weather"


def test_an_id_may_come_after_the_name():
    assert calls(delta(0, None, "f"), delta(0, "a", None, "{}"))[0][1:] == ("f", {})


def test_arguments_may_be_an_object():
    assert calls({"id": "a", "function": {"name": "f", "arguments": {"n": 1}}}) == [
        ("a", "f", {"n": 1})
    ]


def test_a_call_that_never_gets_a_name_is_malformed_and_no_crash():
    _, response = assemble(event({"tool_calls": [delta(0, "a", None, "{}")]}), event(finish="stop"))

    assert response.message.tool_uses[0].error == "the call does not name a tool"


def test_arguments_cut_behind_the_wrong_label_are_an_error():
    blocks = (
        event({"tool_calls": [delta(0, "a", "f", '{"path": "/da')]}),
        event(finish="tool_calls"),
    )
    _, response = assemble(*blocks, DONE)

    assert response.message.tool_uses[0].error is not None
    assert response.message.tool_uses[0].input == {}


def test_an_old_function_call_is_understood_and_not_counted_twice():
    old = (
        event({"function_call": {"name": "f", "arguments": '{"n":'}}),
        event({"function_call": {"arguments": "1}"}}),
    )
    both = event(
        {
            "function_call": {"name": "f", "arguments": "{}"},
            "tool_calls": [delta(0, "a", "f", "{}")],
        }
    )

    assert assemble(*old, event(finish="function_call"))[1].message.tool_uses[0].input == {"n": 1}
    assert len(assemble(both, event(finish="tool_calls"))[1].message.tool_uses) == 1


def test_an_earlier_calls_id_and_an_unusable_one_are_replaced():
    blocks = [event({"tool_calls": [delta(0, "old", "f", "{}"), delta(1, "a b\u00e9", "f", "{}")]})]
    _, response = assemble(*blocks, event(finish="stop"), taken_ids={"old"})
    ids = [use.id for use in response.message.tool_uses]

    assert all(id_.startswith("call_") for id_ in ids)


def test_wire_names_are_mapped_back():
    names = WireNames(["files.read"])
    blocks = [event({"tool_calls": [delta(0, "a", wire_name("files.read"), "{}")]})]
    events, response = assemble(*blocks, event(finish="stop"), names=names)

    assert response.message.tool_uses[0].name == "files.read"
    assert [e.data["name"] for e in events if e.type == "tool_call_start"] == ["files.read"]


def test_a_split_pair_of_surrogates_becomes_one_character():
    first = b'data: {"choices":[{"delta":{"content":"a\\ud83e"}}]}\n\n'
    second = b'data: {"choices":[{"delta":{"content":"\\udd80b"}}]}\n\n'
    lone = b'data: {"choices":[{"delta":{"content":"\\ud83e"}}]}\n\n'
    events, response = assemble(first, second, lone, event(finish="stop"))

    assert response.message.text == "a\U0001f980b\ufffd"
    assert (
        "".join(e.data["text"] for e in events if e.type == "text_delta") == response.message.text
    )


def test_content_may_be_a_list_of_parts():
    blocks = event(
        {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}]}
    )

    assert assemble(blocks, event(finish="stop"))[1].message.text == "a"


def test_reasoning_is_kept_apart_from_text():
    blocks = event({"reasoning_content": "hm", "content": None}), event({"content": "so"})
    events, response = assemble(*blocks, event(finish="stop"), DONE)

    assert response.message.text == "so"
    assert response.message.content[0].to_json() == {"type": "reasoning", "text": "hm"}
    assert [e.type for e in events][:3] == ["message_start", "reasoning_delta", "text_delta"]


def test_reasoning_details_are_joined_and_marked_with_their_origin():
    def piece(**fields):
        return event({"reasoning_details": [{"type": "reasoning.text", "index": 0, **fields}]})

    blocks = piece(text="a"), piece(text="b"), piece(signature="s")
    _, response = assemble(*blocks, event({"content": "x"}, "stop"), origin="openrouter:m")
    details = response.message.content[0].details

    assert details["origin"] == "openrouter:m"
    assert details["items"] == [
        {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}
    ]


@pytest.mark.parametrize(
    ("label", "finish"),
    [
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("stop", "stop"),
        ("eos", "stop"),
        ("tool_calls", "stop"),
    ],
)
def test_the_label_of_an_answer_without_calls(label, finish):
    assert assemble(event({"content": "x"}, label), DONE)[1].finish == finish


def test_usage_in_other_places_and_shapes():
    reasoning = {
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "total_tokens": 18,
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    beside = {**reasoning, "total_tokens": 23}

    def usage(**more):
        return assemble(event({"content": "x"}, "stop", **more))[1].usage

    assert usage(usage=reasoning).to_json() == {"input": 10, "output": 3, "reasoning": 5}
    assert usage(usage=beside).to_json() == {"input": 10, "output": 8, "reasoning": 5}
    assert usage(x_groq={"usage": {"prompt_tokens": 2}}).to_json() == {"input": 2}
    assert usage(usage={"prompt_tokens": 0, "completion_tokens": 0}) is None
    assert usage(usage={"prompt_tokens": "many", "completion_tokens": -1}) is None


@pytest.mark.parametrize("data", ["{bad", "[1]", "7", "null", '{"a":' * 5000])
def test_a_chunk_that_cannot_be_read_is_an_error(data):
    with pytest.raises(StreamError):
        ChatStream().feed(data)


@pytest.mark.parametrize("blocks", [[], [DONE], [event(), DONE], [event({"content": "x"})]])
def test_an_answer_without_an_end_or_a_beginning_is_no_answer(blocks):
    with pytest.raises(StreamError, match="before it was complete"):
        assemble(*blocks)


def test_an_empty_answer_with_a_finish_is_an_answer():
    assert assemble(event(finish="stop"), DONE)[1].message.content == ()


def test_other_choices_and_odd_fields_are_ignored():
    odd = {"choices": ["x", {"index": 1, "delta": {"content": "no"}}], "usage": "?", "id": 7}
    block = b"data: " + json.dumps(odd).encode() + b"\n\n"

    assert (
        assemble(block, event({"content": "yes", "tool_calls": [None]}, "stop"))[1].message.text
        == "yes"
    )
