"""Calls that are the work of an agent's subagents: they ask the coordinator and wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from littleghost.engine.commands import (
    Command,
    Emit,
    Note,
    Park,
    ParticipantSpec,
    Post,
    Start,
    TaskSpec,
)
from littleghost.engine.opening import advance_id
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.subagent_state import DURABLE, PROGRESS, scope_of
from littleghost.engine.view import CONTEXT_STATE, state_of
from littleghost.json_values import dumps
from littleghost.messages import ToolUse
from littleghost.registry import name_of

# The coordinator's number among its agent's children: behind every call of the agent's first turn.
COORDINATOR = 9_999
TURNS = "turns"


def request(
    lease: Lease, env: Collaborators, use: ToolUse, verb: str, fields: Mapping[str, Any]
) -> list[Command]:
    """Ask the coordinator, which is started with the first request, and wait for its answer.

    Args:
        verb: spawn, send, ask, interject, wait or list.
        fields: What the verb needs.
    """
    coordinator = f"{lease.participant}.{COORDINATOR}"
    asked = {
        "do": verb,
        "call": lease.task_id,
        "use": use.id,
        "tool": use.name,
        "context": state_of(lease, CONTEXT_STATE).to_json(),
        **fields,
    }
    participant = ParticipantSpec(
        id=coordinator,
        assembly=lease.assembly,
        kind="subagents",
        label=f"{lease.header['n']}/subagents",
        state={},
        parent=lease.participant,
        settings=lease.header.get("set"),
        path=tuple(lease.header.get("path", ())),
        grants=lease.header.get("gr"),
        in_run=scope_of({"gr": lease.header.get("gr"), "up": lease.participant}) != DURABLE,
        once=True,
    )
    task = TaskSpec(
        id=advance_id(coordinator),
        kind="advance",
        participant=coordinator,
        queue=env.queue(TURNS, lease.lane),
        waits=True,
        once=True,
    )
    return [
        Start(participants=[participant], tasks=[task]),
        Post(coordinator, dumps({"q": asked})),
        Park(),
    ]


def control_fields(verb: str, given: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Give what a control tool's input asks for, in the coordinator's terms."""
    declared = {
        kind: {"assembly": name_of(item.agent), "persist": item.persist}
        for kind, item in kinds.items()
    }
    if verb == "send":
        # The subagent may be of an earlier run, which had other kinds.
        return {**given, "kinds": declared}
    if verb != "spawn":
        return dict(given)
    return {
        "kind": given["kind"],
        "task_name": given["task_name"],
        "message": given["task"],
        "mode": given["mode"],
        **declared[given["kind"]],
    }


def told_by_turn(lease: Lease, turn: int, text: str) -> list[Command]:
    """Note how far a subagent is, for whoever asks its coordinator."""
    mine = _subagent(lease.header)
    if mine is None or not text.strip():
        return []
    said = {"turn": mine["turn"], "sequence": turn + 1, "message": text[:4_096]}
    return [
        Note(str(lease.header["up"]), PROGRESS + str(mine["key"]), said),
        _event(mine, "activity"),
    ]


def told_by_call(
    header: Mapping[str, Any], use_id: str, name: str, event: str, agent: str | None = None
) -> list[Command]:
    """Tell that a subagent's tool started or finished.

    Args:
        header: The subagent's header.
        agent: The subagent's participant, if another one tells it.
    """
    mine = _subagent(header)
    if mine is None:
        return []
    return [_event(mine, event, agent, tool_call_id=use_id, tool_name=name)]


def _subagent(header: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return (header.get("gr") or {}).get("subagent")


def _event(mine: Mapping[str, Any], event: str, agent: str | None = None, **more: Any) -> Command:
    data = {
        "event": event,
        "subagent_id": mine["id"],
        "kind": mine["kind"],
        "conversation_id": mine["key"],
        "status": "running",
        "turn": mine["turn"],
        **more,
    }
    return Emit("subagent", data, participant=agent)
