"""Members of a join that are started piece by piece keep to its width, and wake it once."""

from __future__ import annotations

import json

import pytest
import redis

from littleghost.engine import commands as c
from littleghost.engine.opening import advance_id
from littleghost.journal.store import RedisJournal
from tests.support.direct import QUEUE, begin, journal_of, take

pytestmark = pytest.mark.redis
MEMBERS = ("0.0", "0.1", "0.2", "0.3", "0.4")
MANY = tuple(f"0.{number}" for number in range(100))


def piece(
    first: int,
    last: int,
    width: int,
    *,
    fail_fast: bool = False,
    members: tuple[str, ...] = MEMBERS,
) -> c.Start:
    return c.Start(
        participants=[
            c.ParticipantSpec(
                id=pid, assembly="m:A", kind="agent", label="a", state={}, parent="0", join="0-j0"
            )
            for pid in members[first:last]
        ],
        tasks=[
            c.TaskSpec(id=f"{pid}-t0", kind="turn", participant=pid, queue=QUEUE, gate="0-j0")
            for pid in members[first:last]
        ],
        joins=[
            c.Join(
                id="0-j0",
                participant="0",
                members=members,
                width=width,
                then=advance_id("0"),
                fail_fast=fail_fast,
                begun=first,
                at_once=True,
                starting=last - first,
            )
        ],
    )


def opened(client: redis.Redis, start: c.Start, wake: bool = True) -> RedisJournal:
    """Begin a run whose coordinator starts a piece."""
    journal = journal_of(client)
    begin(journal, "00-1")
    advance = c.TaskSpec(id="0-a", kind="advance", participant="0", queue=QUEUE)
    journal.commit(take(journal, "00-1"), [c.Start(tasks=[advance])])
    more: list[c.Command] = [c.Wake(0.0)] if wake else []
    journal.commit(take(journal, "00-1", "0-a"), [start, *more])
    return journal


def ready(client: redis.Redis) -> list[str]:
    names = [str(name).partition("|")[2] for name in client.zrange("lg:{00}:ready", 0, -1)]
    return sorted(names)


def end(journal: RedisJournal, pid: str, *, well: bool = True) -> None:
    lease = take(journal, "00-1", f"{pid}-t0")
    output = {"output": pid}
    journal.commit(lease, [c.Complete(output) if well else c.Fail({"code": "x"})])


def test_a_wake_at_once_needs_no_timer(client: redis.Redis) -> None:
    opened(client, piece(0, 2, 9))
    assert ready(client) == ["0-a", "0.0-t0", "0.1-t0"]
    assert client.zcard("lg:{00}:timers") == 0


def test_no_more_are_ready_than_the_width_however_they_are_started(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 2, 3))
    assert ready(client) == ["0-a", "0.0-t0", "0.1-t0"]
    end(journal, "0.0")
    journal.commit(take(journal, "00-1", "0-a"), [piece(2, 5, 3)])
    assert ready(client) == ["0.1-t0", "0.2-t0", "0.3-t0"]
    end(journal, "0.2")
    assert ready(client) == ["0.1-t0", "0.3-t0", "0.4-t0"]


def turns(client: redis.Redis) -> int:
    """How many members are ready."""
    return sum(name != "0-a" for name in ready(client))


def test_of_many_some_are_ready_and_each_claim_lets_more_go(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 90, 100, members=MANY))
    assert turns(client) == 16
    lease = take(journal, "00-1", "0.0-t0")
    assert turns(client) == 15 + 2
    following = journal.commit(lease, [c.Complete({"output": "a"})], serves=[QUEUE]).lease
    assert following is not None, "the next one is done in place"
    assert following.task_id == "0.18-t0"
    assert turns(client) == 17

    advance = take(journal, "00-1", "0-a")
    journal.commit(advance, [piece(90, 100, 100, members=MANY)])
    assert turns(client) == 17 + 8, "the new ones are let go by claims of theirs"
    claimed = 0
    while client.exists("lg:{00}:r:00-1:q:0-j0"):
        name = next(name for name in ready(client) if name != "0-a")
        take(journal, "00-1", name)
        claimed += 1
    assert claimed == 37, "73 waited"


def test_claims_let_no_more_go_than_the_width(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 90, 17, members=MANY))
    take(journal, "00-1", "0.0-t0")
    assert turns(client) == 15 + 1
    take(journal, "00-1", "0.1-t0")
    assert turns(client) == 15
    end_of = take(journal, "00-1", "0.2-t0")
    journal.commit(end_of, [c.Complete({"output": "a"})])
    assert turns(client) == 15


def test_results_come_as_they_end_and_the_last_one_wakes(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 2, 9))
    end(journal, "0.1")
    lease = take(journal, "00-1", "0-a")
    assert [item["p"] for item in lease.records if isinstance(item, dict)] == ["0.1"]
    journal.commit(lease, [piece(2, 5, 9)])
    for pid in ("0.4", "0.0", "0.2"):
        end(journal, pid)
        assert "0-a" not in ready(client)
    end(journal, "0.3")
    assert ready(client) == ["0-a"]
    lease = take(journal, "00-1", "0-a")
    given = [item["p"] for item in lease.records if isinstance(item, dict)]
    assert given == ["0.1", "0.4", "0.0", "0.2", "0.3"]
    assert client.keys("lg:{00}:r:00-1:j:*") == client.keys("lg:{00}:r:00-1:o:*") == []


def test_nothing_is_delivered_once_a_failure_has_ended_it(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 3, 9, fail_fast=True), wake=False)
    end(journal, "0.0")
    end(journal, "0.1", well=False)
    end(journal, "0.2")
    lease = take(journal, "00-1", "0-a")
    given = [item for item in lease.records if isinstance(item, dict)]
    assert [(item["p"], "x" in item) for item in given] == [("0.0", False), ("0.1", True)]
    kept = client.hget("lg:{00}:r:00-1:r", "0.2")
    assert json.loads(str(kept))["r"] == {"output": "0.2"}, "results still tell of it"


def test_what_is_started_after_a_failure_is_ready_to_be_stopped(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 3, 1, fail_fast=True))
    lease = take(journal, "00-1", "0-a")
    end(journal, "0.0", well=False)
    journal.commit(lease, [piece(3, 5, 1, fail_fast=True)])
    lease = take(journal, "00-1", "0-a")
    journal.commit(lease, [c.CancelParticipants(MEMBERS[1:])])
    assert ready(client) == []
    assert client.keys("lg:{00}:r:00-1:q:*") == []


def whole_reads(client: redis.Redis) -> int:
    stats = client.info("commandstats")
    return sum(
        int(stats.get(f"cmdstat_{name}", {}).get("calls", 0)) for name in ("hgetall", "hscan")
    )


def child(pid: str, parent: str) -> c.Start:
    spec = c.ParticipantSpec(
        id=pid, assembly="m:A", kind="agent", label="a", state={}, parent=parent
    )
    task = c.TaskSpec(id=f"{pid}-t0", kind="turn", participant=pid, queue=QUEUE)
    return c.Start(participants=[spec], tasks=[task])


def test_a_failing_turn_does_not_read_the_whole_run(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 5, 9))
    lease = take(journal, "00-1", "0.1-t0")
    before = whole_reads(client)
    journal.commit(lease, [c.Fail({"code": "x"})])
    assert whole_reads(client) == before
    assert str(client.hget("lg:{00}:r:00-1:p", "z:0.1")).endswith(",failed")


def test_a_failing_turn_stops_what_was_started_below_it(client: redis.Redis) -> None:
    journal = opened(client, piece(0, 2, 9))
    turns = [c.TaskSpec(id="0.0-t1", kind="turn", participant="0.0", queue=QUEUE)]
    journal.commit(take(journal, "00-1", "0.0-t0"), [child("0.0.7", "0.0"), c.Start(tasks=turns)])
    assert "0.0.7-t0" in ready(client)
    journal.commit(take(journal, "00-1", "0.0-t1"), [c.Fail({"code": "x"})])
    assert ready(client) == ["0-a", "0.1-t0"]
