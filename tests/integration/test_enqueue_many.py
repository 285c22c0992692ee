"""Many runs at once: checked before the first exists, few round trips, safe to repeat."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from littleghost import Run
from littleghost.errors import InvocationError, UnknownModelError
from littleghost.journal import bulk
from littleghost.wiring import Runtime
from tests.integration.scripted import WAIT_S, make_agent, run_keys

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]


def ended(runs: list[Run]) -> list[Run]:
    """Wait until no run of the test changes keys any more."""
    return [run.wait(WAIT_S) for run in runs]


@pytest.mark.worker
def test_each_message_becomes_a_run_in_its_order() -> None:
    agent = make_agent(["done"])
    texts = [f"Message {number}" for number in range(bulk.CHUNK + 5)]
    runs = agent.enqueue_many(texts, context={"tenant": 7}, lane="batch")
    assert len({run.id for run in runs}) == len(texts)
    for text, run in zip(texts, ended(runs), strict=True):
        assert run.is_completed, run.error
        assert run.invocation.message.text == text
        assert run.invocation.context == {"tenant": 7}


def test_it_takes_a_round_trip_for_each_hundred(embedded: Runtime) -> None:
    agent = make_agent(["done"])
    ended(agent.enqueue_many(["One"]))

    def commands() -> int:
        found: Any = embedded.client.info("commandstats")
        return int(found["cmdstat_evalsha"]["calls"])

    read = embedded.client.info("stats")["total_reads_processed"]
    before = commands()
    runs = agent.enqueue_many(["One"] * 250)
    assert commands() - before >= 250
    # Other clients of the server (the worker's) read at the same time.
    assert embedded.client.info("stats")["total_reads_processed"] - read < 250
    ended(runs)


def test_a_repeated_call_leaves_what_exists_alone() -> None:
    agent = make_agent(["done"])
    ids = [f"row-{number}" for number in range(4)]
    first = agent.enqueue_many(["Old"] * 2, run_ids=ids[:2])
    again = agent.enqueue_many(["New"] * 4, run_ids=ids)
    assert [run.id for run in again] == ids
    assert [run.id for run in first] == ids[:2]
    texts = [Run.get(run.id).invocation.message.text for run in ended(again)]
    assert texts == ["Old", "Old", "New", "New"]


def test_it_works_when_redis_forgot_the_scripts(embedded: Runtime) -> None:
    agent = make_agent(["done"])
    embedded.client.script_flush()
    runs = agent.enqueue_many(["One", "Two"])
    assert [run.invocation.message.text for run in ended(runs)] == ["One", "Two"]


def test_nothing_is_nothing() -> None:
    before = run_keys()
    assert make_agent(["done"]).enqueue_many([]) == []
    assert run_keys() == before


@pytest.mark.parametrize(
    ("field", "messages", "fields"),
    [
        ("message", ["Good", ""], {}),
        ("messages", "Good", {}),
        ("messages", 5, {}),
        ("lane", ["Good"], {"lane": "fast"}),
        ("run_id", ["Good"], {"run_id": "one"}),
        ("session_id", ["Good"], {"session_id": "one"}),
        ("run_ids", ["Good"], {"run_ids": []}),
        ("run_ids", ["Good"], {"run_ids": "a"}),
        ("run_ids", ["Good", "Good"], {"run_ids": ["a", "a"]}),
        ("run_id", ["Good", "Good"], {"run_ids": ["a", "no spaces"]}),
        ("run_id", ["Good", "Good"], {"run_ids": ["a", ["b"]]}),
    ],
)
def test_one_bad_value_refuses_all(field: str, messages: Any, fields: dict[str, Any]) -> None:
    before = run_keys()
    with pytest.raises(InvocationError) as caught:
        make_agent(["done"]).enqueue_many(messages, **fields)
    assert caught.value.field == field
    assert run_keys() == before


def test_the_message_refused_is_named_by_number() -> None:
    with pytest.raises(InvocationError, match="message 1: "):
        make_agent(["done"]).enqueue_many(["Good", " "])


def test_a_model_that_is_not_there_refuses_all() -> None:
    agent = type("Nowhere", (make_agent(["done"]),), {"model": "nowhere:1"})
    before = run_keys()
    with pytest.raises(UnknownModelError):
        agent.enqueue_many(["One", "Two"])
    assert run_keys() == before


def test_it_does_the_same_without_blocking_an_event_loop() -> None:
    runs = asyncio.run(make_agent(["done"]).aenqueue_many(["One", "Two"]))
    assert [run.invocation.message.text for run in ended(runs)] == ["One", "Two"]
