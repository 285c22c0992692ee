"""A private Redis per test session, emptied for each test, and fixed seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
import redis

from littleghost import wiring
from littleghost.providers.registry import Models
from littleghost.settings import Settings
from tests.support import cast
from tests.support.redis_server import Server, server_binary
from tests.support.world import World, make_world

hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, database=None, print_blob=False
)
hypothesis.settings.load_profile("fixed")


def pytest_report_header(config: pytest.Config) -> str:
    """Say which Redis the tests use."""
    del config
    return f"redis server: {server_binary()}"


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    """A Redis that belongs to this test session."""
    server = Server().start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _redis_client(redis_server: Server) -> redis.Redis:
    return redis_server.client()


@pytest.fixture
def client(_redis_client: redis.Redis) -> redis.Redis:
    """A client of the session's Redis, which is empty."""
    _redis_client.flushall()
    return _redis_client


@pytest.fixture(scope="session")
def cast_models() -> Models:
    """Models whose connection `script` answers by the scripts of the test agents."""
    models = Models({})
    models.connect("script", cast.CastProvider())
    return models


@pytest.fixture(scope="session")
def _worlds(
    redis_server: Server, _redis_client: redis.Redis, cast_models: Models
) -> Iterator[Callable[..., World]]:
    made: dict[Any, World] = {}

    def make(*, recorded: bool = False, **changes: Any) -> World:
        name = (recorded, *sorted(changes.items()))
        if name not in made:
            settings = Settings(redis_url=redis_server.url, **{"partitions": 2, **changes})
            made[name] = make_world(_redis_client, settings, cast_models, recorded=recorded)
        return made[name]

    yield make
    for world in made.values():
        for worker in (world.caller, *world.workers):
            worker.runtime.close()


@pytest.fixture
def worlds(_worlds: Callable[..., World]) -> Iterator[Callable[..., World]]:
    """Give worlds by their settings; each begins empty."""
    before = wiring._current

    def make(**changes: Any) -> World:
        world = _worlds(**changes)
        world.reset()
        return world

    yield make
    wiring._current = before
    cast.HOOKS.clear()


@pytest.fixture
def world(worlds: Callable[..., World]) -> World:
    """A world whose scripts push messages; every task goes through a queue."""
    return worlds(in_place_max=1)
