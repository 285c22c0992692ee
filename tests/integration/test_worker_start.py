"""A worker that could not do its work well does not start: it says why and exits (P9, P12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from littleghost.journal import keys
from tests.faults.fleet import RedisServer, wait_until
from tests.integration.processes import QUIET, CeleryWorker, Site, site

pytestmark = [pytest.mark.redis, pytest.mark.worker]

NOWHERE = "redis://127.0.0.1:1/0"
EXIT_S = 20.0


def database(fleet: Site, number: int) -> str:
    return fleet.redis.url.removesuffix("0") + str(number)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, CeleryWorker]]:
    """Workers that are each wrong in another way, started at the same time."""
    directory: Path = tmp_path_factory.mktemp("refusing")
    (directory / "evicting").mkdir()
    evicting = RedisServer(directory / "evicting")
    with evicting.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    with site(directory / "site") as fleet, fleet.redis.client() as client:
        client.select(1)
        client.set("lg:schema", json.dumps({"version": 99, "partitions": 16}))
        client.select(2)
        client.set("lg:schema", json.dumps({"version": keys.SCHEMA_VERSION, "partitions": 4}))
        client.select(3)
        client.set("lg:schema", "something else")
        client.select(0)
        own = "tests.integration.own_app"
        started = {
            "definition": fleet.worker(*QUIET, app="tests.integration.bad_app"),
            "eviction": fleet.worker(*QUIET, LITTLEGHOST_REDIS_URL=evicting.url),
            "version": fleet.worker(*QUIET, LITTLEGHOST_REDIS_URL=database(fleet, 1)),
            "partitions": fleet.worker(*QUIET, LITTLEGHOST_REDIS_URL=database(fleet, 2)),
            "foreign": fleet.worker(*QUIET, LITTLEGHOST_REDIS_URL=database(fleet, 3)),
            "no redis": fleet.worker(*QUIET, LITTLEGHOST_REDIS_URL=NOWHERE),
            "other broker": fleet.worker(*QUIET, app=own, OWN_BROKER=NOWHERE),
            "default broker": fleet.worker(*QUIET, app=own),
        }
        yield started
    evicting.kill()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("definition", ["BadAgent", "Undescribed", "description"]),
        ("eviction", ["maxmemory-policy", "allkeys-lru", "noeviction"]),
        ("version", ["version 99"]),
        ("partitions", ["LITTLEGHOST_PARTITIONS=4"]),
        ("foreign", ["lg:schema", "something else"]),
        ("no redis", ["127.0.0.1:1"]),
        ("other broker", ["LITTLEGHOST_BROKER_URL"]),
        ("default broker", ["LITTLEGHOST_BROKER_URL"]),
    ],
)
def test_the_process_says_why_and_exits(
    refused: dict[str, CeleryWorker], name: str, words: list[str]
) -> None:
    worker = refused[name]
    wait_until(
        lambda: worker.process.poll() is not None or has_started(worker),
        f"the worker has decided, see {worker.log}",
        EXIT_S,
    )
    assert worker.process.poll() not in (None, 0), worker.text()[-2000:]
    last_words = worker.text()[-2000:]
    for word in words:
        assert word in last_words
    assert "ready." not in worker.text()


def has_started(worker: CeleryWorker) -> bool:
    return "ready." in worker.text() or "Cannot connect" in worker.text()
