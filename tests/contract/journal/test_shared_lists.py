"""A list that a join delivers to while its participant works is never remembered wrongly."""

from __future__ import annotations

import pytest
import redis

from littleghost.engine import commands as c
from littleghost.journal.record import Records
from littleghost.messages import Message, assistant
from tests.support.direct import QUEUE, answer, begin, journal_of, record, result, take, turn

pytestmark = pytest.mark.redis


@pytest.mark.parametrize("in_place", [False, True])
def test_what_was_delivered_in_between_is_not_lost(client: redis.Redis, in_place: bool) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    call = c.TaskSpec(
        id="0-c0.0", kind="call", participant="0", queue=QUEUE, payload={}, join="0-b0"
    )
    join = c.Join(id="0-b0", participant="0", members=("0-c0.0",), width=1, then="0-t1")
    start = c.Start(tasks=[call, turn("0-t1", waits=True), turn("0-t5")], joins=[join])
    journal.commit(take(journal, "00-1"), [*answer("a"), start])
    other = take(journal, "00-1", "0-t5")

    journal.commit(take(journal, "00-1", "0-c0.0"), result("delivered"))
    append = c.Append((record("appended"),), (assistant("appended"),))
    more = [append, c.Start(tasks=[turn("0-t6")])]
    following = journal.commit(other, more, serves=[QUEUE] if in_place else ()).lease

    lease = following or take(journal, "00-1", "0-t6")
    found = Records(journal).find("00-1")
    assert found is not None
    stored = [Message.from_json(item) for item in Records(journal).messages(found)]
    assert lease.records == stored
    assert [message.text for message in stored] == ["00-1", "a", "delivered", "appended"]
