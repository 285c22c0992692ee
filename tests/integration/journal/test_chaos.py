"""Many runs at once while workers die and messages are lost, doubled and reordered; fixed seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.cast import Clerk
from tests.support.checks import check_documented, check_journal, check_nothing_left
from tests.support.fleet import KilledError
from tests.support.scenarios import end_of
from tests.support.world import Fault, World

pytestmark = pytest.mark.redis

TEXTS = ("text", "parallel", "exclusive", "error", "slow", "retry {}", "say {}")
WEIGHTS = {
    Fault.KILL_BEFORE: 2,
    Fault.KILL_AFTER: 2,
    Fault.DROP: 3,
    Fault.REPEAT: 3,
    Fault.RESEND: 3,
    Fault.FORGET_SCRIPTS: 1,
}


class Unrest(dict[int, Fault]):
    """A fault at about one operation in twelve."""

    def __init__(self, chooser: random.Random) -> None:
        super().__init__()
        self._chooser = chooser
        self.is_on = False

    def get(self, number: int, default: Any = None) -> Fault | None:
        if not self.is_on or self._chooser.random() > 1 / 12:
            return default
        return self._chooser.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def start_all(chooser: random.Random) -> dict[str, str]:
    """Start runs with and without sessions; give their texts by id."""
    runs: dict[str, str] = {}
    for number in range(10):
        text = chooser.choice(TEXTS).format(number)
        fields: dict[str, Any] = {}
        if chooser.random() < 0.6:
            fields["session_id"] = chooser.choice("ab")
        if chooser.random() < 0.3:
            fields["deadline_at"] = timedelta(hours=1)
        runs[Clerk.enqueue(text, **fields).id] = text
    return runs


def disturb(world: World, chooser: random.Random, runs: dict[str, str]) -> None:
    """Do something from outside, now and then."""
    luck = chooser.random()
    run_id = chooser.choice(list(runs))
    record = world.record(run_id)
    if luck < 0.02:
        try:
            world.run(run_id).cancel()
        except KilledError:
            return
    elif luck < 0.05 and record.deadline_ms and not record.is_over:
        world.expire_deadline(run_id)
    elif luck < 0.10:
        world.keep()
    elif luck < 0.13:
        dead = [worker for worker in world.workers if not worker.is_alive]
        if dead:
            world.replace(chooser.choice(dead))


def unsettled(world: World, runs: dict[str, str]) -> list[str]:
    return [run_id for run_id in runs if not world.record(run_id).is_over]


def play(world: World, seed: int) -> None:
    chooser = random.Random(seed)
    unrest = Unrest(chooser)
    world.reset()
    runs = start_all(chooser)
    world.faults = unrest
    for step in range(400):
        unrest.is_on = True
        message = world.pop(chooser)
        if message is not None:
            world.perform(message, chooser.choice(world.living()))
        else:
            world.keep()
        disturb(world, chooser, runs)
        unrest.is_on = False
        if step % 20 == 0:
            check_journal(world.client, world.partitions)
        if not unsettled(world, runs):
            break
    world.carry(*runs)
    for run_id, text in runs.items():
        end = end_of(world, run_id)
        assert end.status in ("completed", "cancelled", "partial", "failed")
        if end.status == "failed":
            assert end.error == "worker_lost", (text, end)
    check_journal(world.client, world.partitions)
    check_documented(world.client)
    check_nothing_left(world.client, world.partitions)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("recorded", [False, True], ids=["pushed", "published"])
def test_every_run_ends_well_in_unrest(
    worlds: Callable[..., World], seed: int, recorded: bool
) -> None:
    play(worlds(in_place_max=3, recorded=recorded), seed)
