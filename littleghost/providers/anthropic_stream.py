"""Turns the events of an Anthropic answer into model events and one response.

Pure: fed with the data of server-sent events. An answer counts only when its message_stop has
come; anything else is an error, never a shorter answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from littleghost.errors import StreamError
from littleghost.messages import Message, ToolUse
from littleghost.providers.answer_frame import AnswerFrame
from littleghost.providers.answer_reader import chunk_of
from littleghost.providers.anthropic_blocks import BlockAssembler
from littleghost.providers.anthropic_usage import UsageCounts
from littleghost.providers.base import FinishReason, ModelEvent
from littleghost.providers.failures import failure_of_object
from littleghost.providers.openai_delta import text_of
from littleghost.providers.tool_names import WireNames

_LENGTH = frozenset({"max_tokens", "model_context_window_exceeded"})


class MessageStream:
    """Collects one answer.

    Attributes:
        is_done: Whether the service said that nothing more comes.
    """

    def __init__(
        self,
        *,
        who: str = "the model service",
        names: WireNames | None = None,
        taken_ids: Collection[str] = (),
        origin: str = "",
    ) -> None:
        """Start before the first event.

        Args:
            who: The service, for messages.
            names: The names of the tools that were offered.
            taken_ids: Ids of earlier calls; new calls get other ones.
            origin: Whom the reasoning belongs to.
        """
        self.is_done = False
        self._who = who
        self._frame = AnswerFrame()
        self._stop = ""
        self._counts = UsageCounts()
        self._blocks = BlockAssembler(names or WireNames(), taken_ids, origin)

    def feed(self, data: str, event: str = "message") -> list[ModelEvent]:
        """Take the data of one server-sent event and give the model events it causes.

        Args:
            data: JSON text, or nothing.
            event: The event's name; the data's own type counts more.

        Raises:
            ProviderError: The event reports an error.
            StreamError: The event cannot be read.
        """
        data = data.strip()
        if not data or self.is_done:
            return []
        if event == "error" and not data.startswith("{"):
            raise failure_of_object(self._who, data)
        chunk = chunk_of(self._who, data)
        kind = text_of(chunk.get("type")) or event
        if "error" in (kind, event) or chunk.get("error"):
            raise failure_of_object(self._who, chunk)
        return self._take(kind, chunk)

    def feed_whole(self, body: bytes) -> list[ModelEvent]:
        """Take a whole answer that was sent as one JSON object instead of a stream.

        Raises:
            ProviderError: It reports an error.
            StreamError: It is not an answer.
        """
        chunk = chunk_of(self._who, body.decode("utf-8", "replace"))
        if chunk.get("type") == "error" or chunk.get("error"):
            raise failure_of_object(self._who, chunk)
        content = chunk.get("content")
        if not isinstance(content, list):
            return []
        events = self._begin(chunk)
        for index, item in enumerate(cast("list[object]", content)):
            events += self._blocks.start(index, _object(item))
            events += self._blocks.stop(index)
        self._stop = text_of(chunk.get("stop_reason"))
        self.is_done = True
        return events

    def finish(self) -> list[ModelEvent]:
        """Close the answer at the clean end of the stream.

        Returns:
            The last events; message_stop carries the response.

        Raises:
            StreamError: The answer is not complete.
        """
        blocks, events = self._blocks.finish()
        if not self.is_done or not (self._stop or blocks):
            raise StreamError(f"the answer of {self._who} ended before it was complete")
        usage = self._counts.usage
        reason = self._reason(any(isinstance(block, ToolUse) for block in blocks))
        return [*events, *self._frame.stop(Message("assistant", tuple(blocks)), reason, usage)]

    def _take(self, kind: str, chunk: Mapping[str, Any]) -> list[ModelEvent]:
        index = chunk.get("index")
        match kind:
            case "message_start":
                return self._begin(_object(chunk.get("message")))
            case "content_block_start":
                return self._blocks.start(index, _object(chunk.get("content_block")))
            case "content_block_delta":
                return self._blocks.add(index, _object(chunk.get("delta")))
            case "content_block_stop":
                return self._blocks.stop(index)
            case "message_delta":
                self._counts.take(chunk.get("usage"))
                delta = _object(chunk.get("delta"))
                self._stop = text_of(delta.get("stop_reason")) or self._stop
            case "message_stop":
                self.is_done = True
            case _:
                # Pings, and kinds that are yet to come.
                pass
        return []

    def _begin(self, message: Mapping[str, Any]) -> list[ModelEvent]:
        self._counts.take(message.get("usage"))
        if not self._frame.has_started:
            self._frame.id = text_of(message.get("id"))
            self._frame.model = text_of(message.get("model"))
        return self._frame.start()

    def _reason(self, has_calls: bool) -> FinishReason:
        # A complete call decides, not the label; only a cut or a refusal has a veto.
        if self._stop in _LENGTH:
            return "length"
        if self._stop == "refusal":
            return "content_filter"
        return "tool_calls" if has_calls else "stop"


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
