"""A team's own Celery app carries runs beside its own tasks, with Celery's defaults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.fleet import wait_until
from tests.integration.processes import Site, site
from tests.integration.scripted import results
from tests.integration.site_app import SiteAgent

pytestmark = [pytest.mark.redis, pytest.mark.worker]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`celery -A own_app worker`, without -Q, with acknowledgement emulation, gossip and mingle."""
    with site(tmp_path_factory.mktemp("own")) as made:
        own = {"app": "tests.integration.own_app", "OWN_BROKER": made.redis.url}
        made.worker("-c", "2", **own).wait_ready()
        yield made


def test_it_serves_all_queues_and_carries_runs(fleet: Site) -> None:
    run = SiteAgent.ask("many nonce")
    assert [text.partition(" ")[0] for _, text in results(run)] == [f"nonce-{n}" for n in range(8)]
    assert SiteAgent.ask("say batch", lane="batch").response == "batch"


def test_its_own_tasks_run_beside_them(fleet: Site) -> None:
    from celery import Celery

    with Celery("caller", broker=fleet.redis.url, set_as_current=False) as caller:
        caller.send_task("tests.integration.own_app.add", (2, 3), ignore_result=True)
    added = fleet.directory / "added.txt"
    wait_until(lambda: added.exists() and added.read_text() == "5", "the team's task ran")


def test_a_run_goes_on_when_such_a_worker_is_killed(fleet: Site) -> None:
    """P1: what the broker does about it a visibility timeout later is stale by then."""
    run = SiteAgent.enqueue("gated own-gate")
    traces = fleet.directory / "traces.txt"
    wait_until(lambda: traces.exists() and "hold own-gate" in traces.read_text(), "it began")
    fleet.workers[0].kill()
    (fleet.directory / "own-gate").touch()
    own = {"app": "tests.integration.own_app", "OWN_BROKER": fleet.redis.url}
    fleet.worker("-c", "2", **own).wait_ready()
    assert run.wait(30).response == "through"


def test_autodiscovery_finds_the_package_by_its_own_name() -> None:
    from celery import Celery

    with Celery("discovering", broker="memory://", set_as_current=False) as app:
        app.autodiscover_tasks(["littleghost"], force=True)
        app.finalize()
        assert "littleghost.tasks" in __import__("sys").modules
