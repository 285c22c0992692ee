"""The breaking server judges Gemini's provider by the same tests as the others."""

import pytest
from test_llmock import *  # noqa: F403
from test_llmock import READ_TIMEOUT_S, WEATHER, ask

from littleghost.messages import Message, ToolResult, user
from littleghost.providers.gemini import Gemini
from littleghost.providers.http import HttpLimits
from littleghost.providers.profiles import PROFILES


@pytest.fixture
def provider(mock):
    made = Gemini(
        PROFILES["gemini"],
        base_url=f"{mock.root}/gemini/v1beta",
        api_key="test-key",
        limits=HttpLimits(read_timeout_s=READ_TIMEOUT_S),
    )
    yield made
    made.close()


def test_a_broken_tool_call_is_reported_and_can_be_answered(mock, provider):
    # Gemini sends arguments as an object, so this server cannot break their text.
    question = user("What is the weather in Oslo?")
    mock.script({"type": "tool_fault", "kind": "unknown_tool"})
    first, _ = ask(provider, question, tools=[WEATHER])
    (use,) = first.message.tool_uses
    answer = Message("tool", (ToolResult(use.id, "there is no such tool", "error"),))
    second, _ = ask(provider, question, first.message, answer, tools=[WEATHER])

    assert use.name != WEATHER.name
    assert second.message.text
    mock.assert_resilient(attempts=2)
