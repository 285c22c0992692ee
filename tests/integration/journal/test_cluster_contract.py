"""The contract of the journal on a Redis Cluster: tests of one server, run again on three nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis.cluster import RedisCluster

from littleghost import wiring
from littleghost.errors import JournalUnavailableError
from littleghost.journal import keys
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
from tests.support.checks import check_journal, contents
from tests.support.direct import PARTITIONS, begin, finish, journal_of, keeper_of, take
from tests.support.redis_cluster import Cluster, Node, cluster_binary
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


def _turn_to(cluster: Cluster, slot: int, verb: str, source: Node, target: Node) -> None:
    with source.client() as old, target.client() as new:
        names = [client.execute_command("CLUSTER MYID") for client in (old, new)]
        if verb == "begin":
            new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", names[0])
            old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", names[1])
            return
    for node in (target, source, *cluster.nodes):
        with node.client() as client:
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", names[1])


def test_no_script_is_half_done_while_its_slot_is_moved(
    client: RedisCluster, cluster: Cluster
) -> None:
    """Keys move one by one; nothing changes meanwhile, and then everything goes on elsewhere."""
    journal, prefix = journal_of(client), keys.prefix(1)
    begin(journal, "01-old", session="s")
    lease = take(journal, "01-old")
    slot = client.keyslot(prefix)
    source = next(n for n in cluster.nodes if n.name == client.get_node_from_key(prefix).name)
    target = next(node for node in cluster.nodes if node is not source)
    names = sorted(client.scan_iter(f"{prefix}*", count=1000))
    before = contents(client, names)

    def is_refused() -> None:
        with pytest.raises(JournalUnavailableError):
            begin(journal, "01-new", session="s")
        with pytest.raises(JournalUnavailableError):
            journal.commit(lease, finish())
        with pytest.raises(JournalUnavailableError):
            keeper_of(journal).round()

    _turn_to(cluster, slot, "begin", source, target)
    is_refused()
    with source.client() as old:
        for name in names:
            old.execute_command("MIGRATE", "127.0.0.1", target.port, name, 0, 5_000)
            is_refused()
    _turn_to(cluster, slot, "end", source, target)
    assert contents(client, names) == before
    assert client.get_node_from_key(prefix).name == target.name
    assert journal.commit(lease, finish()).recorded
    begin(journal, "01-new", session="s")
    assert take(journal, "01-new")
    check_journal(client, PARTITIONS)
    _turn_to(cluster, slot, "begin", target, source)
    with target.client() as old:
        for name in client.scan_iter(f"{prefix}*", count=1000):
            old.execute_command("MIGRATE", "127.0.0.1", source.port, name, 0, 5_000)
    _turn_to(cluster, slot, "end", target, source)
