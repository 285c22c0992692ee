"""Participants that are stopped take nothing with them that others wait for."""

from __future__ import annotations

import pytest
import redis

from littleghost.engine import commands as c
from tests.support.checks import check_journal
from tests.support.direct import PARTITIONS, QUEUE, answer, begin, finish, journal_of, take, turn

pytestmark = pytest.mark.redis


def exclusive(participant: str, number: int) -> c.TaskSpec:
    return c.TaskSpec(
        id=f"{participant}-c0.{number}",
        kind="call",
        participant=participant,
        queue=QUEUE,
        payload={},
        exclusive=True,
    )


@pytest.mark.parametrize("leased", [True, False])
def test_an_exclusive_call_of_theirs_lets_the_next_one_go(
    client: redis.Redis, leased: bool
) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    child = c.ParticipantSpec(id="0.0", assembly="m:A", kind="agent", label="a", state={})
    tasks = [exclusive("0.0", 0), exclusive("0.0", 1), exclusive("0", 0), turn("0-t9")]
    start = c.Start(participants=[child], tasks=tasks)
    journal.commit(take(journal, "00-1"), [*answer("a"), start])
    if leased:
        late = take(journal, "00-1", "0.0-c0.0")
    assert journal.claim("00-1", "0-c0.0") is None

    other = take(journal, "00-1", "0-t9")
    journal.commit(other, [c.CancelParticipants(("0.0",)), c.Start(tasks=[turn("0-t10")])])

    take(journal, "00-1", "0-c0.0")
    assert journal.claim("00-1", "0.0-c0.1") is None
    if leased:
        assert not journal.commit(late, [c.RecordResult("{}")]).recorded
    journal.commit(take(journal, "00-1", "0-t10"), finish())
    check_journal(client, PARTITIONS)
