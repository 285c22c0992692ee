from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from wire_server import Exchange, WireServer

from littleghost.errors import LittleGhostError
from littleghost.messages import user
from littleghost.providers import CallControl, ModelEvent, ModelRequest, ModelResponse
from littleghost.providers.http import HttpLimits
from littleghost.providers.openai_compatible import OpenAICompatible
from littleghost.providers.profiles import PROFILES


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


def ask(provider: Any, request: ModelRequest | None = None, control: CallControl | None = None):
    """Make one request and collect everything that comes of it."""
    outcome = Outcome()
    request = request or ModelRequest(model="test-model", messages=[user("hi")])
    try:
        for event in provider.stream(request, control or CallControl()):
            outcome.events.append(event)
    except LittleGhostError as error:
        outcome.error = error
    return outcome


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Exchange], None]], WireServer]]:
    """Start servers that end with the test."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(WireServer(answer))


@pytest.fixture
def connect() -> Iterator[Callable[..., OpenAICompatible]]:
    """Make providers for a server that are closed with the test."""
    made: list[OpenAICompatible] = []

    def make(server: WireServer, profile: str = "openai_compatible", **options: Any):
        names = ("open_timeout_s", "read_timeout_s", "max_response_bytes", "per_transport")
        limits = HttpLimits(**{name: options.pop(name) for name in names if name in options})
        provider = OpenAICompatible(
            PROFILES[profile], base_url=server.url, limits=limits, **options
        )
        made.append(provider)
        return provider

    yield make
    for provider in made:
        provider.close()
