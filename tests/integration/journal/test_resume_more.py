"""Break off runs with subagents, approvals and signals, and require that a retry ends the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from littleghost import Subagent
from littleghost.engine.subagent_state import ROOT_PATH
from littleghost.providers.scripted import Call, Reply
from littleghost.run import Run
from tests.support import cast
from tests.support.resuming import break_everywhere, cancelling
from tests.support.scenarios import enqueue
from tests.support.world import World

pytestmark = pytest.mark.redis

cast.SCRIPTS["crew"] = [
    Reply(
        tool_calls=[
            Call("spawn_subagent",
                 {"kind": "clerk", "task_name": "one", "task": "parallel", "mode": "async"}),
            Call("spawn_subagent",
                 {"kind": "clerk", "task_name": "two", "task": "text", "mode": "sync"}),
            Call("fetch", {"n": 5}),
        ],
        usage=cast.USAGE,
    ),
    Reply(
        tool_calls=[
            Call("wait_for_subagents", {}),
            Call("send_message_to_subagent",
                 {"subagent_id": f"{ROOT_PATH}/two", "message": "say more", "mode": "sync"}),
        ],
        usage=cast.USAGE,
    ),
    Reply(text="The crew is done.", usage=cast.USAGE),
]  # fmt: skip


class Captain(cast.Scripted):
    """Has subagents do the work."""

    tools = (cast.Fetch,)
    subagents = (Subagent(cast.Clerk, kind="clerk"),)


def test_subagents_go_on_with_their_agent(worlds: Callable[..., World]) -> None:
    world = worlds(in_place_max=1)
    count, _ = break_everywhere(world, lambda: enqueue(world, "crew", assembly=Captain), cancelling)
    assert count > 20


def test_a_question_is_asked_again(worlds: Callable[..., World]) -> None:
    world = worlds(in_place_max=1)

    def begin() -> str:
        run_id = enqueue(world, "approvals")

        def answer() -> bool:
            for name, _ in world.caller.runtime.records.recent(5):
                run = Run.get(name)
                for item in run.pending if not run.is_finished else ():
                    run.approve(item.id, by="ana")
                    return True
            return False

        world.when_idle = answer
        return run_id

    count, _ = break_everywhere(world, begin, cancelling)
    assert count > 10
