"""What code of the application sees of the run it works for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from littleghost.invocation import Invocation

if TYPE_CHECKING:
    from littleghost.engine.ports import Lease


@dataclass(frozen=True, slots=True)
class RunView:
    """The run a tool or an agent's method works for.

    Attributes:
        id: The run's id.
        invocation: What the caller asked for.
        assembly: The registered name of the run's assembly.
    """

    id: str
    invocation: Invocation
    assembly: str

    @property
    def session_id(self) -> str:
        """The session the run belongs to."""
        return self.invocation.session_id

    @property
    def actor_id(self) -> str | None:
        """Who asked."""
        return self.invocation.actor_id


def view_of(lease: Lease) -> RunView:
    """Make the view that a task's code gets; the invocation is read once per run and process."""
    if lease.memory.parsed is None:
        lease.memory.parsed = Invocation.from_json(lease.memory.invocation)
    return RunView(lease.run_id, lease.memory.parsed, lease.root_assembly)
