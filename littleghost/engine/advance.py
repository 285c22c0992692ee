"""One advance: a coordinator looks at what its children did and decides what is next.

An agent needs none: its joins start the next turn themselves. Every other kind of assembly decides
in an advance, with the results of its children in its list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from littleghost.engine.commands import Command
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
    return list(decider(lease, env.assemblies.lookup(lease.assembly), env))
