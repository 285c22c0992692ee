"""`littleghost doctor`, on servers in every condition."""

from __future__ import annotations

import json

import pytest

from littleghost.journal import keys
from tests.acceptance.conftest import SHOP, Place
from tests.acceptance.processes import environment, littleghost
from tests.support.redis_server import Server


def _checks(stdout: str) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for check in json.loads(stdout)["checks"]:
        found.setdefault(check["name"], []).append(check)
    return found


@pytest.mark.worker
def test_a_healthy_fleet(fleet: Place) -> None:
    done = littleghost("doctor", "--runs", "--json", env=fleet.env)
    assert done.returncode == 0
    checks = _checks(done.stdout)
    assert {check["status"] for found in checks.values() for check in found} == {"ok"}
    assert "slots serve lg.turns, lg.tools" in checks["worker"][0]["detail"]
    assert "0 cannot end" in checks["runs"][0]["detail"]


def test_what_is_missing_is_told_with_the_cure(place: Place) -> None:
    done = littleghost("doctor", env=place.env)
    assert done.returncode == 0
    assert "lg.tools: 0 waiting, 0 slots: no live worker serves it" in done.stdout
    assert "littleghost worker tools -A my.module" in done.stdout
    assert "CONFIG SET appendonly yes" in done.stdout
    # A look does not mark a Redis as a journal.
    assert not place.client.exists("lg:schema")


def test_a_redis_that_may_forget_fails() -> None:
    server = Server(**{"maxmemory-policy": "allkeys-lru"}).start()
    try:
        done = littleghost("doctor", env=environment(LITTLEGHOST_REDIS_URL=server.url))
    finally:
        server.stop()
    assert done.returncode == 1
    assert "noeviction" in done.stdout


def test_a_journal_of_other_partitions_fails(place: Place) -> None:
    place.client.set(keys.SCHEMA, json.dumps({"version": keys.SCHEMA_VERSION, "partitions": 3}))
    done = littleghost("doctor", env=place.env)
    assert done.returncode == 1
    assert "LITTLEGHOST_PARTITIONS=3" in done.stdout


def test_an_unreachable_redis_and_broker(place: Place) -> None:
    away = "redis://:secret@127.0.0.1:1/0"
    done = littleghost("doctor", "--redis", away, env=place.env)
    assert done.returncode == 75
    assert "secret" not in done.stdout + done.stderr
    env = {**place.env, "LITTLEGHOST_BROKER_URL": away}
    done = littleghost("doctor", env=env)
    assert done.returncode == 1
    assert "LITTLEGHOST_BROKER_URL" in done.stdout
    assert "secret" not in done.stdout + done.stderr


def test_nothing_configured_is_said_with_the_cure() -> None:
    for verb in (["doctor"], ["runs"], ["show", "x"], ["worker", "turns"]):
        done = littleghost(*verb, env=environment())
        assert done.returncode == 2
        assert "LITTLEGHOST_REDIS_URL" in done.stderr


def test_a_run_that_nothing_could_move_is_named(place: Place) -> None:
    detached = littleghost("run", f"{SHOP}:EchoAgent", "hi", "--detach", env=place.env)
    run_id = detached.stdout.strip()
    waiting = littleghost("doctor", "--runs", env=place.env)
    assert waiting.returncode == 0
    assert f"{run_id}: waits in lg.turns, which no live worker serves" in waiting.stdout
    # Lose what should have moved it on.
    for key in place.client.scan_iter("lg:{*}:ready"):
        place.client.delete(key)
    done = littleghost("doctor", "--runs", env=place.env)
    assert done.returncode == 1
    assert run_id in done.stdout
    assert "1 cannot end" in done.stdout
