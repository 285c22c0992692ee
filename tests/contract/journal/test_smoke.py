from tests.support.cast import Clerk, EFFECTS
from tests.support.checks import *
import pytest
@pytest.mark.parametrize("text", ["text", "parallel", "exclusive", "error", "retry 1", "long", "slow"])
def test_smoke(worlds, text):
  for opts in ({"chain":1}, {"chain":16}, {"recorded":True}):
    world=worlds(**opts)
    run = Clerk.enqueue(text)
    world.carry(run.id)
    run.refresh()
    print(run.status, run.response, run.usage, run.error, EFFECTS, len(world.operations))
    for e in run.events(): print(e.id, e.inner_type, str(e.data)[:150]) if 0 else None
    check_journal(world.client, 2); check_documented(world.client)
    check_nothing_left(world.client, 2)
