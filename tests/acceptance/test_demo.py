"""`littleghost demo`: a newcomer's first minute."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from tests.acceptance.processes import CLI, Terminal, environment, littleghost, without_styles

pytestmark = pytest.mark.worker


def test_it_works_with_nothing_configured_and_says_that_it_is_scripted() -> None:
    done = littleghost("demo")
    assert done.returncode == 0, done.stderr
    assert "scripted stand-in" in done.stdout
    assert 'order_status {"order_number":"481"}' in done.stdout
    assert 'help_center_lookup {"topic":"refunds"}' in done.stdout
    assert "Order 481 left the warehouse" in done.stdout
    assert "completed" in done.stdout
    assert "tokens in" in done.stdout
    assert "Where to look next" in done.stdout
    assert "embedded Redis and worker started" in done.stderr


def test_a_question_of_ones_own_is_read() -> None:
    done = littleghost("demo", "What about order 777 and my invoices?")
    assert done.returncode == 0, done.stderr
    # Another account's order: the tool looks only where the caller may.
    assert "This account has no order 777" in done.stdout
    assert "Invoices are in the account" in done.stdout


def test_it_brings_its_own_redis_though_a_fleet_is_configured() -> None:
    done = littleghost("demo", env=environment(LITTLEGHOST_REDIS_URL="redis://127.0.0.1:1/0"))
    assert done.returncode == 0, done.stderr
    assert "embedded" in done.stderr


def test_json_is_the_events() -> None:
    done = littleghost("demo", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["type"] for event in (events[0], events[-1])] == ["run_start", "run_stop"]
    assert all(set(event) == {"id", "type", "data"} for event in events)


def test_on_a_terminal_text_appears_while_it_streams() -> None:
    terminal = Terminal([*CLI, "demo"], environment())
    try:
        terminal.read_until(lambda text: "turn 2 writes" in text, "the second turn streams")
        assert "= completed" not in terminal.output
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert "= completed" in without_styles(terminal.output)


def test_a_base_url_needs_a_model() -> None:
    done = littleghost("demo", "--base-url", "http://127.0.0.1:1/v1")
    assert done.returncode == 2
    assert "--model" in done.stderr


class _Model(BaseHTTPRequestHandler):
    """A model server that says one word."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append({"path": self.path, **json.loads(body)})
        delta = {
            "choices": [{"index": 0, "delta": {"content": "Certainly."}, "finish_reason": None}]
        }
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in (delta, end))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write((lines + "data: [DONE]\n\n").encode())

    def log_message(self, *arguments: object) -> None:
        del arguments


def test_a_real_model_is_asked_where_it_is() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        done = littleghost("demo", "--model", "tiny-1", "--base-url", url, "Hello?")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert done.returncode == 0, done.stderr
    assert "Certainly." in done.stdout
    assert "scripted" not in done.stdout
    asked = _Model.asked[0]
    assert (asked["path"], asked["model"]) == ("/v1/chat/completions", "tiny-1")
    assert {tool["function"]["name"] for tool in asked["tools"]} == {
        "order_status",
        "help_center_lookup",
    }


def test_ctrl_c_ends_it_at_once() -> None:
    command = [*CLI, "run", "tests.acceptance.shop:SlowAgent", "hi"]
    terminal = Terminal(command, environment())
    try:
        terminal.read_until(lambda text: "writes" in text, "text streams")
        terminal.interrupt()
        assert terminal.end(20) == 130
    finally:
        terminal.close()
    assert "cancelled" in terminal.output
