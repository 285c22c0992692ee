"""RabbitMQ as the broker: it is only a doorbell there, too (P1)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from littleghost import Run
from tests.faults.fleet import wait_until
from tests.integration.processes import QUIET, Site, site
from tests.integration.rabbit import RabbitServer, find_script
from tests.integration.scripted import results, terminals
from tests.integration.site_app import SiteAgent

pytestmark = [
    pytest.mark.redis,
    pytest.mark.worker,
    pytest.mark.skipif(
        find_script() is None and not os.environ.get("CI"), reason="RabbitMQ is not installed"
    ),
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    made = RabbitServer(tmp_path_factory.mktemp("rabbit"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def fleet(broker: RabbitServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    with site(directory, LITTLEGHOST_BROKER_URL=broker.url) as made:
        yield made


def start(fleet: Site, slots: int = 4) -> None:
    """Start a worker of everything."""
    fleet.worker("-P", "threads", "-c", str(slots), *QUIET).wait_ready()


def traces(fleet: Site) -> list[str]:
    path = fleet.directory / "traces.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_a_queue_that_was_purged_is_filled_again(fleet: Site, broker: RabbitServer) -> None:
    """P1: before any worker is there, and between a turn and its calls."""
    runs = [SiteAgent.enqueue(f"many nonce-{number}") for number in range(5)]
    assert broker.purge("lg.turns") == 5
    turns = fleet.worker("-Q", "lg.turns", "-P", "threads", "-c", "4", *QUIET).wait_ready()
    wait_until(lambda: broker.length("lg.tools") >= 8, "calls are published")
    assert broker.purge("lg.tools") >= 8
    start(fleet)
    for number, run in enumerate(runs):
        told = [text.partition(" ")[0] for _, text in results(run.wait(30))]
        assert told == [f"nonce-{number}-{call}" for call in range(8)]
        assert terminals(run) == ["run_stop"]
    turns.stop()


def test_runs_are_carried_and_nothing_stays_in_the_queues(
    fleet: Site, broker: RabbitServer
) -> None:
    runs = [SiteAgent.enqueue(f"many nonce-{number}") for number in range(20)]
    assert {run.wait(30).outcome for run in runs} == {"completed"}
    wait_until(lambda: broker.length("lg.tools") == broker.length("lg.turns") == 0, "empty queues")


def test_a_worker_that_is_killed_loses_nothing(fleet: Site) -> None:
    run = SiteAgent.enqueue("gated rabbit-gate")
    wait_until(lambda: "hold rabbit-gate" in traces(fleet), "the call began")
    fleet.workers[-1].kill()
    start(fleet)
    (fleet.directory / "rabbit-gate").touch()
    assert run.wait(30).response == "through"
    assert terminals(run) == ["run_stop"]


def test_a_broker_that_is_down_costs_callers_little_and_runs_nothing(
    fleet: Site, broker: RabbitServer
) -> None:
    """P1, and enqueueing is bounded; the running worker comes back by itself."""
    broker.kill()
    took: list[float] = []
    runs: list[Run] = []
    for number in range(5):
        started = time.monotonic()
        runs.append(SiteAgent.enqueue(f"say {number}"))
        took.append(time.monotonic() - started)
    assert max(took) < 2
    assert sum(took) < 3
    broker.start()
    for number, run in enumerate(runs):
        assert run.wait(60).response == str(number)


def test_a_busy_worker_whose_broker_was_restarted_is_not_deaf_afterwards(
    fleet: Site, broker: RabbitServer
) -> None:
    """It takes tasks, and it ends when it is told to."""
    worker = fleet.worker("-P", "threads", "-c", "8", *QUIET).wait_ready()
    for other in [one for one in fleet.workers if one is not worker]:
        other.stop()
    held = [SiteAgent.enqueue(f"gated restart-{number}") for number in range(6)]
    wait_until(
        lambda: sum("hold restart-" in line for line in traces(fleet)) == 6, "every call began"
    )
    broker.kill()
    broker.start()
    runs = [SiteAgent.enqueue(f"many again-{number}") for number in range(5)]
    for number in range(6):
        (fleet.directory / f"restart-{number}").touch()
    runs += [SiteAgent.enqueue(f"many more-{number}") for number in range(10)]
    assert {run.wait(60).outcome for run in [*held, *runs]} == {"completed"}
    worker.process.terminate()
    worker.process.wait(20)
