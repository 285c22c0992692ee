"""P1, P3, P5: what waits for a person or a signal outlives every process, Redis included."""

import pytest

from littleghost import Run
from tests.faults.fleet import Fleet, wait_until
from tests.faults.test_worker_death import terminal_events, tool_results
from tests.faults.waiting_app import DeliveryWorkflow, Payer

pytestmark = pytest.mark.faults


@pytest.fixture
def settings() -> dict[str, str]:
    return {"imports": "tests.faults.waiting_app"}


@pytest.fixture
def appendfsync() -> str:
    return "always"


def parked(*runs: Run) -> None:
    for run in runs:
        wait_until(lambda run=run: run.status == "waiting", f"{run!r} waits")


def test_waits_outlive_the_whole_fleet_and_redis(fleet: Fleet) -> None:
    workers = [fleet.start("turns"), fleet.start("tools", slots=2)]
    asked, early = Payer.enqueue("pay 2"), Payer.enqueue("pay 1")
    ordered, expecting = DeliveryWorkflow.enqueue("Go"), DeliveryWorkflow.enqueue("Go")
    parked(asked, early, ordered, expecting)
    for worker in workers:
        worker.kill_group()
    # These are answered while nobody works, and then Redis dies, too.
    early.approve(early.pending[0].id, by="ann")
    expecting.signal("arrived", {"what": "tea"}, id="s1")

    fleet.redis.kill()
    assert not fleet.redis.answers()
    fleet.power_on(workers)

    assert [item.arguments for item in asked.pending] == [{"key": "k0"}, {"key": "k1"}]
    asked.reject(asked.pending[1].id, "too much")
    asked.approve(asked.pending[0].id)
    ordered.signal("arrived", {"what": "coffee"})
    # What was sent and is sent again is still the same.
    expecting.signal("arrived", {"what": "tea"}, id="s1")
    early.approve("0-c0.0", by="ann")

    for run in (asked, early, ordered, expecting):
        assert run.wait(30).outcome == "completed", run.error
        assert terminal_events(run) == ["run_stop"]
    assert tool_results(asked)[0] == ("success", "paid k0")
    assert "too much" in tool_results(asked)[1][1]
    assert tool_results(early) == [("success", "paid k0")]
    assert (ordered.response, expecting.response) == ("got coffee", "got tea")
    assert sorted(fleet.effects()) == ["order"] * 2 + ["pay k0"] * 2 + ["unpack"] * 2


def test_a_message_to_an_agent_outlives_them_too(fleet: Fleet) -> None:
    """It waits in the journal while nobody works, and the agent answers it afterwards."""
    turns = fleet.start("turns")
    run = Payer.enqueue("pay 1")
    parked(run)
    turns.kill_group()
    sent = run.interject("Hurry", id="m1")
    fleet.redis.kill()
    fleet.power_on([turns])
    fleet.start("tools", slots=1)
    run.approve(run.pending[0].id)

    assert sent.wait(30).text == "I do."
    assert run.interject("Hurry", id="m1").after == sent.after
    assert run.wait(30).outcome == "completed"
    assert fleet.effects() == ["pay k0"]
