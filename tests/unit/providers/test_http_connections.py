"""Connections: used again, given back, spread, and never shared with a forked child."""

import concurrent.futures
import os
import threading
import warnings

from provider_checks import ask
from wire_server import DONE, event, replay

from littleghost.messages import user
from littleghost.providers import CallControl, ModelRequest, sockets
from littleghost.providers.openai_compatible import OpenAICompatible
from littleghost.providers.profiles import PROFILES

HELLO = [event({"content": "hello"}), event(finish="stop"), DONE]


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


def test_error_answers_leave_no_connection_behind(serve, connect):
    server = serve(lambda exchange: exchange.whole(503, b"busy"))
    provider = connect(server)
    for _ in range(60):
        assert ask(provider).error.code == "overloaded"

    assert server.open_connections <= 1


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


def test_a_connection_that_goes_to_the_next_request_is_untouched_by_the_last_one(serve, connect):
    slow_down = threading.Event()

    def answer(exchange):
        exchange.head()
        for chunk in HELLO:
            # Longer than the wait for a body's end, which must not outlive its request.
            slow_down.wait(0.03)
            exchange.chunk(chunk)
        exchange.end()

    server = serve(answer)
    provider = connect(server, per_transport=4)

    def ask_and_cut_late(_):
        control = CallControl()
        outcome = ask(provider, control=control)
        control.cut()
        return outcome

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(ask_and_cut_late, range(200)))

    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert server.connections < 100


def test_a_proxy_of_the_environment_is_used_for_other_hosts(serve, monkeypatch):
    proxy = serve(replay(HELLO))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    provider = OpenAICompatible(
        PROFILES["openai_compatible"], base_url="http://api.test/v1", allow_insecure_http=True
    )

    assert ask(provider).response.message.text == "hello"
    assert proxy.exchanges[0].headers["host"] == "api.test"
    provider.close()
