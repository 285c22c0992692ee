"""One advance: a coordinator looks at what its children did and decides what is next.

An agent needs none: its joins start the next turn themselves. Every other kind of assembly decides
in an advance, with the results of its children in its list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from littleghost.engine.commands import Command, Complete, Emit, Fail
from littleghost.engine.opening import ROOT
from littleghost.engine.ports import Collaborators, Lease
from littleghost.errors import DefinitionError

# (the participant's lease, its class, all that starting children needs) → what is next.
Decider: TypeAlias = Callable[[Lease, Any, Collaborators], Sequence[Command]]

_deciders: dict[str, Decider] = {}


def register_decider(kind: str, decider: Decider) -> None:
    """Say who decides for a kind of assembly."""
    _deciders[kind] = decider


def perform(lease: Lease, env: Collaborators) -> list[Command]:
    """Let the participant's kind decide.

    Raises:
        DefinitionError: This worker knows no decider for the kind.
    """
    decider = _deciders.get(lease.participant_kind)
    if decider is None:
        raise DefinitionError(
            f"assembly {lease.assembly!r} is of the kind {lease.participant_kind!r}, which this "
            f"worker cannot advance; it knows {', '.join(sorted(_deciders)) or 'none'}"
        )
    commands = decider(lease, env.assemblies.lookup(lease.assembly), env)
    return list(commands) if lease.participant != ROOT else list(_told(commands))


def _told(commands: Sequence[Command]) -> Iterator[Command]:
    """Tell of the end of a run's root, as an agent's turn does of its own."""
    for command in commands:
        if isinstance(command, Complete):
            yield Emit("invocation_stop", record=command.result.get("message"))
        elif isinstance(command, Fail):
            yield Emit("invocation_error")
        yield command
