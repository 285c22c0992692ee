"""Sessions: one run at a time, in order, and a conversation that stays valid."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from littleghost.engine.commands import Fail
from littleghost.errors import RunError
from littleghost.failure import Failure
from littleghost.journal import keys
from littleghost.journal.record import Records
from littleghost.journal.store import RedisJournal
from littleghost.messages import Message, ToolResult
from littleghost.providers.history import NO_RESULT, answered_turns
from littleghost.run import Run
from tests.support import cast
from tests.support.cast import Clerk
from tests.support.checks import check_journal, check_nothing_left
from tests.support.direct import (
    PARTITIONS,
    QUEUE,
    answer,
    batch,
    begin,
    fields_of,
    finish,
    journal_of,
    keeper_of,
    result,
    take,
    tasks_of,
    texts_of,
)
from tests.support.world import World

pytestmark = pytest.mark.redis
ERROR = Failure.of(RunError("enough")).to_json()
ENDS = ["completed", "failed", "cancelled", "deadline", "lost"]


def end(journal: RedisJournal, run_id: str, how: str) -> None:
    """End the run that has the session."""
    lease = take(journal, run_id)
    if how == "completed":
        journal.commit(lease, finish())
    elif how == "failed":
        journal.commit(lease, [Fail({"code": "x"})])
    elif how == "lost":
        journal.stop_run(run_id, "cancel", ERROR)
        journal.stop_run(run_id, "force", {})
    else:
        journal.stop_run(run_id, "cancel" if how == "cancelled" else how, ERROR)
        journal.commit(lease, [])


@pytest.mark.parametrize("how", ENDS)
def test_the_holder_hands_over_however_it_ends(client: redis.Redis, how: str) -> None:
    journal = journal_of(client)
    names = [f"00-{number}" for number in range(4)]
    for name in names:
        begin(journal, name, session="s")
    for name in names:
        assert tasks_of(journal, name) == {"0-t0": "ready"}
        later = names[names.index(name) + 1 :]
        assert all(tasks_of(journal, other) == {"0-t0": "wait"} for other in later)
        assert all(journal.claim(other, "0-t0") is None for other in later)
        end(journal, name, how)
        check_journal(client, PARTITIONS)
    asked = [text for text in texts_of(journal, names[-1]) if text.startswith("00-")]
    assert asked == names


@pytest.mark.parametrize("why", ["cancel", "deadline"])
def test_a_run_may_be_stopped_while_it_waits(client: redis.Redis, why: str) -> None:
    journal = journal_of(client)
    for name in ("00-1", "00-2", "00-3"):
        begin(journal, name, session="s")

    status = journal.stop_run("00-2", why, ERROR)

    assert status == {"cancel": "cancelled", "deadline": "partial"}[why]
    end(journal, "00-1", "completed")
    assert tasks_of(journal, "00-3") == {"0-t0": "ready"}
    assert "00-2" not in texts_of(journal, "00-3")
    check_journal(client, PARTITIONS)


def test_the_deadline_of_a_waiting_run_is_kept(world: World) -> None:
    first = Clerk.enqueue("text", session_id="s")
    second = Clerk.enqueue("text", session_id="s", deadline_at=timedelta(hours=1))
    world.expire_deadline(second.id)

    world.keep()

    assert second.refresh().outcome == "partial"
    assert (second.response, second.error.code) == ("", "deadline_exceeded")
    world.carry(first.id)
    assert first.refresh().is_completed


def test_a_live_session_does_not_expire(client: redis.Redis) -> None:
    journal = journal_of(client, session_s=100)
    begin(journal, "00-1", session="s")
    begin(journal, "00-2", session="s")
    end(journal, "00-1", "completed")
    session = keys.session(0, "s", None)

    assert client.ttl(session) == client.ttl(session + ":m") == -1
    end(journal, "00-2", "completed")
    assert 0 < client.ttl(session + ":m") <= 100
    begin(journal, "00-3", session="s")
    assert client.ttl(session + ":m") == -1
    end(journal, "00-3", "completed")
    client.delete(QUEUE)
    check_nothing_left(client, PARTITIONS)


def test_sessions_of_two_actors_are_two(client: redis.Redis) -> None:
    del client
    names = {keys.session(0, "s", actor) for actor in (None, "", "a", "s", "\0s", "a\0")}
    assert len(names) == 6


def test_a_session_goes_on_when_its_holder_has_vanished(client: redis.Redis) -> None:
    journal = journal_of(client)
    for name in ("00-1", "00-2", "00-3"):
        begin(journal, name, session="s")
    client.delete(*client.scan_iter("lg:{00}:r:00-1*"))

    assert keeper_of(journal).audit("00-2", mend=True) == "session"
    assert tasks_of(journal, "00-2") == {"0-t0": "ready"}
    assert tasks_of(journal, "00-3") == {"0-t0": "wait"}


def test_what_a_cancelled_run_did_stays_in_the_conversation(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", session="s")
    journal.commit(take(journal, "00-1"), [*answer("calls"), batch(0, 3)])
    done, running = take(journal, "00-1", "0-c0.1"), take(journal, "00-1", "0-c0.2")
    journal.commit(done, result("one"))
    journal.stop_run("00-1", "cancel", ERROR)
    assert not journal.commit(running, result("two")).recorded

    begin(journal, "00-2", session="s")

    assert texts_of(journal, "00-2") == ["00-1", "calls", "one", "two", "00-2"]
    assert len(take(journal, "00-2").records) == 5


def test_the_next_request_after_a_cancelled_run_is_valid(world: World) -> None:
    case = json.loads(CASE.read_text("utf-8"))["expected"]["cancelled"]
    assert "t1's result is not lost" in case
    first = Clerk.enqueue("parallel", session_id="s")
    world.carry(first.id, until=lambda: len(tasks_called(world)) == 1)
    first.cancel()
    world.carry(first.id)
    assert first.refresh().is_cancelled

    second = Clerk.enqueue("text", session_id="s")
    world.carry(second.id)

    messages = list(second.refresh().result.messages)
    turns = answered_turns(messages)
    calls = [call for turn in turns for call in turn.calls]
    assert [call.content for call in calls] == ["done charge 1", NO_RESULT]
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]


def tasks_called(world: World) -> list[str]:
    del world
    return list(cast.EFFECTS)


CASE = Path(__file__).parents[2] / "cases" / "dangling-tool-calls-in-session.json"


def test_a_run_sees_its_own_part_of_the_conversation(world: World) -> None:
    first = Clerk.enqueue("parallel", session_id="s")
    second = Clerk.enqueue("text", session_id="s")
    third = Clerk.enqueue("text", session_id="s")
    world.carry(first.id, until=lambda: first.refresh().is_completed)
    second.cancel()
    world.carry(first.id, second.id, third.id)
    records = Records(world.caller.runtime.journal)

    lengths = [len(records.messages(run.refresh().record)) for run in (first, second, third)]

    assert lengths[0] == 5
    assert lengths[0] <= lengths[1] < lengths[2]


def test_history_begins_a_new_session_only(world: World) -> None:
    history = [{"role": "user", "content": "text"}, {"role": "assistant", "content": "before"}]
    first = Clerk.enqueue("text", session_id="s", history=history)
    world.carry(first.id)
    second = Clerk.enqueue("text", session_id="s", history=history)
    world.carry(second.id)

    assert len(first.refresh().result.messages) == 4
    assert len(second.refresh().result.messages) == 6


def test_sixteen_sessions_begin_at_the_same_moment(world: World) -> None:
    runs = [Clerk.enqueue("text", session_id=f"s{number}") for number in range(16)]
    world.carry(*(run.id for run in runs))
    assert all(run.refresh().is_completed for run in runs)


def test_a_second_run_never_gets_between_a_call_and_its_result(
    worlds: Callable[..., World],
) -> None:
    world = worlds(in_place_max=1)
    runs: list[Run] = [Clerk.enqueue("parallel", session_id="s") for _ in range(4)]
    world.carry(*(run.id for run in runs))
    messages = list(runs[-1].refresh().result.messages)
    roles = [message.role for message in messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"] * 4
    assert all(_is_answered(messages, place) for place in range(len(messages)))


def _is_answered(messages: list[Message], place: int) -> bool:
    uses = [use.id for use in messages[place].tool_uses]
    following = [
        block.tool_use_id
        for message in messages[place + 1 : place + 1 + len(uses)]
        for block in message.content
        if isinstance(block, ToolResult)
    ]
    return uses == following


def test_a_session_has_no_holder_when_nobody_waits(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1", session="s")
    end(journal, "00-1", "completed")
    assert client.hget(keys.session(0, "s", None), "holder") is None
    assert fields_of(journal, "00-1")["status"] == "completed"


def test_the_next_run_is_published_when_the_task_of_a_stopped_one_lets_go(
    client: redis.Redis,
) -> None:
    """Also over a broker that the scripts cannot push to."""
    journal = journal_of(client)
    sent: list[str] = []
    journal._publish = lambda ready: sent.extend(task.run_id for task in ready)
    begin(journal, "00-1", session="s")
    begin(journal, "00-2", session="s")
    lease = take(journal, "00-1")
    journal.stop_run("00-1", "cancel", {})
    sent.clear()
    assert not journal.commit(lease, []).recorded
    assert sent == ["00-2"]
    # The same commit sent again gets the first answer.
    assert not journal.commit(lease, []).recorded
    assert sent == ["00-2"] * 2
