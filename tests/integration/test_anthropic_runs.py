"""Runs whose model speaks Anthropic's dialect: what goes back in the next turn and the next run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from littleghost import models, tool
from tests.integration.scripted import make_agent, results
from tests.unit.providers.wire_server import Exchange, WireServer, case_chunks, load_case

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


@tool(idempotent=True)
def lookup(k: str) -> str:
    """Look a key up."""
    return f"value of {k}"


@tool(idempotent=True)
def ping() -> str:
    """Answer."""
    return "pong"


def answer_of(text: str) -> bytes:
    parts: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "model": "syn", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    return b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts)


def test_thinking_goes_back_within_the_run_through_the_journal_and_not_into_the_next() -> None:
    case = load_case("anthropic-thinking-replay")
    answers = [b"".join(case_chunks(case)), answer_of("done"), answer_of("again")]

    def answer(exchange: Exchange) -> None:
        exchange.head()
        exchange.chunk(answers.pop(0))
        exchange.end()

    with WireServer(answer) as server:
        models().connect("claude-test", "anthropic", base_url=server.url, api_key="k")
        agent = make_agent([], lookup, ping, model="claude-test:syn", system_prompt="Be brief.")
        first = agent.ask("Go", session_id="thinking")
        second = agent.ask("And now?", session_id="thinking")
        models().close()

    assert first.response == "done", first.error
    assert second.response == "again", second.error
    assert results(first) == [("success", "value of v1"), ("success", "pong")]
    bodies = [exchange.json for exchange in server.exchanges]
    assert [body["system"][0]["text"] for body in bodies] == ["Be brief."] * 3
    wanted = case["expected"]["next_request_assistant_content"]
    assert bodies[1]["messages"][1]["content"] == wanted
    assert [part["content"] for part in bodies[1]["messages"][2]["content"]] == [
        "value of v1",
        "pong",
    ]
    kinds = [part["type"] for part in bodies[2]["messages"][1]["content"]]
    assert kinds == ["text", "tool_use", "tool_use"]
    assert first.result is not None
    assert first.result.usage.to_json() == {"input": 20, "output": 55}


def test_an_overload_in_the_middle_is_tried_again_and_leaves_no_trace() -> None:
    broken = b"".join(case_chunks(load_case("anthropic-overloaded-mid-stream")))
    hint = broken.replace(b'"Overloaded"', b'"Overloaded, try again in 0.02s"')
    answers = [hint, answer_of("whole")]

    def answer(exchange: Exchange) -> None:
        exchange.head()
        exchange.chunk(answers.pop(0))
        exchange.end()

    with WireServer(answer) as server:
        models().connect("claude-busy", "anthropic", base_url=server.url, api_key="k")
        run = make_agent([], model="claude-busy:syn").ask("Go")
        models().close()

    assert run.response == "whole", run.error
    assert len(server.exchanges) == 2
    assert server.exchanges[0].json == server.exchanges[1].json
