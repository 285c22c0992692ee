"""What code of the application sees of the run it works for."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from littleghost.context import Binding, RunContext
from littleghost.errors import CleanupError
from littleghost.invocation import Invocation
from littleghost.state import State

if TYPE_CHECKING:
    from littleghost.engine.ports import Lease, RunningAgent
    from littleghost.providers.base import CallControl
    from littleghost.toolset import Toolset

# Where a participant's working state keeps what all its tools share, and what one tool keeps.
CONTEXT_STATE, TOOL_STATE = "c/", "t/"


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
    invocation = lease.memory.parsed
    narrowed = lease.header.get("cx")
    if narrowed is not None:
        # What a composite does not pass on, its participants' code must not see.
        invocation = replace(invocation, context=MappingProxyType(narrowed))
    return RunView(lease.run_id, invocation, lease.root_assembly)


def binding_of(lease: Lease, control: CallControl) -> Binding:
    """Make the binding of a task's code: the run, and the state that its tools share."""
    view = view_of(lease)
    shared = state_of(lease, CONTEXT_STATE)
    context = RunContext(state=shared, metadata=view.invocation.metadata, control=control)
    return Binding(run=view, invocation=view.invocation, context=context, control=control)


def state_of(lease: Lease, prefix: str) -> State:
    """Give the part of the participant's working state whose keys begin with a prefix."""
    return State(
        {
            key.removeprefix(prefix): json.loads(value)
            for key, value in lease.working.items()
            if key.startswith(prefix)
        }
    )


@contextmanager
def opened_tools(agent: RunningAgent) -> Generator[Toolset]:
    """Open an agent's tools for one task, and close what was opened.

    Raises:
        CleanupError: Something could not be closed; it replaces whatever went wrong before.
    """
    toolset = agent.toolset()
    try:
        yield toolset
    finally:
        try:
            toolset.close()
        except Exception as error:
            raise CleanupError(f"a tool could not be closed: {type(error).__name__}") from error
