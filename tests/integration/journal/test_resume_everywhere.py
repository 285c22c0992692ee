"""Break runs of each kind off wherever that is possible, and require that a retry ends the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from littleghost.providers.registry import Models
from littleghost.providers.scripted import Call, Reply
from littleghost.run import Run
from tests.integration.journal.test_cut import MODES
from tests.integration.journal.test_cut_graph import ForkGraph, RescueGraph
from tests.integration.journal.test_cut_swarm import RelayProvider, RelaySwarm
from tests.support import cast, flows
from tests.support.checks import check_journal
from tests.support.resuming import break_everywhere, cancelling, failing
from tests.support.scenarios import end_of, enqueue
from tests.support.team import Team
from tests.support.world import World

pytestmark = pytest.mark.redis

# A child of several tasks, which must not begin anew when its caller goes on.
cast.SCRIPTS["errand"] = [
    Reply(tool_calls=[Call("clerk", {"input": "parallel"}), Call("fetch", {"n": 5})]),
    Reply(text="It is done."),
]
RUNS: dict[str, tuple[Any, str]] = {
    "parallel": (cast.Clerk, "parallel"),
    "exclusive": (cast.Clerk, "exclusive"),
    "retry": (cast.Clerk, "retry one"),
    "delegate": (cast.Boss, "delegate"),
    "errand": (cast.Boss, "errand"),
    "sequence": (flows.SequenceWorkflow, "go"),
    "side by side": (flows.ParallelWorkflow, "go"),
    "catching": (flows.CatchingWorkflow, "go"),
    "sleeping": (flows.SleepingWorkflow, "go"),
    "trying again": (flows.RetryingWorkflow, "go"),
    "nested": (flows.OuterWorkflow, "go"),
    "memo": (flows.MemoWorkflow, "go"),
    "bounded": (flows.BoundedWorkflow, "go"),
    "swarm": (RelaySwarm, "relay"),
    "fork": (ForkGraph, "text"),
    "rescue": (RescueGraph, "text"),
    "team": (Team, "team 2 all: text; say one; say two"),
    "team in team": (Team, "team 3 all: say one; [team 1 all: say two, say three]"),
}


# Where a task runs makes a difference to few of them.
IN_PLACE = ("exclusive", "errand", "side by side", "fork")


@pytest.mark.parametrize(
    ("name", "mode"),
    [*((name, "pushed") for name in RUNS), *((name, "in place") for name in IN_PLACE)],
)
def test_a_cancelled_run_goes_on_to_the_same_end(
    worlds: Callable[..., World], cast_models: Models, name: str, mode: str
) -> None:
    cast_models.connect("relay", RelayProvider())
    assembly, text = RUNS[name]
    world = worlds(**MODES[mode])
    count, _ = break_everywhere(world, lambda: enqueue(world, text, assembly=assembly), cancelling)
    assert count > 5


@pytest.mark.parametrize("name", RUNS)
def test_a_failed_run_goes_on_to_the_same_end(
    worlds: Callable[..., World], cast_models: Models, name: str
) -> None:
    cast_models.connect("relay", RelayProvider())
    assembly, text = RUNS[name]
    world = worlds(in_place_max=1)
    count, _ = break_everywhere(world, lambda: enqueue(world, text, assembly=assembly), failing)
    # These go on without whoever failed.
    assert count > 0 or name in ("trying again", "bounded", "team", "team in team")


@pytest.mark.parametrize("name", ["exclusive", "errand", "side by side", "fork", "team in team"])
def test_a_retry_that_is_broken_off_is_retried_as_well(
    worlds: Callable[..., World], cast_models: Models, name: str
) -> None:
    cast_models.connect("relay", RelayProvider())
    assembly, text = RUNS[name]
    world = worlds(in_place_max=1)
    chance = random.Random(name)
    longest = 0
    for _ in range(25):
        world.reset()
        run_id = enqueue(world, text, assembly=assembly)
        for attempt in range(4):
            heal = cancelling(world, run_id, chance.randint(2, 25))
            world.carry(run_id)
            heal()
            cast.HOOKS[:] = cast.HOOKS[:1]
            if world.record(run_id).status == "completed":
                longest = max(longest, attempt)
                break
            run_id = Run(run_id).retry().id
        world.carry(run_id)
        end = end_of(world, run_id)
        assert (end.status, end.unknown) == ("completed", [])
        assert end.response == QUIET[name]
        assert set(cast.EFFECTS.values()) <= {1}
        check_journal(world.client, world.partitions)
    assert longest >= 2


QUIET = {
    "exclusive": "One by one.",
    "errand": "It is done.",
    "side by side": '{"said":["one","two","three"]}',
    "fork": "a=one b2=Both are done. two",
    "team in team": "one | two | three",
}
