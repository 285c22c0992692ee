"""`littleghost demo`: a newcomer's first minute."""

from __future__ import annotations

import json
from collections.abc import Callable
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


def test_a_pipe_gets_the_nodes_in_order_with_what_led_to_them() -> None:
    lines = littleghost("demo").stdout.splitlines()
    told = [line.partition("  ")[0] for line in lines if line[:1] in ("✓", ">")]
    # Two of them ran at once.
    told[2:4] = sorted(told[2:4])
    assert told == [
        "✓ [triage] done",
        "> triage → billing + policies",
        "✓ [billing] done",
        "✓ [policies] done",
        "> billing + policies → respond",
        "✓ [respond] done",
    ]
    started = [line for line in lines if line.endswith("started")]
    assert len(started) == 4
    (answer,) = (line for line in lines if line.startswith("    [respond] "))
    assert "Order 481" in answer
    assert "30 days" in answer
    assert lines.index(answer) < lines.index("= completed")


def test_a_general_question_goes_the_other_way() -> None:
    done = littleghost("demo", "How fast is shipping?")
    assert done.returncode == 0, done.stderr
    assert "> triage → general" in done.stdout
    assert "> general → respond" in done.stdout
    assert "[billing]" not in done.stdout
    assert "Shipping takes 3 working days" in done.stdout


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


def test_on_a_terminal_the_tree_is_seen_while_it_grows() -> None:
    terminal = Terminal([*CLI, "demo"], environment())
    try:
        for sight in ("triage", "billing", "respond  turn 1 writes"):
            seen = _sees(sight)
            terminal.read_until(seen, sight)
            assert "= completed" not in terminal.output
        assert terminal.end() == 0
    finally:
        terminal.close()
    # What remains: the whole tree, standing still, the answer and the totals.
    rows = without_styles(terminal.output).replace("\r", "").split("\n")
    root = max(index for index, row in enumerate(rows) if row.startswith("✓ support  graph · "))
    tree = rows[root : root + 7]
    assert [row[:12].rstrip() for row in tree] == [
        "✓ support  g",
        "├─ ✓ triage",
        *[tree[2][:12].rstrip()],
        "│     → " + tree[3][8:12],
        *[tree[4][:12].rstrip()],
        "│     → " + tree[5][8:12],
        "└─ ✓ respond",
    ]
    assert {tree[2].split()[2], tree[4].split()[2]} == {"billing", "policies"}
    assert "after billing + policies" in tree[6]
    after = "\n".join(rows[root + 7 :])
    assert "Thank you for asking! Order 481" in after
    assert "= completed" in after
    assert "6 turns, 2 tool calls" in after


def _sees(sight: str) -> Callable[[str], bool]:
    return lambda text: sight in without_styles(text)


def test_a_terminal_that_can_do_nothing_gets_lines() -> None:
    terminal = Terminal(["env", "TERM=dumb", *CLI, "demo"], environment())
    try:
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert "✓ [respond] done" in terminal.output
    assert "\x1b" not in terminal.output


def test_a_base_url_needs_a_model() -> None:
    done = littleghost("demo", "--base-url", "http://127.0.0.1:1/v1")
    assert done.returncode == 2
    assert "--model" in done.stderr


class _Model(BaseHTTPRequestHandler):
    """A model server that says one word, the one that leads to billing."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append({"path": self.path, **json.loads(body)})
        delta = {"choices": [{"index": 0, "delta": {"content": "billing"}, "finish_reason": None}]}
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
    assert "[respond] billing" in done.stdout
    assert "scripted" not in done.stdout
    asked = _Model.asked[0]
    assert (asked["path"], asked["model"]) == ("/v1/chat/completions", "tiny-1")
    offered = [tool["function"]["name"] for body in _Model.asked for tool in body.get("tools", ())]
    assert sorted(offered) == ["help_center_lookup", "order_status"]


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
