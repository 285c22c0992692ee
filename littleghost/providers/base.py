"""The port to model services: what the engine asks and what it gets back.

An adapter is one class with a `stream` method; it knows a service's wire format and nothing
about runs, journals or queues. Retrying is the engine's business: an adapter makes one request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from littleghost.errors import CancelledError, ControlError, DeadlineExceededError
from littleghost.messages import Message
from littleghost.usage import Usage

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about one tool. JSON: `{"name", "description", "input_schema"}`."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model.

    Attributes:
        model: The service's own model id.
        messages: The whole conversation, a system message first when there is one.
        tools: The tools offered.
        settings: Sampling and other settings, such as `temperature` or `max_tokens`.
    """

    model: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """A model's complete answer.

    Attributes:
        message: The assistant message, tool calls included.
        finish: Why the model stopped: stop, tool_calls, length or content_filter.
        usage: Tokens, or None when the service did not say.
        model: The model that answered, as the service names it.
        id: The service's id of the answer.
    """

    message: Message
    finish: FinishReason
    usage: Usage | None = None
    model: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """One event of a streaming answer.

    Shape by `type`: message_start `{id, model}`; text_delta `{text}`; reasoning_delta `{text}`;
    tool_call_start `{index, id, name}`; tool_call_delta `{index, arguments}`;
    tool_call_stop `{index, tool_use}`; usage `{usage}`; message_stop `{}` with `response` set.
    Exactly one message_stop ends a good answer.
    """

    type: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    response: ModelResponse | None = None


class CallControl:
    """Lets another thread cut a running model request, and bounds it by the run's deadline.

    Thread-safe. An adapter wraps what blocks in `closing(close)`: the first `cut` calls `close`
    from the cutting thread, and must make the blocked read return or raise.
    """

    def __init__(self, deadline_s: float | None = None) -> None:
        """Start the clock.

        Args:
            deadline_s: Seconds from now until the run's deadline; None when it has none.
        """
        self._deadline = None if deadline_s is None else time.monotonic() + deadline_s
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []
        self._error: ControlError | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the request must stop."""
        return self._error is not None

    def remaining_s(self, limit_s: float | None = None) -> float | None:
        """Seconds left to the deadline, never below 0 and at most `limit_s`; None is no limit."""
        if self._deadline is None:
            return limit_s
        left = max(0.0, self._deadline - time.monotonic())
        return left if limit_s is None else min(left, limit_s)

    def cut(self, error: ControlError | None = None) -> None:
        """Stop the request now. Idempotent: the first error stays."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error or CancelledError("the run was cancelled")
            closers = list(self._closers)
        for close in closers:
            close()

    def check(self) -> None:
        """Go on only if the request may.

        Raises:
            CancelledError: It was cut.
            DeadlineExceededError: The deadline has passed.
        """
        if self._error is not None:
            raise self._error
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise DeadlineExceededError("the run's deadline has passed")

    @contextmanager
    def closing(self, close: Callable[[], None]) -> Generator[None]:
        """Have `close` called if the request is cut while the block runs."""
        with self._lock:
            self._closers.append(close)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._closers.remove(close)

    def wait(self, seconds: float) -> None:
        """Sleep unless the request is cut first.

        Raises:
            CancelledError: It was cut.
            DeadlineExceededError: The deadline came first.
        """
        woken = threading.Event()
        with self.closing(woken.set):
            left = self.remaining_s(seconds)
            woken.wait(left)
        self.check()


class Provider(Protocol):
    """A model service.

    `stream` makes exactly one request and yields its events in order. It raises a
    `ProviderError` for every failure of the service, and the control's own error when cut.
    """

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        """Ask the model and yield its answer as it comes."""
        ...

    def close(self) -> None:
        """Give back connections; called once when the process ends."""
        ...
