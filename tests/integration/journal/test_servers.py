"""A short round on every server that can be started here: Redis and Valkey, old and new."""

import pytest

from littleghost import wiring
from littleghost.providers.registry import Models
from littleghost.settings import Settings
from tests.support import cast
from tests.support.cast import Clerk
from tests.support.checks import check_documented, check_journal, check_nothing_left
from tests.support.redis_server import Server, all_binaries
from tests.support.scenarios import end_of
from tests.support.world import Fault, make_world

pytestmark = pytest.mark.redis


@pytest.mark.parametrize("kind", sorted(all_binaries()))
def test_runs_are_carried_on_this_server(kind: str, cast_models: Models) -> None:
    server = Server(all_binaries()[kind]).start()
    before = wiring._current
    settings = Settings(redis_url=server.url, partitions=2, in_place_max=2)
    world = make_world(server.client(), settings, cast_models)
    try:
        world.reset(
            {9: Fault.KILL_AFTER, 17: Fault.RESEND, 25: Fault.DROP, 33: Fault.FORGET_SCRIPTS}
        )
        texts = ("text", "parallel", "exclusive", "error", "retry 1", "slow")
        runs = [Clerk.enqueue(text, session_id="s") for text in texts]
        world.carry(*(run.id for run in runs))
        assert {end_of(world, run.id).status for run in runs} == {"completed"}
        check_journal(world.client, world.partitions)
        check_documented(world.client)
        check_nothing_left(world.client, world.partitions)
    finally:
        wiring._current = before
        cast.HOOKS.clear()
        for worker in (world.caller, *world.workers):
            worker.runtime.disconnect()
        server.stop()
