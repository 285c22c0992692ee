"""P1, P2, P5, P7, P11: fifty branches come together, though a worker is killed every second."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
import redis

from littleghost import Run, wiring
from littleghost.cli.proof import prove_runs
from littleghost.usage import Usage
from tests.faults.fan_out_app import (
    BRANCHES,
    JOIN_USAGE,
    TURN_USAGE,
    FanOutGraph,
    FanOutWorkflow,
)
from tests.faults.fleet import Fleet, WorkerProcess, wait_until
from tests.faults.test_worker_death import terminal_events
from tests.faults.unrest import Unrest
from tests.support.checks import check_journal, check_nothing_left

pytestmark = pytest.mark.faults
# Says in which order the workers are killed.
SEED = int(os.environ.get("FAULTS_SEED", "1"))
LEAST_KILLS = 4


@pytest.fixture
def settings() -> dict[str, str]:
    # A task is not to blame for losing its worker where one is killed every second.
    return {"imports": "tests.faults.fan_out_app", "max_lost": "50"}


@pytest.fixture
def workers(fleet: Fleet) -> list[WorkerProcess]:
    """Two of each kind."""
    launched = [
        fleet.launch("turns", slots=8),
        fleet.launch("tools", slots=2),
        fleet.launch("turns", slots=8),
        fleet.launch("tools", slots=2),
    ]
    fleet.wait_ready(*launched)
    return launched


def told(run: Run) -> tuple[Any, ...]:
    """What must not depend on what happened to the workers."""
    assert run.result is not None, (run.status, run.error)
    steps = run.result.steps
    name_of = {step.id: step.participant for step in steps}
    assert len(name_of) == len(steps)
    told_steps = sorted(
        (
            step.participant,
            step.status,
            step.assembly_kind,
            [name_of[before] for before in step.predecessor_ids],
            name_of.get(step.branch_id or "", step.branch_id),
            [(attempt.number, attempt.status, attempt.usage) for attempt in step.attempts],
            step.usage,
            step.output,
        )
        for step in steps
    )
    return (run.outcome, run.response, run.usage, run.result.stop_reason, told_steps)


def recorded(run: Run) -> Counter[str]:
    """Count the durable events that are recorded together with what they tell of."""
    kinds = Counter(event.inner_type for event in run.events())
    return Counter(
        {
            kind: count
            for kind, count in kinds.items()
            if kind.startswith("assembly_") or kind in ("tool_start", "tool_stop", "model_stop")
        }
    )


def conversations(run: Run) -> dict[str, list[Any]]:
    """Give the messages of each branch, as JSON."""
    assert run.result is not None
    records = wiring.runtime().records
    return {
        step.participant: records.messages(run.record, step.id)
        for step in run.result.steps
        if step.participant in BRANCHES
    }


def bookings_told(run: Run) -> Counter[str]:
    """Count what the branches were told of their bookings; the rest must be the same in each."""
    found: Counter[str] = Counter()
    for name, messages in conversations(run).items():
        roles = [message["role"] for message in messages]
        assert roles == ["user", "assistant", "tool", "tool", "assistant"], name
        looked_up, booked = [block for message in messages[2:4] for block in message["content"]]
        assert (looked_up["status"], looked_up["content"]) == ("success", f"look_up {name}")
        if booked["status"] == "success":
            assert booked["content"] == f"book {name}"
        else:
            assert "outcome of this call is unknown" in booked["content"]
        found[booked["status"]] += 1
    assert found.total() == len(BRANCHES)
    return found


def check_effects(run: Run, effects: list[str]) -> Counter[str]:
    """Check what was done for a run against what its models were told.

    Returns:
        How often something was done again, by its kind; bookings whose outcome is unknown.
    """
    done: dict[str, Counter[str]] = {"turn": Counter(), "look_up": Counter(), "book": Counter()}
    for line in effects:
        kind, _, name = line.partition(" ")
        done[kind][name] += 1
    for kind in ("look_up", "book"):
        assert all(key.startswith(f"{run.id}:") for key in done[kind])
    assert set(done["turn"]) == {f"{name} {turn}" for name in BRANCHES for turn in (0, 1)}
    assert len(done["look_up"]) == len(BRANCHES)
    told_of = bookings_told(run)
    assert told_of["success"] <= len(done["book"]) <= len(BRANCHES)
    assert set(done["book"].values()) == {1}
    again = {kind: times.total() - len(times) for kind, times in done.items()}
    return Counter(turn=again["turn"], look_up=again["look_up"], unknown=told_of["error"])


def holders(client: redis.Redis) -> set[Any]:
    """Give the workers whose tasks would be taken back if they died."""
    return {
        worker for name in client.scan_iter("lg:{*}:holders") for worker in client.smembers(name)
    }


def check_kept(client: redis.Redis, fleet: Fleet) -> None:
    """Check that nothing is stuck, and that all that stays has an end."""
    work = wiring.runtime()
    checks = prove_runs(work)
    assert [check.status for check in checks] == ["ok"], checks
    wait_until(lambda: not client.exists("lg.turns", "lg.tools"), "old messages are taken")
    wait_until(lambda: holders(client) <= work.workers.alive(), "the dead are forgotten")
    check_journal(client, work.settings.partitions)
    for worker in fleet.workers:
        worker.kill_group()
    # Celery's own, for as long as there are workers.
    for name in list(client.scan_iter("_kombu.binding*")):
        client.delete(name)
    check_nothing_left(client, work.settings.partitions)


@pytest.mark.parametrize("assembly", [FanOutGraph, FanOutWorkflow])
def test_the_end_is_the_same_when_a_worker_dies_every_second(
    fleet: Fleet, workers: list[WorkerProcess], assembly: Any
) -> None:
    calm = assembly.ask("go")
    expected = told(calm)
    turns = [TURN_USAGE] * 2 * len(BRANCHES) + [JOIN_USAGE] * 2
    assert calm.usage == sum(turns, Usage())
    before = fleet.effects()
    assert check_effects(calm, before).total() == 0

    unrest = Unrest(fleet, workers, SEED)
    run = assembly.enqueue("go")
    unrest.until_over(run)

    assert told(run) == expected
    assert recorded(run) == recorded(calm)
    assert recorded(run)["tool_stop"] == 2 * len(BRANCHES)
    assert recorded(run)["model_stop"] == len(turns)
    assert terminal_events(run) == ["run_stop"]
    again = check_effects(run, fleet.effects()[len(before) :])
    print(
        f"{assembly.__name__}, seed {SEED}: {calm.duration_s:.1f} s calm, {run.duration_s:.1f} s "
        f"with {len(unrest.kills)} kills of workers that held {unrest.held} tasks; done again, or "
        f"unknown: {dict(again)}"
    )
    assert len(unrest.kills) >= LEAST_KILLS
    assert again.total() > 0
    unrest.settle()
    check_kept(fleet.redis.client(), fleet)
