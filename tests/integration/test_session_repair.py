"""A run that ended badly leaves its session fit to go on (P12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from littleghost import Run, models, tool
from littleghost.errors import InvalidRequestError
from littleghost.providers.scripted import Reply
from tests.integration.scripted import (
    Gate,
    calls,
    make_agent,
    until,
)
from tests.unit.providers.wire_server import DONE, Exchange, WireServer, event

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


class TestUnfinishedTurns:
    """A run that ended badly keeps its whole turns, and the next one's request is valid."""

    @pytest.fixture
    def service(self) -> Iterator[list[dict[str, Any]]]:
        """A model service that answers "ok", and remembers what it was asked."""
        asked: list[dict[str, Any]] = []

        def answer(exchange: Exchange) -> None:
            asked.append(exchange.json)
            exchange.head()
            exchange.chunk(event({"content": "ok"}) + event(finish="stop") + DONE)
            exchange.end()

        with WireServer(answer) as server:
            models().connect("sessions", "openai_compatible", base_url=server.url, api_key="k")
            yield asked
            models().close()

    def check_next(self, asked: list[dict[str, Any]], session: str) -> list[dict[str, Any]]:
        """Ask again in the session, and check what is sent to a strict service."""
        agent = make_agent([], model="sessions:m")
        assert agent.ask("Go on", session_id=session).response == "ok"
        messages = asked[-1]["messages"]
        waiting: list[str] = []
        for message in messages:
            if message["role"] == "tool":
                assert message["tool_call_id"] in waiting
                waiting.remove(message["tool_call_id"])
            else:
                assert waiting == [], "a call has no result"
                waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert waiting == []
        assert messages[-1]["content"] == "Go on"
        return messages

    def test_cancelled_between_two_calls(self, service: list[dict[str, Any]]) -> None:
        gate = Gate()

        @tool
        def t1() -> str:
            """Be quick."""
            return "one is done"

        @tool
        def t2() -> str:
            """Wait."""
            gate.enter()
            return "two is done"

        agent = make_agent([calls("t1", "t2"), "never"], t1, t2)
        run = agent.enqueue("Go", session_id="s-cut")
        gate.wait_for(1)
        until(lambda: _stopped_one(run), "the first call is recorded")
        run.cancel()
        assert run.wait(10).outcome == "cancelled"
        gate.open()

        messages = self.check_next(service, "s-cut")
        told = [message["content"] for message in messages if message["role"] == "tool"]
        assert told[0] == "one is done"
        assert "not finished" in told[1]

    def test_failed_after_a_turn(self, service: list[dict[str, Any]]) -> None:
        @tool
        def t1() -> str:
            """Be quick."""
            return "one is done"

        def script(request: Any) -> Reply:
            if len(request.messages) > 2:
                return Reply(error=InvalidRequestError("no"))
            return calls("t1", text="I look")

        run = make_agent(script, t1).ask("Go", session_id="s-failed")
        assert run.outcome == "failed"
        messages = self.check_next(service, "s-failed")
        assert [message["role"] for message in messages[1:]] == [
            "user",
            "assistant",
            "tool",
            "user",
        ]

    def test_a_tool_that_the_agent_no_longer_has(self, service: list[dict[str, Any]]) -> None:
        @tool
        def old_tool() -> str:
            """Be old."""
            return "old result"

        run = make_agent([calls("old_tool"), "done"], old_tool).ask("Go", session_id="s-gone")
        assert run.outcome == "completed"
        messages = self.check_next(service, "s-gone")
        assert any(message.get("content") == "old result" for message in messages)
        assert "tools" not in service[-1]

    def test_history_of_the_caller_with_an_open_call(self, service: list[dict[str, Any]]) -> None:
        call = {"type": "tool_use", "id": "x", "name": "y", "input": {}}
        history = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [call]},
            {
                "role": "tool",
                "content": [{"type": "tool_result", "tool_use_id": "z", "content": ""}],
            },
        ]
        agent = make_agent([], model="sessions:m")
        assert agent.ask("Go on", history=history).response == "ok"
        roles = [message["role"] for message in service[-1]["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "user"]
        json.dumps(service[-1], allow_nan=False)


def _stopped_one(run: Run) -> bool:
    from littleghost.wiring import runtime

    page = runtime().tail(run.id).read(0, 1)
    return any(stored["type"] == "tool_stop" for _, stored in page)
