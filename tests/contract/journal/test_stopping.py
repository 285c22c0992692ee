"""Cancel, deadline and failure: nothing starts, what runs is told, what was said is kept."""

import json
from collections.abc import Callable

import pytest
import redis

from littleghost.engine import commands as c
from littleghost.engine.ports import Lease
from littleghost.journal import keys
from littleghost.journal.live import LiveEvents
from littleghost.journal.record import Records
from littleghost.journal.store import RedisJournal
from littleghost.providers.base import CallControl
from tests.support.cast import Clerk
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
    result,
    take,
    tasks_of,
    texts_of,
)
from tests.support.fleet import KilledError
from tests.support.world import World

pytestmark = pytest.mark.redis
QUEUES = ("lg.turns",)


def say(journal: RedisJournal, lease: Lease, *texts: str) -> None:
    events = ['{"type":"model_start","p":"0"}']
    events += [json.dumps({"type": "text_delta", "p": "0", "d": {"text": text}}) for text in texts]
    assert journal.emit(lease, events)


def text_of(journal: RedisJournal, run_id: str) -> tuple[str, str]:
    record = Records(journal).find(run_id)
    assert record is not None
    return record.status, record.text


@pytest.mark.parametrize("why", ["cancel", "deadline"])
def test_nothing_that_waits_starts(client: redis.Redis, why: str) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", deadline_ms=60_000)
    journal.commit(take(journal, "00-1"), [*answer("a"), batch(0, 5, width=3)])
    lease = take(journal, "00-1", "0-c0.0")

    assert journal.stop_run("00-1", why, {}) == "stopping"

    assert tasks_of(journal, "00-1") == {"0-c0.0": "leased"}
    assert journal.claim("00-1", "0-c0.1") is None
    assert not journal.commit(lease, result("r")).recorded
    assert (
        events_of(journal, "00-1")[-1] == {"cancel": "run_cancel", "deadline": "run_partial"}[why]
    )
    check_journal(client, PARTITIONS)


def test_the_first_reason_stays(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    journal.stop_run("00-1", "cancel", {"code": "first"})
    journal.stop_run("00-1", "deadline", {"code": "second"})
    journal.commit(lease, [])
    record = Records(journal).find("00-1")
    assert (record.status, record.error) == ("cancelled", {"code": "first"})
    assert journal.stop_run("00-1", "cancel", {"code": "third"}) == "cancelled"


def test_running_tasks_are_told(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    take(journal, "00-1")
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(keys.control("a"))
    listener.get_message(timeout=5)
    journal.stop_run("00-1", "cancel", {})
    note = {"run": "00-1", "task": "0-t0", "attempt": 1, "why": "cancel"}
    assert json.loads(listener.get_message(timeout=5)["data"]) == note
    assert client.hgetall("lg:{00}:control:a") == {"00-1|0-t0|1": "cancel"}
    assert 0 < client.ttl("lg:{00}:control:a") <= 60
    listener.close()


def test_what_still_runs_is_told_when_its_run_fails(client: redis.Redis) -> None:
    journal, other = journal_of(client), journal_of(client, "b")
    begin(journal, "00-1")
    journal.commit(take(journal, "00-1"), [*answer("a"), batch(0, 2)])
    sibling = take(other, "00-1", "0-c0.1")

    journal.commit(take(journal, "00-1", "0-c0.0"), [c.Fail({"code": "x"})])

    assert client.hgetall("lg:{00}:control:b") == {"00-1|0-c0.1|1": "cancel"}
    assert not other.commit(sibling, result("late")).recorded
    check_journal(client, PARTITIONS)


@pytest.mark.parametrize("exclusive", [(), (0, 1)], ids=["in line", "exclusive"])
def test_a_failing_call_starts_no_other_one_in_place(
    client: redis.Redis, exclusive: tuple[int, ...]
) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    width = 2 if exclusive else 1
    calls = batch(0, 2, width=width, exclusive=exclusive)
    journal.commit(take(journal, "00-1"), [*answer("a"), calls])

    done = journal.commit(take(journal, "00-1", "0-c0.0"), [c.Fail({"code": "x"})], serves=QUEUES)

    assert done.lease is None
    assert tasks_of(journal, "00-1") == {}
    check_journal(client, PARTITIONS)


@pytest.mark.parametrize("why", ["cancel", "deadline"])
def test_live_text_of_a_stopped_run_cuts_its_turn_for_the_right_reason(
    client: redis.Redis, why: str
) -> None:
    """Whether the message or an append comes first, the turn must let go of its task."""
    journal = journal_of(client)
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    control = CallControl()
    live = LiveEvents(journal, lambda: pytest.fail("the attempt is not stale"))
    live.touch = lambda writer, at_once: live._dirty.add(writer)
    writer = live.open(lease, control)
    journal.scripts.load()
    journal.stop_run("00-1", why, {})

    writer.add("text_delta", {"text": "late"})
    live.flush()

    assert control.is_cut
    expected = {"cancel": "cancelled", "deadline": "deadline_exceeded"}[why]
    assert control._error.code == expected


def test_a_late_writer_is_cut_as_stale(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    journal.release("00-1", "0-t0", "a", lost=True)
    assert not journal.emit(lease, ["{}"])
    assert client.xlen("lg:{00}:r:00-1:d") == 1


@pytest.mark.parametrize(
    ("before", "said", "expected"),
    [
        ((), "said by the cut turn", "said by the cut turn"),
        (("live ", "text"), None, "live text"),
        ((), None, "first answer"),
        ((" ", "\n"), None, "first answer"),
        (("live ", "text"), "live text and more", "live text and more"),
    ],
)
def test_the_partial_text_is_the_newest_that_was_said(
    client: redis.Redis, before: tuple[str, ...], said: str | None, expected: str
) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", deadline_ms=60_000)
    following = c.Start(
        tasks=[c.TaskSpec(id="0-t1", kind="turn", participant="0", queue="lg.turns")]
    )
    journal.commit(take(journal, "00-1"), [*answer("first answer"), following])
    lease = take(journal, "00-1", "0-t1")
    say(journal, lease, *before)
    journal.stop_run("00-1", "deadline", {"code": "deadline_exceeded"})

    journal.commit(lease, [c.SetText(said)] if said else [])

    assert text_of(journal, "00-1") == ("partial", expected)
    assert texts_of(journal, "00-1") == ["00-1", "first answer"]


@pytest.mark.parametrize("pieces", [1, 2, 3, 500])
def test_the_partial_text_is_kept_when_its_worker_is_dead(client: redis.Redis, pieces: int) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", deadline_ms=60_000)
    lease = take(journal, "00-1")
    texts = [f"piece {number} 👻 " for number in range(pieces)]
    say(journal, lease, *texts)
    make_due(journal, "deadlines")
    keeper_of(journal).round()
    assert text_of(journal, "00-1")[0] == "partial"
    assert text_of(journal, "00-1")[1] == "".join(texts)


def test_withdrawn_text_is_no_partial_text(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    say(journal, lease, "withdrawn")
    again = [c.Emit("model_retry", {"attempt": 1}, live=True), c.TryAgain(5, 1)]
    journal.commit(lease, again)
    journal.stop_run("00-1", "deadline", {})
    assert text_of(journal, "00-1") == ("partial", "")


@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
def test_other_ends_have_no_text(client: redis.Redis, outcome: str) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    lease = take(journal, "00-1")
    say(journal, lease, "something")
    if outcome == "failed":
        journal.commit(lease, [*answer("something"), c.Fail({"code": "x"})])
    else:
        journal.stop_run("00-1", "cancel", {})
        journal.commit(lease, [c.SetText("something")])
    assert text_of(journal, "00-1") == (outcome, "")


def test_a_run_that_does_not_let_go_ends_after_the_grace(client: redis.Redis) -> None:
    journal, other = journal_of(client), journal_of(client, "b")
    client.zadd(keys.WORKERS, {"a": 2**52, "b": 2**52})
    begin(journal, "00-1")
    lease = take(other, "00-1")
    journal.stop_run("00-1", "cancel", {})
    keeper = keeper_of(journal)
    keeper.round()
    assert text_of(journal, "00-1")[0] == "stopping"

    make_due(journal, "stops")
    keeper.round()

    assert text_of(journal, "00-1")[0] == "cancelled"
    assert not other.commit(lease, finish()).recorded
    assert events_of(journal, "00-1")[-2:] == ["invocation_error", "run_cancel"]
    check_journal(client, PARTITIONS)


def test_force_alone_stops_nothing(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    assert journal.stop_run("00-1", "force", {}) == "queued"
    assert tasks_of(journal, "00-1") == {"0-t0": "ready"}


def test_what_a_call_did_while_its_run_was_stopped_is_kept(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", session="s")
    journal.commit(take(journal, "00-1"), [*answer("a"), batch(0, 1)])
    lease = take(journal, "00-1", "0-c0.0")
    journal.stop_run("00-1", "cancel", {})
    paid = c.ChangeState([{"op": "set", "key": "c/paid", "value": True}])

    journal.commit(lease, [paid, *result("paid")])

    assert texts_of(journal, "00-1") == ["00-1", "a", "paid"]
    assert client.hgetall(keys.session(0, "s", None) + ":s") == {"c/paid": "true"}


def test_indexes_of_a_run_that_has_vanished_are_cleared(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", deadline_ms=60_000)
    begin(journal, "00-2", deadline_ms=60_000)
    client.delete(*client.scan_iter("lg:{00}:r:00-*"))
    for name in ("ready", "deadlines", "live"):
        make_due(journal, name)
    keeper_of(journal).round()
    for name in ("ready", "deadlines", "live", "stops"):
        assert client.zcard(f"lg:{{00}}:{name}") == 0


def test_a_killed_worker_of_a_stopped_run_does_not_hold_it_up(
    worlds: Callable[..., World],
) -> None:
    world = worlds(in_place_max=1)
    run = Clerk.enqueue("slow")

    def die() -> bool:
        if "0-t1" not in world.record(run.id).tasks:
            return False
        run.cancel()
        world._active.kill(world.client)
        raise KilledError

    world.hooks["delta"] = die
    world.carry(run.id)
    assert run.refresh().is_cancelled
    check_journal(world.client, world.partitions)
