"""`littleghost demo`: a newcomer's first minute."""

from __future__ import annotations

import json

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


def test_a_real_model_is_asked_where_it_is() -> None:
    done = littleghost(
        "demo", "--model", "tiny", "--base-url", "http://127.0.0.1:9/v1", "--json", timeout_s=110
    )
    assert done.returncode == 1
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["type"] == "run_error"
