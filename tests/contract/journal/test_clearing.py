"""Runs with many participants: no script does much at once, and nothing waits for what is left."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import redis

from littleghost.engine import commands as c
from littleghost.journal.remains import read_remains
from littleghost.journal.store import RedisJournal
from tests.support.checks import check_documented, check_journal, check_nothing_left
from tests.support.direct import (
    PARTITIONS,
    QUEUE,
    fields_of,
    journal_of,
    keeper_of,
    record,
    take,
    tasks_of,
)

pytestmark = pytest.mark.redis
RUN, KEY = "00-1", "lg:{00}:r:00-1"
COUNT, STARTED = 1_500, 250
# A piece looks at a few hundred fields, with a few commands for each.
MOST = 6_000
End = Callable[[RedisJournal], None]


def opened(client: redis.Redis, count: int = COUNT, *, fail_fast: bool = False) -> RedisJournal:
    """Begin a run whose coordinator has started so many agents."""
    journal = journal_of(client)
    plan = journal.plan_create()
    plan.fields.update(h=0, nonce="n", c=[])
    plan.fields["i"] = [plan.payload(json.dumps({"role": "user", "content": []}))]
    plan.fields["f"] = [[name, plan.payload("{}")] for name in ("asm", "inv", "fp", "ln")]
    root = c.ParticipantSpec(id="0", assembly="m:W", kind="workflow", label="w", state={})
    advance = c.TaskSpec(id="0-a", kind="advance", participant="0", queue=QUEUE)
    plan.start([root], [advance], [])
    journal.create(RUN, plan)
    names = tuple(f"0.{number}" for number in range(count))
    for first in range(0, count, STARTED):
        piece = names[first : first + STARTED]
        join = c.Join(
            id="0-j0", participant="0", members=names, width=count, then="0-a", at_once=True,
            begun=first, starting=len(piece), fail_fast=fail_fast,
        )  # fmt: skip
        specs = [
            c.ParticipantSpec(
                id=name, assembly="m:A", kind="agent", label="a", state={}, parent="0",
                join="0-j0", records=(record(name),),
            )
            for name in piece
        ]  # fmt: skip
        tasks = [
            c.TaskSpec(id=f"{name}-t0", kind="turn", participant=name, queue=QUEUE, gate="0-j0")
            for name in piece
        ]
        start = c.Start(participants=specs, tasks=tasks, joins=[join])
        journal.commit(take(journal, RUN, "0-a"), [start, c.Wake(0)])
    return journal


def complete(journal: RedisJournal) -> None:
    done = c.Complete({"participant": "0", "message": 0})
    journal.commit(take(journal, RUN, "0-a"), [done])


def fail(journal: RedisJournal) -> None:
    journal.commit(take(journal, RUN, "0-a"), [c.Fail({"code": "x"})])


def cancel(journal: RedisJournal) -> None:
    assert journal.stop_run(RUN, "cancel", {}) == "cancelled"


def leave(journal: RedisJournal) -> None:
    others = tuple(f"0.{number}" for number in range(COUNT))
    journal.commit(take(journal, RUN, "0-a"), [c.CancelParticipants(others)])


ENDS = pytest.mark.parametrize("end", [complete, fail, cancel])


def most_commands(client: redis.Redis, journal: RedisJournal, work: Callable[[], object]) -> int:
    """Do some work, and give how many commands the largest of its scripts had."""
    plain, most = journal.scripts.run, [0]

    def counted(name: str, key: str, *args: str | bytes | int | float) -> list[object]:
        client.config_resetstat()
        answer = plain(name, key, *args)
        stats = client.info("commandstats")
        most[0] = max(most[0], sum(row["calls"] for row in stats.values()))
        return answer

    journal.scripts.run = counted  # type: ignore[method-assign]
    try:
        work()
    finally:
        journal.scripts.run = plain  # type: ignore[method-assign]
    return most[0]


def is_clearing(client: redis.Redis) -> bool:
    return client.zscore("lg:{00}:clearing", RUN) is not None


def keep(journal: RedisJournal) -> None:
    """Let the keeper do what is left."""
    keeper = keeper_of(journal)
    for _ in range(20):
        keeper.round()
        if not is_clearing(journal.client):
            return
    raise AssertionError(f"still to be cleared: {journal.client.hgetall(KEY)}")


def nothing_stays(client: redis.Redis) -> None:
    # Messages of tasks that are gone; workers take them and do nothing.
    client.delete(QUEUE)
    check_nothing_left(client, PARTITIONS)


@pytest.mark.parametrize("end", [complete, fail, cancel, leave])
def test_no_script_does_much_at_once(client: redis.Redis, end: End) -> None:
    journal = opened(client)
    assert most_commands(client, journal, lambda: end(journal)) < MOST
    assert is_clearing(client), "a few pieces are left"
    assert most_commands(client, journal, lambda: keep(journal)) < MOST
    assert most_commands(client, journal, lambda: keeper_of(journal).audit(RUN, mend=True)) < MOST


@ENDS
def test_an_ended_run_is_over_at_once_and_all_of_it_goes(client: redis.Redis, end: End) -> None:
    journal = opened(client)
    end(journal)
    check_documented(client)
    assert fields_of(journal, RUN)["status"] in ("completed", "failed", "cancelled")
    assert client.ttl(KEY) == -1, "the record says what is still to be done"
    keep(journal)
    assert tasks_of(journal, RUN) == {}
    check_journal(client, PARTITIONS)
    assert 0 < client.ttl(f"{KEY}:m:0.{COUNT - 1}") <= client.ttl(KEY)
    nothing_stays(client)


@ENDS
def test_nothing_of_an_ended_run_is_begun(client: redis.Redis, end: End) -> None:
    journal = opened(client)
    held = take(journal, RUN, "0.0-t0")
    ready = [name.partition("|")[2] for name in client.zrange("lg:{00}:ready", 0, -1)]
    end(journal) if end is not cancel else journal.stop_run(RUN, "cancel", {})
    left = [name for name in ready if name in tasks_of(journal, RUN) and name != held.task_id]
    assert left, "some tasks are still to be cleared"
    for name in left:
        assert journal.claim(RUN, name) is None
    events = client.xlen(f"{KEY}:e")
    assert not journal.commit(held, [c.Complete({"participant": "0.0", "message": 1})]).recorded
    keep(journal)
    check_journal(client, PARTITIONS)
    assert client.xlen(f"{KEY}:e") == events + (end is cancel), "only a stop ends with the last one"


def test_a_timer_of_an_ended_run_starts_nothing(client: redis.Redis) -> None:
    journal = opened(client)
    late = c.TryAgain(1, 1)
    ready = [name.partition("|")[2] for name in client.zrange("lg:{00}:ready", 0, -1)]
    waiting = [name for name in ready if name != "0-a"]
    for name in waiting[1:]:
        journal.commit(take(journal, RUN, name), [late])
    fail(journal)
    client.zadd("lg:{00}:timers", dict.fromkeys(client.zrange("lg:{00}:timers", 0, -1), 1))
    row = journal.scripts.run("sweep", "lg:{00}:ready", "lg:{00}:", 500)
    assert row[1] == [], "nothing became ready"
    remains = read_remains(journal, RUN)
    assert remains is not None
    timed = {name for name, task in remains.headers("ot:").items() if "tm" in task}
    assert timed == set(waiting[1:]), "a retry still knows that they waited for a time"


@ENDS
def test_a_piece_that_is_done_twice_changes_nothing(client: redis.Redis, end: End) -> None:
    journal = opened(client)
    end(journal)
    while not journal.clear(RUN, pieces=1):
        # As after a failover that lost how far it had come.
        if client.hexists(KEY, "cur") and not client.hexists(KEY, "again"):
            client.hset(KEY, "again", 1)
            client.hdel(KEY, "cur", "clr")
    client.hdel(KEY, "again")
    check_journal(client, PARTITIONS)
    assert journal.clear(RUN, pieces=1)
    nothing_stays(client)


def test_a_retry_finds_all_that_was_open_though_nobody_cleared_up(client: redis.Redis) -> None:
    journal = opened(client)
    before = tasks_of(journal, RUN)
    fail(journal)
    remains = read_remains(journal, RUN)
    assert remains is not None
    assert remains.headers("ot:").keys() == before.keys()
    assert len(remains.headers("oj:")["0-j0"]["o"]) == COUNT
    assert not is_clearing(client)


def test_participants_that_are_cancelled_do_nothing_any_more(client: redis.Redis) -> None:
    journal = opened(client)
    held = take(journal, RUN, "0.0-t0")
    below = c.ParticipantSpec(
        id="0.1.5", assembly="m:A", kind="agent", label="a", state={}, parent="0.1"
    )
    deep = c.TaskSpec(id="0.1.5-t0", kind="turn", participant="0.1.5", queue=QUEUE)
    going_on = c.TaskSpec(id="0.1-t1", kind="turn", participant="0.1", queue=QUEUE)
    journal.commit(
        take(journal, RUN, "0.1-t0"), [c.Start(participants=[below], tasks=[deep, going_on])]
    )
    leave(journal)
    assert is_clearing(client)
    assert not journal.commit(held, [c.Complete({"participant": "0.0", "message": 1})]).recorded
    for name in tasks_of(journal, RUN):
        assert name == "0-a" or journal.claim(RUN, name) is None
    keep(journal)
    assert tasks_of(journal, RUN) == {"0-a": "wait"}
    ends = {name[2:]: value for name, value in fields_of(journal, RUN).items() if name[:2] == "z:"}
    assert len(ends) == COUNT + 1
    assert all(value.endswith(",cancelled") for value in ends.values())
    assert not client.exists(f"{KEY}:gone")
    assert keeper_of(journal).audit(RUN, mend=False) == "abandoned", "nothing is left to do"


def test_a_run_may_end_while_cancelled_participants_are_cleared(client: redis.Redis) -> None:
    journal = opened(client)
    others = tuple(f"0.{number}" for number in range(1, COUNT))
    journal.commit(take(journal, RUN, "0-a"), [c.CancelParticipants(others), c.Wake(0)])
    fail(journal)
    keep(journal)
    check_journal(client, PARTITIONS)
    ends = [name for name in fields_of(journal, RUN) if name.startswith("z:")]
    assert len(ends) == COUNT - 1
    assert client.hexists(f"{KEY}:t", "x:0.0"), "it had not ended"
    nothing_stays(client)


def test_a_small_run_leaves_nothing_to_the_keeper(client: redis.Redis) -> None:
    journal = opened(client, 60)
    fail(journal)
    assert not is_clearing(client)
    check_journal(client, PARTITIONS)
