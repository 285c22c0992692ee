"""The scripted stand-in reads nothing but the request."""

from __future__ import annotations

from typing import Any

from littleghost.demo import support
from littleghost.messages import Message, ToolResult, assistant, system, user
from littleghost.providers.base import ModelRequest
from littleghost.providers.stand_in import reply

TOOLS = tuple(
    tool.specification() for tool in (support.OrderStatusTool, support.help_center_lookup)
)


def _ask(*messages: Message, tools: Any = TOOLS) -> Any:
    return reply(
        ModelRequest(model="stand-in", messages=(system("be kind"), *messages), tools=tools)
    )


def _results(*texts: str, status: Any = "success") -> Message:
    return Message("tool", tuple(ToolResult(f"c{i}", text, status) for i, text in enumerate(texts)))


def test_it_calls_what_the_question_has_arguments_for() -> None:
    calls = {call.name: call.input for call in _ask(user(support.QUESTION)).tool_calls}
    assert calls == {
        "order_status": {"order_number": "481"},
        "help_center_lookup": {"topic": "refunds"},
    }
    assert [call.name for call in _ask(user("order 502?")).tool_calls] == ["order_status"]


def test_it_answers_from_the_results_of_this_question_only() -> None:
    earlier = (user("order 11?"), _results("Old news."), assistant("Old news."))
    answer = _ask(*earlier, user("order 481?"), _results("It arrives.", "Refunds: yes."))
    assert answer.text == "It arrives. Refunds: yes."
    assert not answer.tool_calls
    assert "could not find" in _ask(user("order 1111?"), _results("none", status="error")).text


def test_without_anything_to_call_it_says_what_it_is() -> None:
    for answer in (_ask(user("hello")), _ask(user("order 481?"), tools=())):
        assert "scripted" in answer.text
        assert not answer.tool_calls
