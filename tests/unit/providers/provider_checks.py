"""Asking a provider in a test, and what must hold of every request."""

from dataclasses import dataclass, field
from typing import Any

from littleghost.errors import LittleGhostError
from littleghost.messages import user
from littleghost.providers import CallControl, ModelEvent, ModelRequest, ModelResponse


@dataclass
class Outcome:
    """What came of one request."""

    events: list[ModelEvent] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def response(self) -> ModelResponse:
        assert self.error is None, self.error
        assert [event.type for event in self.events].count("message_stop") == 1
        response = self.events[-1].response
        assert response is not None
        return response

    @property
    def text(self) -> str:
        deltas = [event.data["text"] for event in self.events if event.type == "text_delta"]
        assert all(deltas)
        return "".join(deltas)


def ask(
    provider: Any, request: ModelRequest | None = None, control: CallControl | None = None
) -> Outcome:
    """Make one request and collect everything that comes of it."""
    outcome = Outcome()
    request = request or ModelRequest(model="test-model", messages=[user("hi")])
    try:
        for event in provider.stream(request, control or CallControl()):
            outcome.events.append(event)
    except LittleGhostError as error:
        outcome.error = error
    return outcome


def assert_valid_pairs(messages):
    """Every call is answered right after it, once, and nothing else is answered."""
    position = 0
    while position < len(messages):
        calls = [call["id"] for call in messages[position].get("tool_calls", [])]
        position += 1
        for id_ in calls:
            assert messages[position]["role"] == "tool"
            assert messages[position]["tool_call_id"] == id_
            position += 1
        assert position == len(messages) or messages[position]["role"] != "tool"
