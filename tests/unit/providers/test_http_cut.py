"""Requests that are cut, that run out of time, and answers that break off."""

import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest
from provider_checks import ask
from wire_server import DONE, event

from littleghost.errors import CancelledError, DeadlineExceededError, StreamError
from littleghost.providers import CallControl, connecting, endpoint
from littleghost.providers.openai_compatible import OpenAICompatible
from littleghost.providers.profiles import PROFILES

# Seconds after which a cut request counts as stuck. Real cuts take a millisecond.
STUCK_S = 5


class Asking(threading.Thread):
    """A request in a thread of its own."""

    def __init__(self, provider, control=None):
        super().__init__()
        self.control = control or CallControl()
        self.provider = provider
        self.outcome = None
        self.start()

    def run(self):
        self.outcome = ask(self.provider, control=self.control)

    def cut(self, error=None):
        self.control.cut(error)
        self.join(STUCK_S)
        assert not self.is_alive(), "the cut did not reach the request"
        return self.outcome


def silent(exchange):
    exchange.wait_for_hang_up()


def one_event_then_silent(exchange):
    exchange.head()
    exchange.chunk(event({"content": "x"}))
    exchange.wait_for_hang_up()


@pytest.mark.parametrize("answer", [silent, one_event_then_silent])
@pytest.mark.parametrize("error", [None, DeadlineExceededError("late")])
def test_a_request_is_cut_while_it_waits(serve, connect, answer, error):
    server = serve(answer)
    asking = Asking(connect(server))
    server.came.get(timeout=5)

    outcome = asking.cut(error)

    assert type(outcome.error) is (CancelledError if error is None else type(error))
    assert server.wait_until_all_closed()


def test_a_second_request_on_a_kept_connection_can_be_cut(serve, connect):
    def answer(exchange):
        exchange.head()
        exchange.chunk(event({"content": "x"}, "stop") + DONE)
        exchange.end()

    server = serve(answer)
    provider = connect(server)
    assert ask(provider).response.message.text == "x"
    server.came.get(timeout=5)
    server.answer = silent
    asking = Asking(provider)
    server.came.get(timeout=5)

    assert isinstance(asking.cut().error, CancelledError)
    assert server.connections == 1


def test_a_request_is_cut_while_it_is_sent(serve, connect):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    port = listener.getsockname()[1]
    provider = OpenAICompatible(
        PROFILES["openai_compatible"],
        base_url=f"http://127.0.0.1:{port}/v1",
        api_key=lambda: "k" * 20_000_000,
    )
    with listener:
        asking = Asking(provider)
        accepted, _ = listener.accept()
        with accepted:
            accepted.recv(1)

            assert isinstance(asking.cut().error, CancelledError)
    provider.close()


def test_a_request_is_cut_while_it_connects(monkeypatch):
    # A full backlog: the kernel answers no further connection.
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    address = listener.getsockname()
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(address)
    begun, real = threading.Event(), connecting.connect

    def probe(*args):
        begun.set()
        real(*args)

    monkeypatch.setattr(connecting, "connect", probe)
    provider = OpenAICompatible(
        PROFILES["openai_compatible"], base_url=f"http://127.0.0.1:{address[1]}/v1"
    )
    asking = Asking(provider)
    assert begun.wait(STUCK_S)

    assert isinstance(asking.cut().error, CancelledError)
    for sock in (listener, *fillers):
        sock.close()
    provider.close()


def test_a_request_that_was_cut_before_is_not_sent(serve, connect):
    server = serve(silent)
    control = CallControl()
    control.cut()

    assert isinstance(ask(connect(server), control=control).error, CancelledError)
    assert server.exchanges == []


def test_the_deadline_ends_an_answer_that_drips_for_ever(serve, connect):
    def drip(exchange):
        exchange.head()
        exchange.chunk(event({"content": "x"}))
        while True:
            exchange.chunk(b": ping\n\n")
            time.sleep(0.01)  # The server's pace, not a wait of the test.

    outcome = ask(connect(serve(drip)), control=CallControl(deadline_s=0.2))

    assert isinstance(outcome.error, DeadlineExceededError)
    assert outcome.text == "x"


def test_the_deadline_ends_a_wait_for_headers(serve, connect):
    outcome = ask(connect(serve(silent)), control=CallControl(deadline_s=0.1))

    assert isinstance(outcome.error, DeadlineExceededError)


def test_a_name_that_is_slow_to_resolve_can_be_cut(monkeypatch):
    asked, released = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def slow(host, *args):
        if host != "slow.test":
            return real(host, *args)
        asked.set()
        released.wait(STUCK_S)
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    provider = OpenAICompatible(
        PROFILES["openai_compatible"], base_url="http://slow.test/v1", allow_insecure_http=True
    )
    asking = Asking(provider)
    assert asked.wait(STUCK_S)

    assert isinstance(asking.cut().error, CancelledError)
    released.set()
    assert isinstance(ask(provider).error, StreamError)
    provider.close()


@pytest.fixture
def certificate(tmp_path, monkeypatch):
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
        "-out", str(paths[0]), "-keyout", str(paths[1]),
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    monkeypatch.setenv("SSL_CERT_FILE", str(paths[0]))
    endpoint.ssl_context.cache_clear()
    yield paths
    endpoint.ssl_context.cache_clear()


def secure(server, paths: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*paths)
    server.wrap(context)
    server.url = f"https://localhost:{server.port}/v1"


def test_a_request_in_tls_is_answered_and_cut(serve, connect, certificate):
    def answer(exchange):
        exchange.head()
        exchange.chunk(event({"content": "x"}, "stop") + DONE)
        exchange.end()

    server = serve(answer)
    secure(server, certificate)
    provider = connect(server)
    assert ask(provider).response.message.text == "x"
    server.came.get(timeout=5)
    for behaviour in (silent, one_event_then_silent):
        server.answer = behaviour
        asking = Asking(provider)
        server.came.get(timeout=5)

        assert isinstance(asking.cut().error, CancelledError)


def test_a_tls_handshake_that_hangs_can_be_cut():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        provider = OpenAICompatible(
            PROFILES["openai_compatible"], base_url=f"https://127.0.0.1:{port}/v1"
        )
        asking = Asking(provider)
        accepted, _ = listener.accept()
        with accepted:
            accepted.recv(1)

            assert isinstance(asking.cut().error, CancelledError)
        provider.close()


def test_a_certificate_that_is_not_trusted_is_not_tried_again(
    serve, connect, certificate, monkeypatch
):
    server = serve(silent)
    secure(server, certificate)
    monkeypatch.delenv("SSL_CERT_FILE")
    endpoint.ssl_context.cache_clear()
    outcome = ask(connect(server))

    assert isinstance(outcome.error, StreamError)
    assert not outcome.error.is_retryable
    assert "CERTIFICATE_VERIFY_FAILED" in str(outcome.error)


ORDINARY = (
    event({"role": "assistant", "content": ""})
    + event({"content": "Hello w\u00f6rld"})
    + event({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]})
    + event({"tool_calls": [{"index": 0, "function": {"arguments": '{"n":1}'}}]})
    + event(finish="tool_calls", usage={"prompt_tokens": 3, "completion_tokens": 2})
    + DONE
)


@pytest.mark.parametrize("end", ["end", "hang_up"])
def test_an_answer_cut_at_any_byte_is_an_error_or_the_whole_answer(serve, connect, end):
    cut = 0

    def answer(exchange):
        exchange.head()
        if cut:
            exchange.chunk(ORDINARY[:cut])
        getattr(exchange, end)()

    server = serve(answer)
    provider = connect(server)
    whole = len(ORDINARY) - len(DONE)
    good = 0
    for cut in range(len(ORDINARY) + 1):
        outcome = ask(provider)
        if outcome.error is None:
            good += 1
            assert cut >= whole - 2, "a cut answer was taken for a whole one"
            response = outcome.response
            assert response.message.text == "Hello w\u00f6rld"
            assert [(u.name, u.input) for u in response.message.tool_uses] == [("f", {"n": 1})]
            assert response.finish == "tool_calls"
            assert response.usage is not None
        else:
            assert isinstance(outcome.error, StreamError)
            assert outcome.error.is_retryable
    assert good >= 1
