"""Cut a run that fails, its retry and what that leads to at every operation of their journal."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.journal.test_cut import MODES, cut_everywhere, faults_at
from tests.integration.journal.test_cut_graph import ForkGraph
from tests.support import cast, flows
from tests.support.resuming import refuse_at, retry
from tests.support.scenarios import Scenario, enqueue, play
from tests.support.world import World

pytestmark = pytest.mark.redis

_numbers = itertools.count()


def _broken(name: str, text: str, assembly: Any, *task_ids: str) -> Scenario:
    def begin(world: World) -> list[str]:
        heal = refuse_at(world, *task_ids)
        # Another run each time: live text of a worker that was killed may still be under way.
        session = f"s{next(_numbers)}" if assembly is not cast.Clerk else None
        fields = {"session_id": session} if session else {}
        old_id = enqueue(world, text, assembly=assembly, **fields)
        world.carry(old_id)
        heal()
        return [old_id, retry(old_id, world)]

    return Scenario(name, begin)


SCENARIOS = [
    _broken("turn after tools", "parallel", cast.Clerk, "0-t1"),
    _broken("second child", "go", flows.SequenceWorkflow, "0.1-t0"),
    _broken("branch", "text", ForkGraph, "0.2-t1"),
    _broken("caller of an agent", "delegate", cast.Boss, "0-t1"),
]


def test_undisturbed_the_old_run_fails_and_the_new_one_completes(world: World) -> None:
    for scenario in SCENARIOS:
        old, new = play(world, scenario)
        assert (old.status, old.error) == ("failed", "invalid_request"), scenario.name
        assert (new.status, new.error) == ("completed", ""), scenario.name


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS[:2], ids=lambda scenario: scenario.name)
def test_a_retry_ends_the_same_wherever_it_is_cut(
    worlds: Callable[..., World], scenario: Scenario, mode: str
) -> None:
    assert cut_everywhere(worlds(**MODES[mode]), scenario) > 20


def test_a_retry_of_a_graph_ends_the_same_wherever_it_is_cut(world: World) -> None:
    # How far the other branch comes before one fails is a matter of time, and so is what is left.
    scenario = SCENARIOS[2]
    quiet = play(world, scenario)[1]
    for number, operation in enumerate(list(world.operations)):
        for fault in faults_at(operation):
            old, new = play(world, scenario, {number: fault})
            assert old.status == "failed", (number, operation)
            assert (new.status, new.response) == ("completed", quiet.response), (number, operation)
