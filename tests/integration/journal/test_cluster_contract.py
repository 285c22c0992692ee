"""The contract of the journal on a Redis Cluster: tests of one server, run again on three nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis.cluster import RedisCluster

from littleghost import wiring
from littleghost.providers.registry import Models
from littleghost.settings import Settings
from tests.contract.journal import (
    test_begin_runs,
    test_cancelled_participants,
    test_doctor,
    test_event_tail,
    test_fencing,
    test_pieces,
    test_session_order,
    test_shared_lists,
    test_stopping,
    test_working_state,
)
from tests.integration.journal.test_cut import cut_everywhere
from tests.support import cast
from tests.support.redis_cluster import Cluster, cluster_binary
from tests.support.scenarios import SCENARIOS
from tests.support.world import World, make_world

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(cluster_binary() is None, reason="no Redis server can be started here"),
]

CONTRACT = (
    test_begin_runs,
    test_cancelled_participants,
    test_doctor,
    test_event_tail,
    test_fencing,
    test_pieces,
    test_session_order,
    test_shared_lists,
    test_stopping,
    test_working_state,
)
# They look at messages that scripts have pushed.
NOT_HERE = {
    "test_the_same_call_sent_again_changes_nothing",
    "test_a_lost_ready_entry_is_mended",
}
for _module in CONTRACT:
    for _name, _value in vars(_module).items():
        if not _name.startswith("__") and _name not in NOT_HERE:
            globals().setdefault(_name, _value)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="module")
def _cluster_client(cluster: Cluster) -> RedisCluster:
    return cluster.client()


@pytest.fixture
def client(_cluster_client: RedisCluster) -> RedisCluster:
    """A client of the cluster, which is empty."""
    _cluster_client.flushall()
    return _cluster_client


@pytest.fixture(scope="module")
def _cluster_worlds(
    cluster: Cluster, _cluster_client: RedisCluster, cast_models: Models
) -> Iterator[Callable[..., World]]:
    made: dict[Any, World] = {}

    def make(*, recorded: bool = True, **changes: Any) -> World:
        del recorded
        name = tuple(sorted(changes.items()))
        if name not in made:
            url = {"redis_url": cluster.url, "broker_url": "memory://recorded"}
            settings = Settings(**url, **{"partitions": 2, **changes})
            made[name] = make_world(_cluster_client, settings, cast_models, recorded=True)
        return made[name]

    yield make
    for world in made.values():
        for worker in (world.caller, *world.workers):
            worker.runtime.close()


@pytest.fixture
def worlds(_cluster_worlds: Callable[..., World]) -> Iterator[Callable[..., World]]:
    """Give worlds by their settings; each begins empty, and its messages go through Python."""
    before = wiring._current

    def make(**changes: Any) -> World:
        world = _cluster_worlds(**changes)
        world.reset()
        return world

    yield make
    wiring._current = before
    cast.HOOKS.clear()


@pytest.mark.parametrize("name", ["parallel", "session"])
def test_the_end_is_the_same_wherever_a_run_is_cut(worlds: Callable[..., World], name: str) -> None:
    scenario = next(item for item in SCENARIOS if item.name == name)
    assert cut_everywhere(worlds(in_place_max=1), scenario) > 20
