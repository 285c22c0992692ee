"""A composite of the tests' own: several children at once, and an answer made of theirs.

It is no part of the library; it shows that the engine carries participants of any kind.
"""

from __future__ import annotations

from typing import Any

from littleghost import registry
from littleghost.assembly import Assembly
from littleghost.engine.advance import register_decider
from littleghost.engine.commands import (
    Append,
    CancelParticipants,
    Command,
    Complete,
    Emit,
    Join,
    SetState,
    SetText,
    Start,
)
from littleghost.engine.decide.agent import fail, record_of
from littleghost.engine.opening import advance_id, open_child
from littleghost.engine.ports import Collaborators, Lease
from littleghost.errors import AssemblyLimitError
from littleghost.messages import Message, assistant, user
from tests.support.cast import Clerk


class Team(Assembly):
    """`team WIDTH mode: text; text; …` asks a clerk each text; `team …` asks another team.

    Mode `all` waits for everybody, `first` gives up when one fails.
    """

    kind = "team"


def _start(lease: Lease, env: Collaborators, text: str) -> list[Command]:
    head, _, tail = text.partition(": ")
    _, width, mode = head.split()
    tasks = [part.strip() for part in tail.split(";")]
    join_id = f"{lease.participant}-join"
    events: list[Command] = []
    starts: list[Command] = []
    members: list[str] = []
    for number, task in enumerate(tasks):
        nested = task.startswith("[")
        child, told, start = open_child(
            lease,
            env,
            registry.lookup(registry.name_of(Team if nested else Clerk)),
            number,
            messages=[user(task.strip("[]").replace(",", ";"))],
            context={"for": task[:20]},
            join=join_id,
            gate=join_id,
        )
        members.append(child)
        events += told
        starts.append(start)
    join = Join(
        id=join_id,
        participant=lease.participant,
        members=tuple(members),
        width=int(width),
        then=advance_id(lease.participant),
        fail_fast=mode == "first",
    )
    merged = Start(
        participants=[item for start in starts for item in start.participants],  # type: ignore[union-attr]
        tasks=[item for start in starts for item in start.tasks],  # type: ignore[union-attr]
        joins=[join],
    )
    return [SetState({"members": members}), merged, *events]


def decide(lease: Lease, _assembly: Any, env: Collaborators) -> list[Command]:
    """Start the children once; then answer with what they said."""
    members = lease.state.get("members")
    if members is None:
        question = next(item for item in reversed(lease.records) if isinstance(item, Message))
        return _start(lease, env, question.text)
    ended = {item["p"]: item for item in lease.records if isinstance(item, dict) and "p" in item}
    failed = [name for name in members if "x" in ended.get(name, {})]
    waiting = [name for name in members if name not in ended]
    if waiting and not failed:
        return []
    if len(failed) == len(members):
        return fail(AssemblyLimitError("nobody answered"))
    said = [ended[name]["r"]["output"] if name in ended and "r" in ended[name] else "-"
            for name in members]  # fmt: skip
    message = assistant(" | ".join(said))
    result = {
        "stop_reason": "end_turn",
        "participant": lease.participant,
        "message": len(lease.records),
        "output": message.text,
    }
    return [
        *([CancelParticipants(tuple(waiting))] if waiting else []),
        Append((record_of(message),), (message,)),
        SetText(message.text),
        Emit("team_done", {"failed": len(failed)}),
        Complete(result, say=record_of(message)),
    ]


register_decider("team", decide)
