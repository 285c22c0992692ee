"""A worker dies when it has sent some of a fan-out's messages: `queue-fanout-interrupted`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from littleghost import Workflow
from tests.support.cast import Clerk
from tests.support.reading import runs_of
from tests.support.scenarios import end_of
from tests.support.world import World

pytestmark = pytest.mark.redis
CASE = json.loads(
    (Path(__file__).parents[2] / "cases" / "queue-fanout-interrupted.json").read_text()
)["input"]


class FiveWorkflow(Workflow):
    """Asks as many at once as the case says."""

    def perform(self) -> Any:
        asked = [self.invoke(Clerk, input=f"say {n}") for n in range(CASE["fanout"])]
        return {"said": self.parallel(*asked)}


def test_the_messages_that_were_not_sent_come_later_and_nothing_runs_twice(
    worlds: Callable[..., World],
) -> None:
    world = worlds(recorded=True, in_place_max=1)
    assert world.broker is not None
    run_id = FiveWorkflow.enqueue("go").id
    world.carry(run_id, until=lambda: sum(world.waiting().values()) == CASE["fanout"])
    [queue] = [name for name, count in world.waiting().items() if count]
    del world.broker.queues[queue][CASE["kill_after_sent"] :]
    for worker in world.workers[:1]:
        worker.kill(world.client)

    world.carry(*runs_of(world))

    end = end_of(world, run_id)
    assert end.response == '{"said":["0","1","2","3","4"]}'
    assert end.events["assembly_step_start"] == end.events["assembly_step_stop"] == CASE["fanout"]
    result = world.run(run_id).result
    assert result is not None
    assert [len(step.attempts) for step in result.steps] == [1] * CASE["fanout"]
    assert end.usage["input"] == 10 * CASE["fanout"]
