from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from wire_server import Exchange, WireServer

from littleghost.providers.http import HttpLimits
from littleghost.providers.openai_compatible import OpenAICompatible
from littleghost.providers.openai_responses import OpenAIResponses
from littleghost.providers.profiles import PROFILES


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


@pytest.fixture
def connect_responses() -> Iterator[Callable[..., OpenAIResponses]]:
    """Make providers of the Responses dialect for a server that are closed with the test."""
    made: list[OpenAIResponses] = []

    def make(server: WireServer, **options: Any):
        provider = OpenAIResponses(
            PROFILES["openai_responses"],
            base_url=server.url,
            api_key=options.pop("api_key", "test-key"),
            limits=HttpLimits(read_timeout_s=options.pop("read_timeout_s", 10)),
            **options,
        )
        made.append(provider)
        return provider

    yield make
    for provider in made:
        provider.close()
