"""What Redis does wrong in the middle of work: a clear error, and nothing half-made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from littleghost.engine.commands import TryAgain
from littleghost.errors import (
    JournalError,
    JournalUnavailableError,
    SchemaVersionError,
    UnsafeRedisError,
)
from littleghost.journal.policy import check_policy, check_schema
from littleghost.journal.store import RedisJournal
from tests.support.cast import EFFECTS, Clerk
from tests.support.checks import check_journal, contents
from tests.support.direct import (
    PARTITIONS,
    answer,
    batch,
    begin,
    fields_of,
    finish,
    journal_of,
    keeper_of,
    make_due,
    plan_of,
    result,
    take,
    tasks_of,
)
from tests.support.redis_server import Server, wait_until
from tests.support.world import World

pytestmark = pytest.mark.redis


def everything(client: redis.Redis) -> dict[str, Any]:
    return contents(client, sorted(client.scan_iter()))


@contextmanager
def out_of_memory(client: redis.Redis) -> Iterator[None]:
    client.config_set("maxmemory", 1)
    try:
        yield
    finally:
        client.config_set("maxmemory", 0)


@contextmanager
def read_only(client: redis.Redis) -> Iterator[None]:
    client.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        yield
    finally:
        client.execute_command("REPLICAOF", "NO", "ONE")


def prepare(journal: RedisJournal) -> dict[str, Callable[[], object]]:
    """Give one of each writing operation, ready to be done."""
    begin(journal, "00-turn", deadline_ms=60_000)
    begin(journal, "00-call")
    begin(journal, "00-next", session="s")
    begin(journal, "00-wait", session="s")
    begin(journal, "00-stop")
    turn = take(journal, "00-turn")
    journal.commit(take(journal, "00-call"), [*answer("a"), batch(0, 2)])
    call = take(journal, "00-call", "0-c0.0")
    held = take(journal, "00-next")
    take(journal, "00-stop")
    return {
        "create": lambda: begin(journal, "00-new", session="t", deadline_ms=60_000),
        "claim": lambda: journal.claim("00-call", "0-c0.1", at_ms=1, queue="q"),
        "emit": lambda: journal.emit(turn, ['{"type":"text_delta","p":"0","d":{"text":"x"}}']),
        "commit of a turn": lambda: journal.commit(turn, [*answer("b"), batch(0, 9, width=2)]),
        "commit of a call": lambda: journal.commit(call, result("r"), serves=["lg.turns"]),
        "commit of the end": lambda: journal.commit(held, finish()),
        "release": lambda: journal.release("00-turn", "0-t0", "a", lost=True),
        "stop": lambda: journal.stop_run("00-stop", "cancel", {}),
        "stop at once": lambda: journal.stop_run("00-wait", "cancel", {}),
        "sweep": lambda: keeper_of(journal).round(),
        "reclaim": lambda: keeper_of(journal)._reclaim(0, "a"),
        "audit": lambda: keeper_of(journal).audit("00-turn", mend=True),
    }


OPERATIONS = [
    "create", "claim", "emit", "commit of a turn", "commit of a call", "commit of the end",
    "release", "stop", "stop at once", "sweep", "reclaim", "audit",
]  # fmt: skip


@pytest.mark.parametrize("fault", [out_of_memory, read_only])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_happens_whole_or_not_at_all(
    client: redis.Redis, name: str, fault: Callable[[redis.Redis], Any]
) -> None:
    journal = journal_of(client)
    work = prepare(journal)[name]
    before = everything(client)
    with fault(client):
        try:
            work()
        except JournalUnavailableError:
            assert everything(client) == before
        # Some servers let an operation through that only frees memory; it is then whole.
    check_journal(client, PARTITIONS)
    if everything(client) == before:
        work()
        check_journal(client, PARTITIONS)


@pytest.mark.parametrize("fault", [out_of_memory, read_only])
def test_a_timer_is_not_lost_while_redis_cannot_write(
    client: redis.Redis, fault: Callable[[redis.Redis], Any]
) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    journal.commit(take(journal, "00-1"), [TryAgain(5, 1)])
    keeper = keeper_of(journal)
    make_due(journal, "timers")
    with fault(client):
        try:
            keeper.round()
        except JournalUnavailableError:
            assert tasks_of(journal, "00-1") == {"0-t0": "wait"}
    check_journal(client, PARTITIONS)
    keeper.round()
    assert tasks_of(journal, "00-1") == {"0-t0": "ready"}


def test_loading_is_an_outage_that_passes() -> None:
    server = Server().start()
    try:
        client = server.client()
        pipeline = client.pipeline()
        for number in range(2_000):
            pipeline.set(f"k{number}", f"{number:0100d}")
        pipeline.execute()
        client.save()
        dump = (server.directory / "dump.rdb").read_bytes()
    finally:
        server.stop()
    # Each key takes 2 ms to load, so that the server is seen loading for some seconds.
    slow = {"key-load-delay": "2000", "loading-process-events-interval-bytes": "1024"}
    loading = Server(**slow)
    try:
        Path(loading.directory, "dump.rdb").write_bytes(dump)
        loading.start(wait=False)
        wait_until(loading.socket.exists, "the server listens")
        journal = journal_of(loading.client())
        with pytest.raises(JournalUnavailableError, match=r"(?i)loading"):
            begin(journal, "00-1")
    finally:
        loading.stop()


def test_a_server_that_is_gone_is_an_outage() -> None:
    server = Server().start()
    journal = journal_of(server.client())
    begin(journal, "00-1")
    client = journal.client
    server.stop()
    with pytest.raises(JournalUnavailableError):
        journal.claim("00-1", "0-t0")
    client.close()


def test_scripts_may_be_forgotten_at_any_time(world: World) -> None:
    run = Clerk.enqueue("parallel")
    operate = world.operate

    def forgetful(who: str, name: str, work: Callable[[], Any]) -> Any:
        world.client.script_flush()
        return operate(who, name, work)

    world.operate = forgetful  # type: ignore[method-assign]
    try:
        world.carry(run.id)
    finally:
        del world.operate  # type: ignore[attr-defined]
    assert run.refresh().is_completed
    assert set(EFFECTS.values()) == {1}


def test_a_round_of_the_keeper_is_whole_though_the_scripts_are_forgotten(world: World) -> None:
    Clerk.enqueue("text")
    world.client.delete("lg.turns")
    world.pass_time("ready")
    world.client.script_flush()
    world.workers[0].runtime.keeper.round()
    assert world.client.llen("lg.turns") == 1


def test_a_record_of_another_version_is_refused_and_unchanged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    run = Clerk.enqueue("text")
    key = world.caller.runtime.journal.place(run.id)[0]
    world.client.hset(key, "v", "999")
    before = world.client.hgetall(key)
    journal = world.workers[0].runtime.journal
    with pytest.raises(SchemaVersionError, match="999"):
        journal.claim(run.id, "0-t0")
    with caplog.at_level(logging.WARNING):
        assert world.perform(world.pop()) == 0
    assert len([one for one in caplog.records if run.id in one.getMessage()]) == 1
    assert world.client.hgetall(key) == before
    assert not world.client.keys("lg:*:held:*")


@pytest.mark.parametrize(
    ("run_id", "task_id"),
    [
        ("00-1", "0-t1"), ("00-1", "0-c0.0"), ("00-1", ""), ("00-1", "0-t0|x"), ("00-1", "1-t0"),
        ("00-1", "\0"), ("00-1", "é" * 1000), ("00-2", "0-t0"), ("", "0-t0"), ("00-1|0-t0", "x"),
    ],
)  # fmt: skip
def test_forged_names_do_nothing(client: redis.Redis, run_id: str, task_id: str) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    before = everything(client)
    assert journal.claim(run_id, task_id) is None
    assert everything(client) == before


def test_names_of_other_keys_are_refused(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    before = everything(client)
    for run_id in ("00-1:e", "00-1:m:0"):
        with pytest.raises(JournalError):
            journal.claim(run_id, "0-t0")
    assert everything(client) == before


def test_a_redis_that_evicts_is_refused(client: redis.Redis) -> None:
    check_policy(client)
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(UnsafeRedisError, match="noeviction"):
            check_policy(client)
    finally:
        client.config_set("maxmemory-policy", "noeviction")


def test_a_journal_of_another_shape_is_refused(client: redis.Redis) -> None:
    check_schema(client, 4)
    check_schema(client, 4)
    with pytest.raises(SchemaVersionError, match="PARTITIONS=4"):
        check_schema(client, 5)
    client.set("lg:schema", '{"version": 99, "partitions": 4}')
    with pytest.raises(SchemaVersionError, match="99"):
        check_schema(client, 4)
    client.set("lg:schema", "something else")
    with pytest.raises(SchemaVersionError, match="something else"):
        check_schema(client, 4)


def test_a_repeated_create_after_an_outage_is_one_run(client: redis.Redis) -> None:
    journal = journal_of(client)
    plan = plan_of(journal, "00-1")
    with out_of_memory(client), pytest.raises(JournalUnavailableError):
        journal.create("00-1", plan)
    assert fields_of(journal, "00-1") == {}
    journal.create("00-1", plan)
    assert tasks_of(journal, "00-1") == {"0-t0": "ready"}
