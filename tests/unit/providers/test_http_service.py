"""The HTTP layer: limits, errors, connections, processes."""

import concurrent.futures
import json
import os
import threading
import warnings

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
from littleghost.providers import CallControl, ModelRequest, sockets
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


def test_connections_are_used_again(serve, connect):
    server = serve(replay(HELLO))
    provider = connect(server)
    for _ in range(5):
        assert ask(provider).response.message.text == "hello"

    assert server.connections == 1


def test_an_end_that_does_not_come_after_done_holds_nobody_up(serve, connect):
    def answer(exchange):
        exchange.head()
        exchange.chunk(b"".join(HELLO))
        exchange.wait_for_hang_up()

    assert ask(connect(serve(answer), read_timeout_s=60)).response.message.text == "hello"


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


def test_error_answers_leave_no_connection_behind(serve, connect):
    server = serve(lambda exchange: exchange.whole(503, b"busy"))
    provider = connect(server)
    for _ in range(60):
        assert ask(provider).error.code == "overloaded"

    assert server.open_connections <= 1


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


def test_leaving_the_stream_early_closes_the_connection(serve, connect):
    def answer(exchange):
        exchange.head()
        exchange.chunk(HELLO[0])
        exchange.wait_for_hang_up()

    server = serve(answer)
    events = connect(server).stream(ModelRequest(model="m", messages=[user("hi")]), CallControl())
    next(events)
    events.close()

    assert server.wait_until_all_closed()


def test_200_requests_at_once_leave_no_socket_behind(serve, connect):
    together = threading.Barrier(200)

    def answer(exchange):
        together.wait(20)
        exchange.head()
        for chunk in HELLO:
            exchange.chunk(chunk)
        exchange.end()

    server = serve(answer)
    provider = connect(server)
    before = len(sockets.open_sockets)
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        outcomes = list(pool.map(lambda _: ask(provider), range(200)))

    assert [outcome.response.message.text for outcome in outcomes] == ["hello"] * 200
    assert provider._service._spread.size == 4
    provider.close()
    assert len(sockets.open_sockets) == before
    assert server.wait_until_all_closed()


def test_100_requests_cut_at_once_leave_no_socket_behind(serve, connect):
    server = serve(lambda exchange: exchange.wait_for_hang_up())
    provider = connect(server)
    controls = [CallControl() for _ in range(100)]
    before = len(sockets.open_sockets)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        futures = [pool.submit(ask, provider, None, control) for control in controls]
        for _ in controls:
            server.came.get(timeout=10)
        for control in controls:
            control.cut()
        codes = {future.result(10).error.code for future in futures}

    assert codes == {"cancelled"}
    assert len(sockets.open_sockets) == before
    assert server.wait_until_all_closed()


def test_a_forked_child_opens_its_own_connections(serve, connect):
    go_on = threading.Event()

    def answer(exchange):
        exchange.head()
        exchange.chunk(HELLO[0])
        if exchange.json["model"] == "slow":
            assert go_on.wait(10)
        for chunk in HELLO[1:]:
            exchange.chunk(chunk)
        exchange.end()

    server = serve(answer)
    provider = connect(server)
    assert ask(provider).response.message.text == "hello"
    stream = provider.stream(ModelRequest(model="slow", messages=[user("hi")]), CallControl())
    next(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            has_none = not sockets.open_sockets
            is_right = ask(provider).response.message.text == "hello"
            code = 0 if has_none and is_right else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    go_on.set()

    assert [event.type for event in stream][-1] == "message_stop"
    assert len({exchange.client for exchange in server.exchanges}) == 2


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
