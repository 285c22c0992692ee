"""The children of a workflow as its code sees them: asked for, read when needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from littleghost.engine.replay import error_of
from littleghost.engine.replay_steps import MANY_TEXTS, SHORT_TEXT, Ended, StepRequest
from littleghost.errors import InvocationError, ProtocolError
from littleghost.invocation import clean_message, read_message
from littleghost.json_values import dumps
from littleghost.messages import Message


class Owner(Protocol):
    """The workflow that a child belongs to."""

    def await_step(self, invoked: Invoked) -> Ended:
        """Give how the child ended; starts it when nobody has yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a child of a workflow gave back.

    Attributes:
        output: The answer's text, or the result value.
        stop_reason: Why its last turn ended.
    """

    output: Any
    stop_reason: str

    @property
    def text(self) -> str:
        """The answer as text."""
        return self.output if isinstance(self.output, str) else dumps(self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """How one of several children ended.

    Attributes:
        output: Its output, or None when it failed.
        error: The error it failed with, or None.
    """

    output: Any = None
    error: Exception | None = None


class Invoked:
    """A child of a workflow, which starts when its output is first read or when it is returned."""

    def __init__(self, owner: Owner, request: StepRequest) -> None:
        self.owner = owner
        self.request = request
        self.ended: Ended | None = None

    def __repr__(self) -> str:
        return f"<Invoked {self.request.name}>"

    @property
    def output(self) -> Any:
        """The answer's text, or the result value.

        Raises:
            LittleGhostError: The child failed, with an error of `littleghost.errors`.
            StepFailedError: It failed with an error of the application's own.
        """
        return self.result.output

    @property
    def result(self) -> StepResult:
        """What the child gave back; errors as for `output`."""
        ended = self.owner.await_step(self)
        if ended.failure is not None:
            raise error_of(ended.failure)
        result = ended.result or {}
        if "output" not in result:
            raise ProtocolError(f"step {self.request.name!r} ended without a result")
        return StepResult(output=result["output"], stop_reason=str(result.get("stop_reason", "")))


def settled(item: Invoked) -> Settled:
    """Tell how a child ended, whichever way."""
    try:
        return Settled(output=item.output)
    except Exception as error:  # noqa: BLE001 - told instead of raised
        return Settled(error=error)


def read_input(value: object) -> Message:
    """Read what a child is asked; short texts are remembered, as each advance reads them again."""
    if type(value) is str and len(value) <= SHORT_TEXT:
        return _read_text(value)
    return read_message(value)


@lru_cache(maxsize=MANY_TEXTS)
def _read_text(text: str) -> Message:
    return read_message(text)


def read_history(value: Iterable[object]) -> tuple[Message, ...]:
    """Read the messages before it."""
    if isinstance(value, str | bytes | Mapping):
        raise InvocationError("history must be a list of messages", field="history")
    return tuple(clean_message(Message.from_json(item), "history") for item in value)
