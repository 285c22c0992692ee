"""The messages: the same whoever sends them, and any Celery worker can read them."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from kombu import Connection

from littleghost.celery.envelope import template
from littleghost.celery.publish import BrokerPublisher
from littleghost.engine import commands as c
from littleghost.journal.scripts import constants
from littleghost.journal.store import RedisJournal
from tests.support.direct import (
    PARTITIONS,
    answer,
    batch,
    begin,
    finish,
    keeper_of,
    make_due,
    result,
    take,
)
from tests.support.redis_server import Server

pytestmark = pytest.mark.redis
QUEUES = ("lg.turns",)


def kombu_url(server: Server) -> str:
    return server.url.replace("unix://", "redis+socket://")


@pytest.fixture
def publisher(redis_server: Server) -> Iterator[BrokerPublisher]:
    made = BrokerPublisher(kombu_url(redis_server))
    yield made
    if made._connection is not None:
        made._connection.release()


def journal(client: redis.Redis, publisher: BrokerPublisher | None) -> RedisJournal:
    header = constants(
        envelope=None if publisher else template(),
        push_prefix="",
        grace_ms=1000,
        retention_s=600,
        session_s=600,
    )
    publish = publisher.publish if publisher else None
    return RedisJournal(client, header, partitions=PARTITIONS, worker_id="a", publish=publish)


def one_of_each(made: RedisJournal) -> None:
    """Do everything that publishes."""
    begin(made, "00-1")
    begin(made, "00-2", session="s")
    begin(made, "00-3", session="s")
    made.commit(take(made, "00-1"), [*answer("a"), batch(0, 3, width=2)])
    for number in range(3):
        made.commit(take(made, "00-1", f"0-c0.{number}"), result("r"))
    made.commit(take(made, "00-2"), finish())
    made.commit(take(made, "00-3"), [c.TryAgain(5, 1)])
    keeper = keeper_of(made)
    make_due(made, "timers")
    keeper.round()
    made.release("00-1", "0-t1", "b")
    take(made, "00-1", "0-t1")
    made.release("00-1", "0-t1", "a", lost=True)
    keeper.round()
    take(made, "00-1", "0-t1")
    keeper._reclaim(0, "a")
    make_due(made, "ready")
    keeper.round()


def normal(text: str) -> Any:
    """Give a message without what may differ: time, tag, and how the body is written."""
    message = json.loads(text)
    properties = message["properties"]
    body = message["body"]
    if properties.pop("body_encoding") == "base64":
        body = base64.b64decode(body).decode()
    assert properties.pop("delivery_tag")
    [run_id, task_id, at_ms], keywords, canvas = json.loads(body)
    assert isinstance(at_ms, int)
    assert at_ms > 1.6e12
    assert (keywords, canvas) == ({}, {})
    return {**message, "body": [run_id, task_id]}


def test_scripts_and_kombu_send_the_same_messages(
    client: redis.Redis, publisher: BrokerPublisher
) -> None:
    one_of_each(journal(client, None))
    pushed = [normal(text) for text in client.lrange("lg.turns", 0, -1)]
    client.flushall()
    one_of_each(journal(client, publisher))
    published = [normal(text) for text in client.lrange("lg.turns", 0, -1)]
    assert len(pushed) >= 10
    assert pushed == published


def test_lengths_of_queues_are_the_same(client: redis.Redis, publisher: BrokerPublisher) -> None:
    one_of_each(journal(client, None))
    assert publisher.lengths(["lg.turns", "lg.none"]) == {
        "lg.turns": client.llen("lg.turns"),
        "lg.none": 0,
    }


def test_a_lost_message_is_sent_again_over_kombu(
    client: redis.Redis, publisher: BrokerPublisher
) -> None:
    made = journal(client, publisher)
    begin(made, "00-1")
    client.delete("lg.turns")
    make_due(made, "ready")
    keeper = keeper_of(made)
    keeper._queue_lengths = publisher.lengths

    keeper.round()

    assert client.llen("lg.turns") == 1


@pytest.mark.parametrize("sender", ["scripts", "kombu"])
def test_kombu_reads_them(
    client: redis.Redis, publisher: BrokerPublisher, redis_server: Server, sender: str
) -> None:
    begin(journal(client, publisher if sender == "kombu" else None), "00-1")
    with (
        Connection(kombu_url(redis_server)) as connection,
        connection.SimpleQueue("lg.turns") as queue,
    ):
        message = queue.get(timeout=10)
        message.ack()
        body, headers = message.payload, message.headers
    assert body[0][:2] == ["00-1", "0-t0"]
    assert headers["task"] == "littleghost.turn"
    assert headers["id"] == "00-1|0-t0"


# A process of its own: in this one the library's tasks of the same name may be registered already.
READER = """
import json, sys, threading
from celery import Celery
from celery.contrib.testing.worker import start_worker

app = Celery("reader", broker=sys.argv[1])
app.conf.update(
    task_ignore_result=True,
    task_default_queue="lg.turns",
    broker_transport_options={"ack_emulation": False},
    worker_disable_prefetch=True,
    broker_connection_retry_on_startup=True,
)
three = threading.Semaphore(0)

@app.task(bind=True, name="littleghost.turn", ignore_result=True)
def turn(self, *args):
    row = [self.request.id, self.request.delivery_info["routing_key"], *args]
    print(json.dumps(row), flush=True)
    three.release()

with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=20):
    for _ in range(3):
        assert three.acquire(timeout=30)
"""


@pytest.mark.worker
@pytest.mark.parametrize("sender", ["scripts", "kombu"])
def test_a_celery_worker_reads_the_messages(
    client: redis.Redis, publisher: BrokerPublisher, redis_server: Server, sender: str
) -> None:
    """Celery's own consumer, with its own decoding, calls a task with what the message says."""
    made = journal(client, publisher if sender == "kombu" else None)
    for number in range(3):
        begin(made, f"00-{number}")
    command = [sys.executable, "-c", READER, kombu_url(redis_server)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    seen = [json.loads(line) for line in told.splitlines() if line.startswith("[")]
    assert len(seen) == 3
    for number, (task_id, queue, run_id, name, at_ms) in enumerate(seen):
        assert (task_id, queue) == (f"00-{number}|0-t0", "lg.turns")
        assert (run_id, name) == (f"00-{number}", "0-t0")
        assert isinstance(at_ms, int)


@pytest.mark.parametrize("name", ["lg.turns", "my-app.tools.batch", "ünïcode", "a b"])
def test_any_queue_name_is_pushed_as_it_is(client: redis.Redis, name: str) -> None:
    made = journal(client, None)
    plan = made.plan_create()
    plan.fields.update(h=0, nonce="n", i=[], c=[], f=[["asm", plan.payload("x")]])
    plan.fields["i"] = [plan.payload('{"role":"user","content":["x"]}')]
    root = c.ParticipantSpec(id="0", assembly="m:A", kind="agent", label="a", state={})
    task = c.TaskSpec(id="0-t0", kind="turn", participant="0", queue=name)
    plan.start([root], [task], [])
    made.create("00-1", plan)
    assert client.llen(name) == 1
    assert json.loads(client.lindex(name, 0))["properties"]["delivery_info"]["routing_key"] == name


def test_a_broker_that_is_away_does_not_stop_a_caller(client: redis.Redis) -> None:
    publisher = BrokerPublisher("redis+socket:///nowhere/at/all")
    made = journal(client, publisher)
    begin(made, "00-1")
    assert take(made, "00-1").task_id == "0-t0"
