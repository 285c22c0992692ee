"""Cut a run at every operation of its journal, let others go on, and require the same end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.checks import check_nothing_left
from tests.support.scenarios import SCENARIOS, End, Scenario, play
from tests.support.world import Fault, World

pytestmark = pytest.mark.redis

PLACES = {"model", "delta", "tool before", "tool after"}
PUBLISHING = {"create", "revive", "commit", "publish", "republish", "reclaim", "sweep", "stop"}
KILLS = (Fault.KILL_BEFORE, Fault.KILL_AFTER)
MODES = {
    "pushed": {"in_place_max": 1},
    "in place": {"in_place_max": 16},
    "published": {"recorded": True, "in_place_max": 1},
}


def faults_at(operation: str) -> tuple[Fault, ...]:
    """Give what can go wrong at an operation."""
    if operation in PLACES:
        return (Fault.KILL_BEFORE,)
    name = operation.partition(" ")[2]
    if name == "publish":
        return (*KILLS, Fault.DROP, Fault.REPEAT)
    if name in PUBLISHING:
        return (*KILLS, Fault.RESEND, Fault.FORGET_SCRIPTS, Fault.DROP, Fault.REPEAT)
    return (*KILLS, Fault.RESEND, Fault.FORGET_SCRIPTS)


def same(disturbed: list[End], quiet: list[End], fault: Fault) -> None:
    """Compare the ends of a disturbed and an undisturbed run."""
    for one, other in zip(disturbed, quiet, strict=True):
        assert replace(one, unknown=[]) == other
        assert not one.unknown or fault in KILLS, "only a kill may leave an outcome unknown"


def cut_everywhere(world: World, scenario: Scenario) -> int:
    """Play a scenario once for each fault at each operation."""
    quiet = play(world, scenario)
    operations = list(world.operations)
    problems: list[str] = []
    count = 0
    for number, operation in enumerate(operations):
        for fault in faults_at(operation):
            count += 1
            try:
                same(play(world, scenario, {number: fault}), quiet, fault)
            except (AssertionError, Exception) as error:
                text = f"{type(error).__name__}: {error}"
                problems.append(f"{number} {operation!r} {fault.value}: {text[:1500]}")
    assert not problems, f"{len(problems)} of {count} cuts:\n" + "\n\n".join(problems[:12])
    check_nothing_left(world.client, world.partitions)
    return count


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_end_is_the_same_wherever_a_run_is_cut(
    worlds: Callable[..., World], scenario: Scenario, mode: str
) -> None:
    count = cut_everywhere(worlds(**MODES[mode]), scenario)
    assert count > 20
