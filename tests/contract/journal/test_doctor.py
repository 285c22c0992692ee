"""The audit: proves that a run can still end, and mends what a lost write left behind."""

import pytest
import redis

from littleghost.engine.commands import TryAgain
from littleghost.journal.record import Records
from tests.support.checks import check_journal
from tests.support.direct import (
    PARTITIONS,
    answer,
    batch,
    begin,
    events_of,
    finish,
    journal_of,
    keeper_of,
    make_due,
    take,
)

pytestmark = pytest.mark.redis


def test_it_says_what_a_run_waits_for(client: redis.Redis) -> None:
    journal = journal_of(client)
    keeper = keeper_of(journal)
    begin(journal, "00-1", session="s")
    begin(journal, "00-2", session="s")
    assert keeper.audit("00-1", mend=False) == "ready"
    assert keeper.audit("00-2", mend=False) == "session"
    lease = take(journal, "00-1")
    assert keeper.audit("00-1", mend=False) == "leased"
    journal.commit(lease, [TryAgain(5, 1)])
    assert keeper.audit("00-1", mend=False) == "timer"
    make_due(journal, "timers")
    keeper.round()
    journal.commit(take(journal, "00-1"), finish())
    assert keeper.audit("00-1", mend=False) == "over"
    assert keeper.audit("00-2", mend=False) == "ready"
    assert keeper.audit("00-3", mend=False) == "over"


def test_looking_changes_nothing(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    client.zrem("lg:{00}:ready", "00-1|0-t0")
    before = {name: client.dump(name) for name in client.scan_iter()}
    assert keeper_of(journal).audit("00-1", mend=False) == "abandoned"
    assert {name: client.dump(name) for name in client.scan_iter()} == before


def test_a_lost_ready_entry_is_mended(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    client.zrem("lg:{00}:ready", "00-1|0-t0")
    client.delete("lg.turns")
    keeper = keeper_of(journal)
    assert keeper.audit("00-1", mend=True) == "ready"
    check_journal(client, PARTITIONS)
    keeper.round()
    assert client.llen("lg.turns") == 1


def test_a_lost_held_entry_is_mended(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    take(journal, "00-1")
    client.delete("lg:{00}:held:a", "lg:{00}:holders")
    keeper = keeper_of(journal)
    assert keeper.audit("00-1", mend=True) == "leased"
    check_journal(client, PARTITIONS)
    keeper.round()
    assert Records(journal).find("00-1").tasks["0-t0"]["l"] == 1


def test_the_keeper_looks_at_live_runs_now_and_then(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    client.zrem("lg:{00}:ready", "00-1|0-t0")
    keeper = keeper_of(journal)
    keeper.round()
    assert client.zcard("lg:{00}:ready") == 0
    make_due(journal, "live")
    keeper.round()
    check_journal(client, PARTITIONS)


def test_a_run_that_nothing_could_move_is_failed_once(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", session="s")
    begin(journal, "00-2", session="s")
    journal.commit(take(journal, "00-1"), [*answer("a"), batch(0, 2)])
    for name in ("0-c0.0", "0-c0.1"):
        client.hdel("lg:{00}:r:00-1:t", f"t:{name}", f"d:{name}")
        client.zrem("lg:{00}:ready", f"00-1|{name}")
    keeper = keeper_of(journal)

    assert keeper.audit("00-1", mend=True) == "abandoned"
    assert keeper.audit("00-1", mend=True) == "over"

    record = Records(journal).find("00-1")
    assert record.status == "failed"
    assert record.error["code"] == "run"
    assert events_of(journal, "00-1")[-2:] == ["invocation_error", "run_error"]
    assert keeper.audit("00-2", mend=False) == "ready"
    check_journal(client, PARTITIONS)


def test_workers_that_died_long_ago_leave_the_register(client: redis.Redis) -> None:
    journal = journal_of(client)
    client.zadd("lg:workers", {"old": 1, "live": 2**52})
    keeper_of(journal).round()
    assert client.zrange("lg:workers", 0, -1) == ["live"]
