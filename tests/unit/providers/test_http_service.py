"""The HTTP layer: what is sent, what comes back, and what is refused."""

import json
import threading

import pytest
from provider_checks import ask
from wire_server import DONE, event, replay

from littleghost.errors import (
    ConfigurationError,
    CredentialError,
    ProviderTimeoutError,
    StreamError,
)
from littleghost.messages import user
from littleghost.providers import CallControl, ModelRequest, http
from littleghost.providers.http import HttpService
from littleghost.providers.openai_compatible import OpenAICompatible
from littleghost.providers.profiles import PROFILES

HELLO = [event({"content": "hello"}), event(finish="stop"), DONE]


def test_the_request_is_strict_json_with_the_key(serve, connect):
    server = serve(replay(HELLO))
    ask(connect(server, "openrouter", api_key="sk-test-key\n", headers={"x-more": "1"}))
    exchange = server.exchanges[0]

    assert exchange.headers["authorization"] == "Bearer sk-test-key"
    assert exchange.headers["x-title"] == "LittleGhost"
    assert exchange.headers["x-more"] == "1"
    assert exchange.headers["accept-encoding"] == "identity"
    assert exchange.json["messages"] == [{"role": "user", "content": "hi"}]


def test_message_start_comes_with_the_first_chunk(serve, connect):
    go_on = threading.Event()

    def answer(exchange):
        exchange.head()
        exchange.chunk(event({"role": "assistant"}))
        assert go_on.wait(5)
        exchange.chunk(b"".join(HELLO))
        exchange.end()

    events = connect(serve(answer)).stream(
        ModelRequest(model="m", messages=[user("hi")]), CallControl()
    )

    first = next(events)
    go_on.set()
    assert (first.type, first.data) == (
        "message_start",
        {"id": "chatcmpl-1", "model": "test-model"},
    )
    assert [e.type for e in events] == ["text_delta", "message_stop"]


def test_a_whole_json_answer_to_a_streaming_request_is_understood(serve, connect):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"n":1}'}}
    message = {"role": "assistant", "content": "x", "tool_calls": [call]}
    body = {
        "id": "r",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 1},
    }
    server = serve(lambda exchange: exchange.whole(200, json.dumps(body, indent=1).encode()))
    response = ask(connect(server)).response

    assert response.message.text == "x"
    assert response.message.tool_uses[0].input == {"n": 1}
    assert response.usage is not None
    assert response.usage.total == 3


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error": {"message": "m", "code": 503}}', "overloaded"),
        (b'{"choices": [', "stream_incomplete"),
        (b'{"ok": true}', "stream_incomplete"),
        (b"<html>", "stream_incomplete"),
        (b"", "stream_incomplete"),
    ],
)
def test_a_good_status_with_no_answer_is_an_error(serve, connect, body, code):
    outcome = ask(connect(serve(lambda exchange: exchange.whole(200, body))))

    assert outcome.error is not None
    assert outcome.error.code == code


def test_an_error_status_says_what_the_service_said(serve, connect):
    body = json.dumps({"error": {"message": "slow down, my key-abcdefgh1234"}}).encode()
    server = serve(lambda exchange: exchange.whole(429, body, {"retry-after": "7"}))
    error = ask(connect(server, api_key="key-abcdefgh1234")).error

    assert error.code == "rate_limited"
    assert error.retry_after_s == 7
    assert str(error) == f"127.0.0.1:{server.port} answered 429: slow down, my ***"


def test_only_the_beginning_of_an_errors_body_is_read(serve, connect):
    def answer(exchange):
        exchange.head(500)
        exchange.chunk(b"x" * 10_000)
        exchange.wait_for_hang_up()

    error = ask(connect(serve(answer))).error

    assert error.code == "provider_error"
    assert len(str(error)) < 1200


def test_a_silent_server_times_out(serve, connect):
    server = serve(lambda exchange: exchange.wait_for_hang_up())
    error = ask(connect(server, read_timeout_s=0.05)).error

    assert isinstance(error, ProviderTimeoutError)
    assert error.is_retryable


def test_a_server_that_is_not_there_is_a_retryable_error(serve, connect):
    server = serve(replay(HELLO))
    server.__exit__()
    error = ask(connect(server)).error

    assert isinstance(error, StreamError)
    assert error.is_retryable
    assert "could not be reached" in str(error)


def test_a_reset_connection_is_a_retryable_error(serve, connect):
    def answer(exchange):
        exchange.head()
        exchange.chunk(HELLO[0])
        exchange.reset()

    error = ask(connect(serve(answer))).error

    assert isinstance(error, StreamError)
    assert error.is_retryable


def test_an_answer_without_end_is_bounded(serve, connect):
    def answer(exchange):
        exchange.head()
        while True:
            exchange.chunk(b": " + b"x" * 10_000 + b"\n\n")

    error = ask(connect(serve(answer), max_response_bytes=100_000)).error

    assert isinstance(error, StreamError)
    assert not error.is_retryable


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://api.test/v1", "unencrypted"),
        ("ftp://api.test", "https://"),
        ("api.test/v1", "https://"),
        ("", "https://"),
        ("https://api.test/v1?key=1", "query"),
        ("https://me:secret@api.test/v1", "must not hold credentials"),
    ],
)
def test_an_unsafe_base_url_is_refused(url, told):
    with pytest.raises(ConfigurationError, match=told) as caught:
        HttpService(url)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:1/v1", "http://127.0.0.9/v1", "http://[::1]:80", "https://a.test/"]
)
def test_a_loopback_or_secure_base_url_is_taken(url):
    assert HttpService(url).base_url == url.rstrip("/")


def test_another_host_can_be_allowed_without_encryption():
    assert HttpService("http://ollama:11434/v1", allow_insecure_http=True).host == "ollama:11434"


def broken_key():
    raise RuntimeError("vault says: hunter2")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (None, "OPENAI_API_KEY"),
        (lambda: "", "OPENAI_API_KEY"),
        ("sk\u00e9", "characters no key has"),
        ("a\nb", "characters no key has"),
        (broken_key, "raised RuntimeError"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_before_anything_is_sent(key, told):
    provider = OpenAICompatible(PROFILES["openai"], api_key=key)
    error = ask(provider).error

    assert isinstance(error, CredentialError)
    assert told in str(error)
    assert "hunter2" not in str(error)


def test_a_key_function_is_asked_for_each_request(serve, connect):
    keys = iter(["first", "second"])
    server = serve(replay(HELLO))
    provider = connect(server, api_key=lambda: next(keys))
    ask(provider)
    ask(provider)

    sent = [exchange.headers["authorization"] for exchange in server.exchanges]
    assert sent == ["Bearer first", "Bearer second"]
    assert "first" not in repr(provider)


def test_an_error_body_that_drips_is_given_up(serve, connect, monkeypatch):
    monkeypatch.setattr(http, "_ERROR_BODY_S", 0.1)

    def answer(exchange):
        exchange.head(500)
        exchange.chunk(b"so far")
        exchange.wait_for_hang_up()

    assert "so far" in str(ask(connect(serve(answer))).error)
