"""A whole run over the Responses dialect: the journal carries what the service must get back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from littleghost import models, tool
from tests.integration.scripted import make_agent
from tests.unit.providers.responses_checks import assert_valid_input
from tests.unit.providers.responses_wire import call, message, reasoning, stream
from tests.unit.providers.wire_server import Exchange, WireServer

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


@pytest.fixture
def service() -> Iterator[list[dict[str, Any]]]:
    """A service that calls `stock` until it has an answer to it; remembers what it was asked."""
    asked: list[dict[str, Any]] = []

    def answer(exchange: Exchange) -> None:
        asked.append(exchange.json)
        last = exchange.json["input"][-1]
        items = [message("Seven.", phase="final_answer")]
        if last["type"] == "message":
            number = str(len(asked))
            items = [
                reasoning(f"rs_{number}", "c2Vj"),
                message("Looking.", phase="commentary"),
                call(f"call_{number}", "stock", '{"sku":"A-17"}'),
            ]
        exchange.head()
        for block in stream(*items):
            exchange.chunk(block)
        exchange.end()

    with WireServer(answer) as server:
        models().connect("answers", "openai_responses", base_url=server.url, api_key="k")
        yield asked
        models().close()


def test_reasoning_goes_through_the_journal_within_a_run_and_not_beyond(
    service: list[dict[str, Any]],
) -> None:
    @tool(idempotent=True)
    def stock(sku: str) -> str:
        """Look up how many there are."""
        return f"7 of {sku}"

    agent = make_agent([], stock, model="answers:m")
    first = agent.ask("How many A-17?", session_id="stock-talk")
    second = agent.ask("Once more", session_id="stock-talk")

    assert first.response == second.response == "Seven."
    assert len(service) == 4
    for body in service:
        assert_valid_input(body["input"])
        assert body["store"] is False
        assert body["tools"][0]["strict"] is True
    own = [[i["id"] for i in body["input"] if i["type"] == "reasoning"] for body in service]
    assert own == [[], ["rs_1"], [], ["rs_3"]]
    texts = [i for i in service[1]["input"] if i.get("role") == "assistant"]
    assert [text.get("phase") for text in texts] == ["commentary"]
    outputs = [i["output"] for i in service[3]["input"] if i["type"] == "function_call_output"]
    assert outputs == ["7 of A-17", "7 of A-17"]
