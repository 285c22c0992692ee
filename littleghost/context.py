"""What surrounds one tool call: the run it belongs to, its state, its time limit.

These are collaborators, never the model's arguments. A binding is made anew for every call, in
whichever process the call runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from littleghost.frozen_json import FrozenDict
from littleghost.providers.base import CallControl
from littleghost.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What all tools of one participant share during a run.

    Attributes:
        state: Working state, seen and changed by every tool of the participant. It may hold values
            restored from a session: check them again before trusting them.
        metadata: What the caller attached to the run; read-only.
        control: The run's cancellation and deadline.
    """

    state: State = field(default_factory=State)
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    control: CallControl = field(default_factory=CallControl)

    def remaining_s(self, limit_s: float | None = None) -> float | None:
        """Give the seconds left to the run's deadline.

        Args:
            limit_s: Never answer more than this, as for a timeout of one's own.

        Returns:
            0 or more; None when neither a deadline nor a limit exists.
        """
        return self.control.remaining_s(limit_s)

    def check(self) -> None:
        """Go on only if the run may; call it in long loops.

        Raises:
            CancelledError: The run was cancelled.
            DeadlineExceededError: Its deadline has passed.
        """
        self.control.check()


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The collaborators of one tool call.

    Attributes:
        agent: The agent whose model asked, or None outside of a run.
        run: The run, or None outside of one.
        invocation: The caller's request: `context` and `actor_id` are what to authorise by.
        state: The tool's own working state, one mapping per tool and participant.
        idempotency_key: The same text on every attempt at this call; empty outside of a run.
        control: The run's cancellation and deadline.
        context: What the participant's tools share; made to fit when it is not given.
    """

    agent: Any = None
    run: Any = None
    invocation: Any = None
    state: State = field(default_factory=State)
    idempotency_key: str = ""
    control: CallControl = field(default_factory=CallControl)
    context: RunContext = field(default=None)  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        if self.context is None:  # pyright: ignore[reportUnnecessaryComparison]
            object.__setattr__(self, "context", RunContext(control=self.control))

    def with_(self, **changes: Any) -> Binding:
        """Give a copy with other collaborators.

        Args:
            changes: Attributes by name. A new `control` also becomes that of the context.

        Raises:
            TypeError: There is no such attribute.
        """
        if "control" in changes and "context" not in changes:
            changes["context"] = replace(self.context, control=changes["control"])
        return replace(self, **changes)

    def build(self, *declarations: Any) -> tuple[Any, ...]:
        """Make tools that are bound to this; the caller closes them.

        Args:
            declarations: Tool classes or functions decorated with `@tool`.

        Returns:
            One instance for each, in order. If one cannot be made, those made before are closed.
        """
        built: list[Any] = []
        try:
            for declaration in declarations:
                # A decorated function holds its class; a class is one.
                tool_class = getattr(declaration, "tool_class", declaration)
                built.append(tool_class(self))
        except BaseException:
            for tool in reversed(built):
                # The constructor's error says more than what follows from it.
                with suppress(Exception):
                    tool.close()
            raise
        return tuple(built)
