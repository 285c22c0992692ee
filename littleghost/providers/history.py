"""Makes a stored conversation fit to send: every tool call answered, every answer asked for.

Only the request is repaired; what is stored stays. A call may rightly have no result yet (its
worker died, its run was cancelled, it waits for a person), and services refuse such a history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from littleghost.messages import Message, ToolResult, ToolUse
from littleghost.providers.wire_text import clean_text

NO_RESULT = "No result: the call was not finished."


@dataclass(slots=True)
class AnsweredCall:
    """A tool call with its result.

    Attributes:
        use: The call.
        wire_id: Its id in the request; different from that of every other call in it.
        result: Its result; None when there is none.
    """

    use: ToolUse
    wire_id: str
    result: ToolResult | None = None

    @property
    def content(self) -> str:
        """The result's text, or a sentence that says that there is none."""
        return NO_RESULT if self.result is None else self.result.content


@dataclass(frozen=True, slots=True)
class HistoryTurn:
    """One message, with the calls it makes and their results; the results come right after it."""

    message: Message
    calls: tuple[AnsweredCall, ...] = ()


def answered_turns(messages: Sequence[Message]) -> list[HistoryTurn]:
    """Pair calls with results.

    Returns:
        The messages in order. Results are taken out of the messages they came in and stand with
        their calls; results that nothing asked for are left out; so are messages that are empty
        then. When an id is used again, results belong to the last turn that used it.
    """
    ids = _WireIds()
    waiting: dict[str, deque[AnsweredCall]] = {}
    turns: list[HistoryTurn] = []
    for message in messages:
        results = [block for block in message.content if isinstance(block, ToolResult)]
        for result in results:
            calls = waiting.get(result.tool_use_id)
            if calls:
                calls.popleft().result = result
        if results or message.role == "tool":
            message = _without_results(message)
        calls = [AnsweredCall(use, ids.take(use.id)) for use in message.tool_uses]
        if message.role != "assistant":
            calls = []
        for use_id in {call.use.id for call in calls}:
            waiting[use_id] = deque(call for call in calls if call.use.id == use_id)
        if message.content:
            turns.append(HistoryTurn(message, tuple(calls)))
    return turns


def call_ids(messages: Sequence[Message]) -> frozenset[str]:
    """Give the ids of all tool calls in a conversation."""
    return frozenset(use.id for message in messages for use in message.tool_uses)


def _without_results(message: Message) -> Message:
    # What a tool message holds beside results was asked for by nobody and is left out.
    kept = () if message.role == "tool" else message.content
    content = tuple(block for block in kept if not isinstance(block, ToolResult))
    return Message(message.role, content, message.metadata)


class _WireIds:
    """Keeps the ids of calls apart, the same way each time the history is sent."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        wanted = clean_text(wanted)
        stem = wanted or "call"
        wire_id, number = wanted, 1
        while not wire_id or wire_id in self._taken:
            number += 1
            wire_id = f"{stem}_{number}"
        self._taken.add(wire_id)
        return wire_id
