"""Creating a run: once, whole or not at all."""

from typing import Any

import pytest
import redis

from littleghost.errors import DuplicateRunError, InvocationError, SessionBusyError
from littleghost.ids import check_run_id
from littleghost.journal.record import Records
from tests.support.checks import check_documented, check_journal, contents
from tests.support.direct import (
    PARTITIONS,
    begin,
    events_of,
    finish,
    journal_of,
    plan_of,
    take,
    texts_of,
)

pytestmark = pytest.mark.redis


def everything(client: redis.Redis) -> dict[str, Any]:
    return contents(client, sorted(client.scan_iter()))


def test_an_id_is_given_once(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-one")
    before = everything(client)
    other = plan_of(journal, "00-one")
    other.fields["nonce"] = "another call"

    with pytest.raises(DuplicateRunError) as caught:
        journal.create("00-one", other)

    assert caught.value.field == "run_id"
    assert everything(client) == before


def test_an_id_stays_taken_after_its_run_has_ended(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-one")
    journal.commit(take(journal, "00-one"), finish())
    other = plan_of(journal, "00-one")
    other.fields["nonce"] = "another call"

    with pytest.raises(DuplicateRunError):
        journal.create("00-one", other)


def test_the_same_call_sent_again_changes_nothing(client: redis.Redis) -> None:
    journal = journal_of(client)
    plan = plan_of(journal, "00-one", session="s", deadline_ms=60_000)
    journal.create("00-one", plan)
    before = everything(client)

    journal.create("00-one", plan)

    assert everything(client) == before
    assert client.llen("lg.turns") == 1


def test_the_same_call_is_known_again_when_its_run_has_ended(client: redis.Redis) -> None:
    journal = journal_of(client)
    plan = plan_of(journal, "00-one")
    journal.create("00-one", plan)
    journal.commit(take(journal, "00-one"), finish())
    before = everything(client)

    journal.create("00-one", plan)

    assert everything(client) == before


def test_a_refused_run_leaves_nothing(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-one", session="s")
    begin(journal, "00-two", session="s")
    before = everything(client)

    with pytest.raises(SessionBusyError) as caught:
        begin(journal, "00-three", session="s", limit=1)

    assert caught.value.field == "session_id"
    assert everything(client) == before


@pytest.mark.parametrize("keys", [0, 1, 999, 1_000, 5_000, 20_000])
def test_a_context_may_have_any_number_of_keys(client: redis.Redis, keys: int) -> None:
    journal = journal_of(client)
    context = {f"c/{number}": number for number in range(keys)}

    begin(journal, "00-one", context=context)

    lease = take(journal, "00-one")
    assert {key: int(value) for key, value in lease.working.items()} == context
    check_journal(client, PARTITIONS)
    check_documented(client)


@pytest.mark.parametrize(
    "text", ["", "\0", "\ud800", "\U0001f47b", "é" * 10_000, '"\\]]==]', "%d %s"]
)
def test_any_text_comes_back(client: redis.Redis, text: str) -> None:
    journal = journal_of(client)
    plan = plan_of(journal, "00-one")
    document = f'{{"said":{text!r}}}'
    place = dict(plan.fields["f"])["asm"]
    plan.payloads[place - 4] = document

    journal.create("00-one", plan)

    found = Records(journal).find("00-one")
    assert found is not None
    assert found.assembly == document.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("suffix", ["e", "m:0", "r"])
def test_a_run_id_that_could_be_another_runs_key_is_refused(suffix: str) -> None:
    with pytest.raises(InvocationError, match="run_id"):
        check_run_id(f"00-job:{suffix}")


def test_a_run_says_where_it_is(client: redis.Redis) -> None:
    journal = journal_of(client)
    records = Records(journal)
    begin(journal, "00-one")
    assert records.find("00-one").status == "queued"
    lease = take(journal, "00-one")
    assert records.find("00-one").status == "running"
    journal.commit(lease, finish("well"))
    record = records.find("00-one")
    assert (record.status, record.text, record.is_over) == ("completed", "well", True)
    assert record.created_ms <= record.started_ms <= record.ended_ms
    assert texts_of(journal, "00-one") == ["00-one", "well"]
    assert events_of(journal, "00-one") == ["run_start", "invocation_start", "run_stop"]
