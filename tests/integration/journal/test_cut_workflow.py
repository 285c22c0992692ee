"""Cut workflows at every operation of their journal, and require the same end."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from littleghost.run import Run
from tests.integration.journal.test_cut import MODES, cut_everywhere
from tests.support import cast, flows
from tests.support.scenarios import Scenario, enqueue, persistent, play
from tests.support.world import Fault, World

pytestmark = pytest.mark.redis


_numbers = itertools.count()


def _flow(assembly: type) -> Scenario:
    # These take time of their own, in which a killed worker's live text may still be under way: it
    # must not find the same run once more.
    return Scenario(
        assembly.__name__,
        lambda world: [enqueue(world, "go", assembly=assembly, session_id=f"s{next(_numbers)}")],
    )


def _signalled(world: World) -> list[str]:
    (run_id,) = _flow(flows.WaitingWorkflow).begin(world)
    run = Run(run_id)
    persistent(lambda: run.signal("go", {"n": "one"}, id="first"))

    def send() -> bool:
        waits = [item.kind for item in run.pending] == ["signal"]
        if waits and "two" not in sent:
            persistent(lambda: run.signal("go", "two", id="second"))
            sent.append("two")
            return True
        return False

    sent: list[str] = []
    world.when_idle = send
    return [run_id]


SCENARIOS = {
    Scenario("signals", _signalled): "one two signal_timeout",
    _flow(flows.SequenceWorkflow): "Hello there, friend.",
    _flow(flows.ParallelWorkflow): '{"said":["one","two","three"]}',
    _flow(flows.CatchingWorkflow): "InvalidRequestError twice",
    _flow(flows.SleepingWorkflow): "before AFTER",
    _flow(flows.RetryingWorkflow): "InvalidRequestError good",
    _flow(flows.OuterWorkflow): "Hello there, friend.",
    _flow(flows.MemoWorkflow): '{"same":true,"context":{}}',
    _flow(flows.BoundedWorkflow): "too slow, the script refuses this",
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_an_undisturbed_one_ends_as_its_code_says(
    worlds: Callable[..., World], scenario: Scenario
) -> None:
    (end,) = play(worlds(in_place_max=16), scenario)
    assert (end.status, end.response, end.error) == ("completed", SCENARIOS[scenario], "")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_end_is_the_same_wherever_a_workflow_is_cut(
    worlds: Callable[..., World], scenario: Scenario, mode: str
) -> None:
    assert cut_everywhere(worlds(**MODES[mode]), scenario) > 20


def test_a_step_is_never_made_again_once_it_is_recorded(world: World) -> None:
    scenario = _flow(flows.MemoWorkflow)
    play(world, scenario)
    operations = list(world.operations)
    first = next(n for n, name in enumerate(operations) if name.endswith("commit"))
    made: dict[tuple[int, Fault], int] = {}
    for number, name in enumerate(operations):
        if name.endswith(("commit", "claim")):
            for fault in (Fault.KILL_BEFORE, Fault.KILL_AFTER):
                play(world, scenario, {number: fault})
                made[number, fault] = cast.EFFECTS["step"]
    assert made.pop((first, Fault.KILL_BEFORE)) == 2, "nothing was recorded yet"
    assert set(made.values()) == {1}
