import threading

import pytest
from provider_checks import ask

from littleghost.errors import CancelledError, InvalidRequestError, OverloadedError
from littleghost.messages import Message, ToolResult, assistant, system, user
from littleghost.providers import Call, CallControl, ModelRequest, Reply, ScriptedProvider
from littleghost.usage import Usage


def request(*messages):
    return ModelRequest(model="m", messages=messages)


def results(message, *texts):
    return Message(
        "user", tuple(ToolResult(u.id, t) for u, t in zip(message.tool_uses, texts, strict=True))
    )


def test_text_is_streamed_in_pieces():
    outcome = ask(ScriptedProvider([Reply(text="hello world", chunk_chars=4)]), request(user("u")))

    assert [e.type for e in outcome.events] == [
        "message_start", "text_delta", "text_delta", "text_delta", "usage", "message_stop",
    ]  # fmt: skip
    assert outcome.response.message == assistant("hello world")
    assert outcome.response.finish == "stop"


def test_a_list_gives_the_turn_that_the_conversation_is_at():
    provider = ScriptedProvider([Reply(tool_calls=[Call("f", {"n": 1}), Call("g")]), "done"])
    history = [system("s"), user("old"), assistant("old answer"), user("u")]
    first = ask(provider, request(*history)).response
    again = ask(provider, request(*history)).response
    last = ask(
        provider, request(*history, first.message, results(first.message, "1", "2"))
    ).response

    assert first == again
    assert first.finish == "tool_calls"
    assert [(use.id, use.name, use.input) for use in first.message.tool_uses] == [
        ("call_1_0", "f", {"n": 1}),
        ("call_1_1", "g", {}),
    ]
    assert last.message.text == "done"


def test_ids_are_different_in_every_turn():
    provider = ScriptedProvider(lambda _: Reply(tool_calls=[Call("f"), Call("f", id="own")]))
    first = ask(provider, request(user("u"))).response.message
    second = ask(provider, request(user("u"), first, results(first, "1", "2"), user("v"))).response

    assert [use.id for use in first.tool_uses] == ["call_0_0", "own"]
    assert [use.id for use in second.message.tool_uses] == ["call_1_0", "own"]


def test_past_the_end_is_a_clear_error():
    error = ask(ScriptedProvider(["a"]), request(user("u"), assistant("a"))).error

    assert isinstance(error, InvalidRequestError)
    assert "has 1 turns and turn 1 was asked for" in str(error)


def test_a_function_is_given_the_request():
    provider = ScriptedProvider(lambda given: given.messages[-1].text.upper())

    assert ask(provider, request(user("loud"))).response.message.text == "LOUD"
    assert provider.requests[-1].messages[-1].text == "loud"


def test_errors_come_before_or_after_some_text():
    busy = OverloadedError("busy", retry_after_s=3)
    before = ask(ScriptedProvider([Reply(text="abcdef", error=busy)]), request(user("u")))
    after = ask(
        ScriptedProvider([Reply(text="abcdef", error=busy, error_after_chars=4)]),
        request(user("u")),
    )

    assert before.events == []
    assert before.error.retry_after_s == 3
    assert after.text == "abcd"
    assert isinstance(after.error, OverloadedError)


def test_usage_finish_and_reasoning_can_be_set():
    reply = Reply(text="t", reasoning="hm", usage=Usage(input=7), finish="length")
    response = ask(ScriptedProvider([reply]), request(user("u"))).response

    assert response.usage == Usage(input=7)
    assert response.finish == "length"
    assert [block.to_json()["type"] for block in response.message.content] == ["reasoning", "text"]


def test_usage_is_estimated():
    usage = ask(ScriptedProvider(["x" * 40]), request(user("u" * 80))).response.usage

    assert usage == Usage(input=20, output=10)


@pytest.mark.parametrize(
    "reply", [Reply(delay_s=60), Reply(text="ab", chunk_chars=1, chunk_delay_s=60)]
)
def test_every_wait_can_be_cut(reply):
    control, outcomes = CallControl(), []
    provider = ScriptedProvider([reply])
    thread = threading.Thread(
        target=lambda: outcomes.append(ask(provider, request(user("u")), control))
    )
    thread.start()
    control.cut()
    thread.join(5)

    assert isinstance(outcomes[0].error, CancelledError)
