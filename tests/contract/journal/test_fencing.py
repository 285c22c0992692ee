"""Who may record: one attempt, once. What comes late, twice or from elsewhere changes nothing."""

from __future__ import annotations

import json

import pytest
import redis

from littleghost.engine import commands as c
from littleghost.journal.record import Records
from tests.support.checks import check_journal, contents
from tests.support.direct import (
    PARTITIONS,
    QUEUE,
    answer,
    batch,
    begin,
    finish,
    journal_of,
    keeper_of,
    result,
    take,
    tasks_of,
    texts_of,
)

pytestmark = pytest.mark.redis


@pytest.mark.parametrize("how", ["given back", "lost", "tried again"])
def test_an_older_attempt_of_the_same_worker_is_stale(client: redis.Redis, how: str) -> None:
    journal, keeper = journal_of(client), keeper_of(journal_of(client))
    begin(journal, "00-1")
    old = take(journal, "00-1")
    if how == "given back":
        journal.give_back(old)
    elif how == "lost":
        keeper._reclaim(0, "a")
    else:
        journal.commit(old, [c.TryAgain(0, 1)])
        client.zadd("lg:{00}:timers", {"00-1|0-t0": 1})
        keeper.round()
        old = take(journal, "00-1")
        journal.give_back(old)
    new = take(journal, "00-1")
    assert new.attempt == old.attempt + 1
    before = contents(client, sorted(client.scan_iter()))

    assert not journal.commit(old, finish("old")).recorded
    assert not journal.emit(old, ["{}"])
    assert not journal.release("00-1", "0-t0", "a", attempt=old.attempt)

    assert contents(client, sorted(client.scan_iter())) == before
    assert journal.commit(new, finish("new")).recorded
    assert texts_of(journal, "00-1") == ["00-1", "new"]


def test_another_worker_cannot_record_nor_give_back(client: redis.Redis) -> None:
    journal, other = journal_of(client), journal_of(client, "b")
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    assert not other.commit(lease, finish()).recorded
    other.give_back(lease)
    assert not other.emit(lease, ["{}"])
    assert tasks_of(journal, "00-1") == {"0-t0": "leased"}


def test_the_same_claim_sent_again_gets_the_same_lease(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    key, prefix = journal.place("00-1")
    call = ("claim", key, prefix, "00-1", "0-t0", "a", "1", "", "", "", 0, "name")

    first, again = journal.scripts.run(*call), journal.scripts.run(*call)

    assert first[0] == again[0] == "ok"
    headers = [json.loads(answer[2].pop(1)) for answer in (first, again)]
    assert headers[0] == headers[1]
    assert first[2] == again[2]
    assert journal.scripts.run(*call[:-1], "other name") == ["held"]
    check_journal(client, PARTITIONS)


def test_a_commit_sent_again_after_its_run_has_ended_gets_its_answer(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    assert journal.commit(lease, finish()).recorded
    before = contents(client, sorted(client.scan_iter()))
    assert journal_of(client).commit(lease, finish()).recorded
    assert contents(client, sorted(client.scan_iter())) == before


def test_a_commit_sent_again_when_its_next_task_moved_on_starts_nothing(
    client: redis.Redis,
) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    plan = [*answer("a"), batch(0, 1)]
    first = journal.commit(lease, plan, serves=[QUEUE])
    assert first.lease is not None
    assert journal_of(client).commit(lease, plan, serves=[QUEUE]).lease is not None
    journal.commit(first.lease, result("r"))

    again = journal_of(client).commit(lease, plan, serves=[QUEUE])

    assert again.recorded
    assert again.lease is None


@pytest.mark.parametrize("count", [1, 199, 200, 201, 450])
def test_a_dead_worker_gives_back_all_it_held(client: redis.Redis, count: int) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    journal.commit(take(journal, "00-1"), [*answer("a"), batch(0, count, width=count)])
    for number in range(count):
        take(journal, "00-1", f"0-c0.{number}")

    keeper_of(journal).round()

    record = Records(journal).find("00-1")
    lost = [task for task in record.tasks.values() if task.get("l") == 1]
    assert len(lost) == count
    assert not client.exists("lg:{00}:held:a", "lg:{00}:holders")
    check_journal(client, PARTITIONS)


def test_an_empty_join_fires_at_once(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    journal.commit(take(journal, "00-1"), [*answer("a"), batch(0, 0)])
    assert tasks_of(journal, "00-1") == {"0-t1": "ready"}
    check_journal(client, PARTITIONS)


def test_a_repeated_commit_does_not_hand_out_a_later_attempt(client: redis.Redis) -> None:
    """The first answer held a lease that was lost since; the second one must not hold another's."""
    journal = journal_of(client)
    begin(journal, "00-1")
    first = take(journal, "00-1")
    plan = [*answer("a"), batch(0, 1)]
    following = journal.commit(first, plan, serves=[QUEUE]).lease
    assert following is not None
    journal.give_back(following)
    assert take(journal, "00-1", following.task_id).attempt == following.attempt + 1

    again = journal.commit(first, plan, serves=[QUEUE])

    assert again.recorded
    assert again.lease is None
