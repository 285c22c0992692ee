"""What a completed run gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from littleghost.messages import Message
from littleghost.trajectory import Step, Trajectory
from littleghost.usage import Usage


def _no_messages() -> Sequence[Message]:
    return ()


def _no_steps() -> Sequence[Step]:
    return ()


def _no_state() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a completed run.

    Attributes:
        message: The final assistant message.
        stop_reason: Why the last turn ended.
        usage: Tokens of the whole run.
        value: The result value, when the result is more than text.
    """

    message: Message
    stop_reason: str
    usage: Usage
    value: Any = None
    load_messages: Callable[[], Sequence[Message]] = field(default=_no_messages, repr=False)
    load_steps: Callable[[], Sequence[Step]] = field(default=_no_steps, repr=False)
    load_state: Callable[[], Mapping[str, Any]] = field(default=_no_state, repr=False)

    @property
    def text(self) -> str:
        """The text of the final message."""
        return self.message.text

    @property
    def output(self) -> Any:
        """The result value, or the final message's text."""
        return self.text if self.value is None else self.value

    @property
    def messages(self) -> Sequence[Message]:
        """The complete conversation, read from the journal when asked for."""
        return self.load_messages()

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of a composite, in order of start; an agent has none."""
        return self.load_steps()

    @property
    def trajectory(self) -> Trajectory:
        """The steps and how they followed each other."""
        return Trajectory(self.steps)

    @property
    def state(self) -> Mapping[str, Any]:
        """The working state as the run left it, read from the journal when asked for."""
        return self.load_state()
