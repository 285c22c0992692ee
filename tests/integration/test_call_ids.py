"""Every tool call has a result of its own, whatever ids the model gives (P2)."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost import tool
from littleghost.messages import ToolResult
from littleghost.providers.scripted import Call, Reply
from tests.integration.scripted import (
    last_request,
    make_agent,
    results,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


class TestCallIds:
    """Models repeat ids; every call still has its own result."""

    def check(self, agent: Any, expected: list[str]) -> None:
        run = agent.ask("Go")
        assert [text for _, text in results(run)] == expected
        messages = last_request(agent)
        uses = [use for message in messages for use in message.tool_uses]
        answers = [
            block
            for message in messages
            for block in message.content
            if isinstance(block, ToolResult)
        ]
        assert len({use.id for use in uses}) == len(uses) == len(expected)
        assert [answer.tool_use_id for answer in answers] == [use.id for use in uses]
        assert all(use.id for use in uses)

    def test_twice_in_one_answer(self) -> None:
        @tool
        def work(n: int) -> str:
            """Work."""
            return str(n)

        batch = Reply(tool_calls=[Call("work", {"n": n}, id="same") for n in range(3)])
        self.check(make_agent([batch, "done"], work), ["0", "1", "2"])

    def test_again_in_a_later_turn(self) -> None:
        @tool
        def work(n: int) -> str:
            """Work."""
            return str(n)

        script = [Reply(tool_calls=[Call("work", {"n": n}, id="same")]) for n in range(3)]
        self.check(make_agent([*script, "done"], work), ["0", "1", "2"])

    def test_without_any(self) -> None:
        @tool
        def work(n: int) -> str:
            """Work."""
            return str(n)

        batch = Reply(tool_calls=[Call("work", {"n": n}, id="") for n in range(2)])
        self.check(make_agent([batch, "done"], work), ["0", "1"])
