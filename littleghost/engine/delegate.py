"""A tool call that is another assembly's work: it starts a participant and waits without a slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from littleghost.engine.commands import Command, Join, Park, Start
from littleghost.engine.decide.graph_state import text_of
from littleghost.engine.opening import open_child
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.view import CONTEXT_STATE, state_of
from littleghost.failure import Failure
from littleghost.messages import ToolUse, user

# A participant's calls are numbered by turn and place, so that the child's number is its call's.
_CALLS_PER_TURN = 10_000


def start_child(lease: Lease, env: Collaborators, assembly: Any, use: ToolUse) -> list[Command]:
    """Start the participant that does the work, and let the call wait for it.

    The child gets a copy of the caller's shared state as its context, and its own conversation.

    Args:
        assembly: The registered class.
        use: The model's request; its input has been checked.
    """
    turn, _, place = lease.task_id.partition("-c")[2].partition(".")
    number = int(turn) * _CALLS_PER_TURN + int(place)
    inside = {
        "assembly_id": use.name,
        "assembly_kind": "tool",
        "participant": use.name,
        "step_id": lease.task_id,
        "branch_id": None,
    }
    child = f"{lease.participant}.{number}"
    child, events, start = open_child(
        lease,
        env,
        assembly,
        number,
        messages=[user(str(use.input["input"]))],
        context=state_of(lease, CONTEXT_STATE).to_json(),
        join=child,
        path=(*lease.header.get("path", ()), inside),
    )
    join = Join(
        id=child,
        participant=lease.participant,
        members=(child,),
        width=1,
        then=lease.task_id,
        keeps=True,
    )
    return [*events, start, Start(joins=[join]), Park(child)]


def answer_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """Give text and status of the tool result that a child's end makes.

    Args:
        record: `{r: result}` or `{x: error}`, as the child left it.
    """
    if "r" in record:
        return text_of(record["r"].get("output", "")), "success"
    return f"Tool failed ({Failure.from_json(record['x']).type})", "error"
