"""A task that is handed over while Redis is away is given back as soon as Redis answers (P5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from littleghost.errors import HandOverError, JournalUnavailableError
from tests.support import cast
from tests.support.cast import Clerk
from tests.support.checks import check_journal
from tests.support.scenarios import end_of
from tests.support.world import World

pytestmark = pytest.mark.redis


class NoRelease:
    """A tap behind which nothing can be given back while Redis is away."""

    def __init__(self) -> None:
        self.is_away = True

    def operate(self, who: str, name: str, work: Callable[[], Any]) -> Any:
        if self.is_away and name == "release":
            raise JournalUnavailableError("Redis is away")
        return work()


def test_what_cannot_be_handed_over_is_given_back_later(world: World) -> None:
    tap = NoRelease()
    worker = world.workers[0]
    run = Clerk.enqueue("text")
    message = world.pop()
    assert message is not None
    worker.tap = tap

    def hand_over(place: str) -> None:
        cast.HOOKS.remove(hand_over)
        raise HandOverError("this worker is stopping")

    cast.HOOKS.append(hand_over)
    with pytest.raises(JournalUnavailableError):
        world.perform(message, worker)
    [task] = run.refresh().record.tasks.values()
    assert task["s"] == "leased"

    tap.is_away = False
    worker.runtime.running._give_back_abandoned()

    world.carry(run.id)
    assert end_of(world, run.id).status == "completed"
    check_journal(world.client, world.partitions)
