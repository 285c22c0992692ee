"""Turns the chunks of a Gemini answer into model events and one response.

Pure: fed with the data of server-sent events. An answer counts only when the service gave the
reason of its end; anything else is an error, never a shorter answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from littleghost.errors import (
    InvalidRequestError,
    MalformedToolCallError,
    ProviderError,
    StreamError,
)
from littleghost.messages import Message, ToolUse
from littleghost.providers.answer_frame import AnswerFrame
from littleghost.providers.answer_reader import chunk_of
from littleghost.providers.base import FinishReason, ModelEvent
from littleghost.providers.failures import failure_of_object
from littleghost.providers.gemini_parts import GeminiParts
from littleghost.providers.gemini_usage import read_usage
from littleghost.providers.openai_delta import text_of
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import clean_text

_LENGTH = "MAX_TOKENS"
# Reasons that say that the model's output itself was no answer; asking again mostly helps.
_MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
_BROKEN = frozenset(
    {"MALFORMED_RESPONSE", "OTHER", "FINISH_REASON_UNSPECIFIED", "NO_IMAGE", "IMAGE_OTHER"}
)
_FILTER = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)


class GeminiStream:
    """Collects one answer.

    Attributes:
        is_done: Whether the service said why the answer ended.
    """

    def __init__(
        self,
        *,
        who: str = "the model service",
        names: WireNames | None = None,
        taken_ids: Collection[str] = (),
        origin: str = "",
    ) -> None:
        """Start before the first chunk.

        Args:
            who: The service, for messages.
            names: The names of the tools that were offered.
            taken_ids: Ids of earlier calls; new calls get other ones.
            origin: Whom signatures belong to.
        """
        self.is_done = False
        self._who = who
        self._frame = AnswerFrame()
        self._finish = ""
        self._told = ""
        self._usage: dict[str, Any] = {}
        self._parts = GeminiParts(names or WireNames(), taken_ids, origin)

    def feed(self, data: str, event: str = "message") -> list[ModelEvent]:
        """Take the data of one server-sent event and give the model events it causes.

        Args:
            data: JSON text, or nothing.
            event: The event's name; Gemini gives none.

        Raises:
            ProviderError: The chunk reports an error.
            StreamError: The chunk cannot be read.
        """
        data = data.strip()
        if not data or data == "[DONE]":
            return []
        if event == "error" and not data.startswith("{"):
            raise failure_of_object(self._who, data)
        return self._take(chunk_of(self._who, data))

    def feed_whole(self, body: bytes) -> list[ModelEvent]:
        """Take an answer that was sent as one JSON object, or as one list of chunks.

        Raises:
            ProviderError: It reports an error.
            StreamError: It is not an answer.
        """
        text = body.decode("utf-8", "replace")
        if not text.lstrip().startswith("["):
            return self._take(chunk_of(self._who, text))
        # The form of a stream that was not asked for as events.
        chunks = chunk_of(self._who, f'{{"chunks": {text}}}')["chunks"]
        events: list[ModelEvent] = []
        for chunk in chunks:
            if not isinstance(chunk, Mapping):
                raise StreamError(f"{self._who} sent a chunk that is not an object")
            events.extend(self._take(cast("Mapping[str, Any]", chunk)))
        return events

    def finish(self) -> list[ModelEvent]:
        """Close the answer at the clean end of the stream.

        Returns:
            The last events; message_stop carries the response.

        Raises:
            StreamError: The answer is not complete.
            ProviderError: The service gave up on it.
        """
        if not self.is_done:
            raise StreamError(f"the answer of {self._who} ended before it was complete")
        blocks, events = self._parts.finish()
        has_calls = any(isinstance(block, ToolUse) for block in blocks)
        reason = self._reason(has_calls, bool(blocks))
        usage = read_usage(self._usage)
        return [*events, *self._frame.stop(Message("assistant", tuple(blocks)), reason, usage)]

    def _reason(self, has_calls: bool, has_content: bool) -> FinishReason:
        word = self._finish
        told = f"{word}: {self._told}" if self._told else word
        if word == _LENGTH:
            return "length"
        if word in _FILTER:
            return "content_filter"
        if word == "MISSING_THOUGHT_SIGNATURE":
            raise InvalidRequestError(f"{self._who} misses a thought signature ({told})")
        if word in _MALFORMED:
            raise MalformedToolCallError(
                f"{self._who} ended the answer with a tool call that cannot be read ({told})",
                retryable=True,
            )
        if word == "MALFORMED_RESPONSE" or (word in _BROKEN and not has_content):
            raise ProviderError(f"{self._who} gave no answer ({told})", retryable=True)
        # The label is STOP with calls, too.
        return "tool_calls" if has_calls else "stop"

    def _take(self, chunk: Mapping[str, Any]) -> list[ModelEvent]:
        if chunk.get("error"):
            raise failure_of_object(self._who, chunk)
        frame = self._frame
        frame.id = frame.id or clean_text(text_of(chunk.get("responseId")))
        frame.model = frame.model or clean_text(text_of(chunk.get("modelVersion")))
        usage = chunk.get("usageMetadata")
        if isinstance(usage, Mapping):
            # Snapshots; the first ones lack counts that only the end knows.
            self._usage.update(cast("Mapping[str, Any]", usage))
        events = frame.start()
        candidate = _first_candidate(chunk)
        if candidate is None:
            self._take_feedback(chunk.get("promptFeedback"))
            return events
        content: object = candidate.get("content")
        parts = (
            cast("Mapping[str, Any]", content).get("parts")
            if isinstance(content, Mapping)
            else None
        )
        for part in cast("list[object]", parts) if isinstance(parts, list) else []:
            if isinstance(part, Mapping):
                events.extend(self._parts.add(cast("Mapping[str, Any]", part)))
        finish = text_of(candidate.get("finishReason"))
        if finish:
            self._finish, self.is_done = finish, True
            self._told = clean_text(text_of(candidate.get("finishMessage")))[:500]
        return events

    def _take_feedback(self, feedback: object) -> None:
        """Take the news that the prompt itself was refused; there is no candidate then."""
        if isinstance(feedback, Mapping) and cast("Mapping[str, Any]", feedback).get("blockReason"):
            self._finish, self.is_done = "SAFETY", True


def _first_candidate(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    candidates = chunk.get("candidates")
    if isinstance(candidates, list):
        for candidate in cast("list[object]", candidates):
            if isinstance(candidate, Mapping):
                found = cast("Mapping[str, Any]", candidate)
                if found.get("index") in (None, 0):
                    return found
    return None
