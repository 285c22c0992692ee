from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from wire_server import Exchange, WireServer

from littleghost.providers.dialects import DIALECTS
from littleghost.providers.http import HttpLimits
from littleghost.providers.profiles import PROFILES


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Exchange], None]], WireServer]]:
    """Start servers that end with the test."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(WireServer(answer))


@pytest.fixture
def connect() -> Iterator[Callable[..., Any]]:
    """Make providers for a server that are closed with the test."""
    made: list[Any] = []

    def make(server: WireServer, profile: str = "openai_compatible", **options: Any):
        names = ("open_timeout_s", "read_timeout_s", "max_response_bytes", "per_transport")
        limits = HttpLimits(**{name: options.pop(name) for name in names if name in options})
        service = DIALECTS[PROFILES[profile].dialect].load()
        provider = service(PROFILES[profile], base_url=server.url, limits=limits, **options)
        made.append(provider)
        return provider

    yield make
    for provider in made:
        provider.close()


@pytest.fixture
def connect_responses(connect: Callable[..., Any]) -> Callable[..., Any]:
    """Make providers of the Responses dialect, with a key, that are closed with the test."""

    def make(server: WireServer, **options: Any):
        usual = {"api_key": "test-key", "read_timeout_s": 10}
        return connect(server, "openai_responses", **{**usual, **options})

    return make
