"""Runs whose model speaks Gemini's dialect: what goes back in the next turn and the next run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from littleghost import Tool, models, tool
from tests.integration.scripted import make_agent, results
from tests.unit.providers.wire_server import Exchange, WireServer, case_chunks, load_case

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


@tool(idempotent=True)
def weather(city: str) -> str:
    """Look the weather up."""
    return {"Bergen": "8C", "Oslo": "2C"}[city]


@tool(idempotent=True)
def ping() -> str:
    """Answer."""
    return "pong"


def answer_of(text: str) -> bytes:
    content = {"role": "model", "parts": [{"text": text}]}
    chunk = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def test_signatures_go_back_within_the_run_and_not_into_the_next() -> None:
    case = load_case("gemini-calls-without-id")
    body = b"".join(case_chunks(case))
    answers = [b"data: " + body + b"\n\n", answer_of("done"), answer_of("again")]

    def answer(exchange: Exchange) -> None:
        exchange.head()
        exchange.chunk(answers.pop(0))
        exchange.end()

    with WireServer(answer) as server:
        models().connect("gemini-test", "gemini", base_url=server.url, api_key="k")
        agent = make_agent([], weather, ping, model="gemini-test:gemini-3-pro", system_prompt="Hi.")
        first = agent.ask("Go", session_id="signatures")
        second = agent.ask("And now?", session_id="signatures")
        models().close()

    assert first.response == "done", first.error
    assert second.response == "again", second.error
    assert results(first) == [("success", "8C"), ("success", "2C"), ("success", "pong")]
    bodies = [exchange.json for exchange in server.exchanges]
    assert [body["systemInstruction"]["parts"][0]["text"] for body in bodies] == ["Hi."] * 3
    received = json.loads(body)["candidates"][0]["content"]["parts"]
    assert bodies[1]["contents"][1]["parts"] == received
    assert [part["functionResponse"] for part in bodies[1]["contents"][2]["parts"]] == [
        {"name": "weather", "response": {"output": "8C"}},
        {"name": "weather", "response": {"output": "2C"}},
        {"name": "ping", "response": {"output": "pong"}},
    ]
    assert not any("thoughtSignature" in part for part in bodies[2]["contents"][1]["parts"])
    declared = {d["name"]: d for d in bodies[0]["tools"][0]["functionDeclarations"]}
    assert declared["weather"]["parameters"]["properties"] == {"city": {"type": "STRING"}}
    assert "parameters" not in declared["ping"]
    assert first.result is not None
    assert first.result.usage.to_json() == {"input": 8, "output": 9}


def test_a_schema_that_gemini_cannot_take_ends_the_run_before_anything_is_sent() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": node},
    }

    class WalkTool(Tool):
        name = "walk"
        description = "Walk a tree."
        input_schema = schema

        def call(self, input: Any) -> str:
            return str(input)

    with WireServer(lambda exchange: exchange.whole(500, b"")) as server:
        models().connect("gemini-deep", "gemini", base_url=server.url, api_key="k")
        run = make_agent([], WalkTool, model="gemini-deep:m").enqueue("Go").wait(timeout_s=20)
        models().close()

    assert run.status == "failed"
    assert "tool 'walk'" in str(run.error)
    assert "$.properties.root.properties.next refers to itself" in str(run.error)
    assert server.exchanges == []
