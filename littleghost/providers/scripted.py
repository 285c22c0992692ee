"""A provider that answers from a script: for tests, demonstrations and measuring.

A script picks its turn from the request alone, so a run goes on correctly when its process died,
when a turn is tried again, and when its turns are taken by different workers.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from littleghost.errors import InvalidRequestError
from littleghost.messages import Block, Message, Reasoning, Text, ToolResult, ToolUse
from littleghost.providers.base import (
    CallControl,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ModelResponse,
)
from littleghost.providers.wire_text import compact_json
from littleghost.usage import Usage

# Requests that are remembered for tests to look at.
_REMEMBERED = 100
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a scripted answer.

    Attributes:
        id: The call's id; None makes one from the turn, the same each time.
    """

    name: str
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One scripted answer.

    Attributes:
        text: What the model says.
        tool_calls: The tools it calls.
        usage: Tokens; None estimates one for four characters.
        finish: Why it stops; None is tool_calls with calls and stop without.
        delay_s: Seconds before the first event.
        chunk_chars: Characters in each text delta.
        chunk_delay_s: Seconds before each text delta.
        error: Raised instead of finishing.
        error_after_chars: Characters of text that are sent before the error.
        reasoning: What the model thinks, sent before the text.
    """

    text: str = ""
    tool_calls: Sequence[Call] = ()
    usage: Usage | None = None
    finish: FinishReason | None = None
    delay_s: float = 0
    chunk_chars: int = 12
    chunk_delay_s: float = 0
    error: Exception | None = None
    error_after_chars: int = 0
    reasoning: str = ""


Turn: TypeAlias = Reply | str
Script: TypeAlias = Callable[[ModelRequest], Turn] | Sequence[Turn]


class ScriptedProvider:
    """Answers from a list of turns, or from a function of the request.

    In a list, the turn is chosen by the number of assistant messages after the last user message
    (messages that hold only tool results are no user messages): the answer to a user's input is
    turn 0, the answer to the results of its calls is turn 1. A new user message starts again at 0.

    Attributes:
        requests: The last 100 requests of this process, the newest last.
    """

    def __init__(self, script: Script) -> None:
        """Take the script.

        Args:
            script: Turns, or a function that is given the request. Text alone is a `Reply`.
        """
        self._script = script
        self.requests: deque[ModelRequest] = deque(maxlen=_REMEMBERED)

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        """Give the scripted answer; every wait in it can be cut.

        Raises:
            InvalidRequestError: The list has no such turn.
            ControlError: The request was cut.
        """
        control.check()
        self.requests.append(request)
        turn, number = _position(request.messages)
        reply = self._choose(request, turn)
        if reply.delay_s:
            control.wait(reply.delay_s)
        if reply.error is not None and not reply.error_after_chars:
            raise copy.copy(reply.error)
        response_id = f"scripted_{number}"
        yield ModelEvent("message_start", {"id": response_id, "model": request.model})
        if reply.reasoning:
            yield ModelEvent("reasoning_delta", {"text": reply.reasoning})
        if reply.text:
            yield from _stream_text(reply, control)
        if reply.error is not None:
            raise copy.copy(reply.error)
        uses: list[ToolUse] = []
        for index, call in enumerate(reply.tool_calls):
            arguments = compact_json(call.input)
            use_id = call.id or f"call_{number}_{index}"
            use = ToolUse(use_id, call.name, call.input, arguments)
            uses.append(use)
            yield ModelEvent("tool_call_start", {"index": index, "id": use_id, "name": call.name})
            yield ModelEvent("tool_call_delta", {"index": index, "arguments": arguments})
            yield ModelEvent("tool_call_stop", {"index": index, "tool_use": use.to_json()})
        control.check()
        usage = reply.usage or _estimate(request.messages, reply, uses)
        yield ModelEvent("usage", {"usage": usage.to_json()})
        blocks: list[Block] = [*uses]
        if reply.text:
            blocks.insert(0, Text(reply.text))
        if reply.reasoning:
            blocks.insert(0, Reasoning(reply.reasoning))
        response = ModelResponse(
            message=Message("assistant", tuple(blocks)),
            finish=reply.finish or ("tool_calls" if uses else "stop"),
            usage=usage,
            model=request.model,
            id=response_id,
        )
        yield ModelEvent("message_stop", {}, response)

    def close(self) -> None:
        """Do nothing: there is nothing open."""

    def _choose(self, request: ModelRequest, turn: int) -> Reply:
        script = self._script
        if callable(script):
            chosen = script(request)
        elif turn < len(script):
            chosen = script[turn]
        else:
            raise InvalidRequestError(
                f"the script has {len(script)} turns and turn {turn} was asked for (turns are "
                "counted from the last user message): add a turn, or use a function"
            )
        return Reply(text=chosen) if isinstance(chosen, str) else chosen


def _position(messages: Sequence[Message]) -> tuple[int, int]:
    """Count assistant messages: since the last user message, and in all."""
    since = total = 0
    for message in messages:
        role = message.role
        if role == "assistant":
            since += 1
            total += 1
        elif role == "user" and not _is_tool_output(message):
            since = 0
    return since, total


def _is_tool_output(message: Message) -> bool:
    content = message.content
    return bool(content) and all(isinstance(block, ToolResult) for block in content)


def _stream_text(reply: Reply, control: CallControl) -> Iterator[ModelEvent]:
    text = reply.text if reply.error is None else reply.text[: reply.error_after_chars]
    size = max(1, reply.chunk_chars)
    for start in range(0, len(text), size):
        if reply.chunk_delay_s:
            control.wait(reply.chunk_delay_s)
        elif control.is_cut:
            control.check()
        yield ModelEvent("text_delta", {"text": text[start : start + size]})


def _estimate(messages: Sequence[Message], reply: Reply, uses: Sequence[ToolUse]) -> Usage:
    size = 0
    for message in messages:
        for block in message.content:
            if isinstance(block, Text):
                size += len(block.text)
            elif isinstance(block, ToolResult):
                size += len(block.content)
            elif isinstance(block, ToolUse):
                size += len(block.arguments or "")
    written = len(reply.text) + sum(len(use.arguments or "") for use in uses)
    return Usage(
        input=size // _CHARS_PER_TOKEN,
        output=written // _CHARS_PER_TOKEN,
        reasoning=len(reply.reasoning) // _CHARS_PER_TOKEN,
    )
