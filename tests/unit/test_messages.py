"""Messages and blocks have one JSON form, which reads back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from littleghost.errors import InvocationError
from littleghost.messages import (
    ROLES,
    Document,
    Image,
    Message,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    assistant,
    block_from_json,
    system,
    user,
)

words = st.text(max_size=20)
blocks = st.one_of(
    st.builds(Text, words),
    st.builds(Image, st.binary(max_size=20), words, st.none() | words),
    st.builds(Document, st.binary(max_size=20), words, words),
    st.builds(
        ToolUse,
        words,
        words,
        st.dictionaries(words, st.integers() | words, max_size=3),
        st.none() | words,
        st.none() | words,
    ),
    st.builds(ToolResult, words, words, st.sampled_from(["success", "error"])),
    st.builds(Reasoning, words, st.none() | words, st.none() | words),
)
messages = st.builds(
    Message,
    st.sampled_from(ROLES),
    st.lists(blocks, max_size=4).map(tuple),
    st.dictionaries(words, words, max_size=2),
)


@given(messages)
def test_a_message_reads_back_from_its_json(message: Message) -> None:
    data = json.loads(json.dumps(message.to_json()))
    again = Message.from_json(data)
    assert again == message
    assert again.to_json() == message.to_json()


def test_short_forms_mean_a_users_text() -> None:
    expected = Message("user", (Text("Hi"),))
    assert user("Hi") == expected
    for short in (
        "Hi",
        {"content": "Hi"},
        {"content": ["Hi"]},
        {"content": {"type": "text", "text": "Hi"}},
    ):
        assert Message.from_json(short) == expected
    assert Message.from_json(expected) is expected
    assert (system("x").role, assistant("x").role) == ("system", "assistant")


def test_text_and_tool_calls_are_found_among_the_blocks() -> None:
    use = ToolUse("1", "look", {})
    message = Message("assistant", (Reasoning("hm"), Text("a"), use, Text("b")))
    assert message.text == "ab"
    assert message.tool_uses == (use,)
    assert message.without_reasoning().content == (Text("a"), use, Text("b"))
    plain = user("x")
    assert plain.without_reasoning() is plain


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        [],
        {"role": "king", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": 7},
        {"role": "user", "content": [None]},
        {"role": "user", "content": "x", "metadata": 7},
        {"role": ["user"], "content": "x"},
    ],
)
def test_what_is_no_message_is_refused(bad: Any) -> None:
    with pytest.raises(InvocationError):
        Message.from_json(bad)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"type": "hologram"}, "hologram"),
        ({"type": ["text"]}, "type"),
        ({}, "type"),
        ({"type": "text"}, "text"),
        ({"type": "text", "text": 5}, "text"),
        ({"type": "image", "data": "%%%", "media_type": "image/png"}, "base64"),
        ({"type": "image", "data": "AAAA"}, "media_type"),
        ({"type": "document", "data": "AAAA", "media_type": "x"}, "name"),
        ({"type": "tool_use", "id": "1", "name": "x", "input": []}, "input"),
        ({"type": "tool_use", "id": 1, "name": "x"}, "id"),
        ({"type": "tool_result", "tool_use_id": "1", "content": "x", "status": "odd"}, "odd"),
        ({"type": "tool_result", "tool_use_id": "1", "content": []}, "content"),
        ({"type": "reasoning", "text": 1}, "text"),
    ],
)
def test_what_is_no_block_is_refused_by_name(bad: Any, named: str) -> None:
    with pytest.raises(InvocationError, match=named):
        block_from_json(bad)
