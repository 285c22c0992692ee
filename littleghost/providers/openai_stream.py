"""Turns the chunks of an OpenAI chat answer into model events and one response.

Pure: fed with the data of server-sent events. An answer counts only when the service said that it
is over; anything else is an error, never a shorter answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from littleghost.errors import ProviderError, StreamError
from littleghost.messages import Block, Message, Reasoning, Text
from littleghost.providers.answer_frame import AnswerFrame
from littleghost.providers.answer_reader import DONE, chunk_of
from littleghost.providers.base import FinishReason, ModelEvent
from littleghost.providers.failures import failure_of_object
from littleghost.providers.openai_delta import (
    Collected,
    content_of,
    first_choice,
    merge_detail,
    reasoning_of,
    text_of,
)
from littleghost.providers.openai_usage import read_usage
from littleghost.providers.tool_calls import CallAssembler
from littleghost.providers.tool_names import WireNames
from littleghost.usage import Usage

_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTER = frozenset({"content_filter", "content-filter", "safety", "recitation", "blocklist"})


class ChatStream:
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
        """Start before the first chunk.

        Args:
            who: The service, for messages.
            names: The names of the tools that were offered.
            taken_ids: Ids of earlier calls; new calls get other ones.
            origin: Whom kept reasoning belongs to.
        """
        self.is_done = False
        self._who = who
        self._origin = origin
        self._frame = AnswerFrame()
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._text = Collected("text_delta")
        self._reasoning = Collected("reasoning_delta")
        self._details: list[Any] = []
        self._calls = CallAssembler(names or WireNames(), taken_ids)
        self._has_tool_calls_field = False

    def feed(self, data: str, event: str = "message") -> list[ModelEvent]:
        """Take the data of one server-sent event and give the model events it causes.

        Args:
            data: JSON text, `[DONE]`, or nothing.
            event: The event's name.

        Raises:
            ProviderError: The chunk reports an error.
            StreamError: The chunk cannot be read.
        """
        data = data.strip()
        if not data or self.is_done:
            return []
        if data == DONE:
            self.is_done = True
            return []
        if event == "error" and not data.startswith("{"):
            raise failure_of_object(self._who, data)
        return self._take(chunk_of(self._who, data), event)

    def feed_whole(self, body: bytes) -> list[ModelEvent]:
        """Take a whole answer that was sent as one JSON object instead of a stream.

        Raises:
            ProviderError: It reports an error.
            StreamError: It is not an answer.
        """
        chunk = chunk_of(self._who, body.decode("utf-8", "replace"))
        events = self._take(chunk, "message")
        self.is_done = bool(chunk.get("choices"))
        return events

    def finish(self) -> list[ModelEvent]:
        """Close the answer at the clean end of the stream.

        Returns:
            The last events; message_stop carries the response.

        Raises:
            StreamError: The answer is not complete.
        """
        events = [*self._reasoning.flush(), *self._text.flush()]
        has_content = bool(self._text.text or self._calls or self._reasoning.text)
        if self._finish is None and not (self.is_done and has_content):
            raise StreamError(f"the answer of {self._who} ended before it was complete")
        uses, call_events = self._calls.finish()
        events.extend(call_events)
        blocks: list[Block] = []
        if self._reasoning.text or self._details:
            details = {"origin": self._origin, "items": self._details} if self._details else None
            blocks.append(Reasoning(self._reasoning.text, details=details))
        if self._text.text:
            blocks.append(Text(self._text.text))
        message = Message("assistant", (*blocks, *uses))
        return [*events, *self._frame.stop(message, self._reason(bool(uses)), self._usage)]

    def _reason(self, has_calls: bool) -> FinishReason:
        # A complete call decides, not the label; only a cut or a filter has a veto.
        word = (self._finish or "").lower()
        if word in _LENGTH:
            return "length"
        if word in _FILTER:
            return "content_filter"
        return "tool_calls" if has_calls else "stop"

    def _take(self, chunk: Mapping[str, Any], event: str) -> list[ModelEvent]:
        choice = first_choice(chunk)
        failure = self._failure_in(chunk, choice, event)
        if failure is not None:
            raise failure
        self._frame.id = self._frame.id or text_of(chunk.get("id"))
        self._frame.model = self._frame.model or text_of(chunk.get("model"))
        self._take_usage(chunk, choice)
        events = self._frame.start()
        if choice is not None:
            delta: object = choice.get("delta") or choice.get("message")
            if isinstance(delta, Mapping):
                events.extend(self._take_delta(cast("Mapping[str, Any]", delta)))
            finish = choice.get("finish_reason")
            if isinstance(finish, str) and finish:
                self._finish = finish
        return events

    def _take_delta(self, delta: Mapping[str, Any]) -> Iterable[ModelEvent]:
        yield from self._reasoning.add(reasoning_of(delta))
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            for item in cast("list[object]", details):
                merge_detail(self._details, item)
        yield from self._text.add(content_of(delta.get("content")))
        yield from self._text.add(text_of(delta.get("refusal")))
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            self._has_tool_calls_field = True
            for item in cast("list[object]", calls):
                if isinstance(item, Mapping):
                    yield from self._calls.add(cast("Mapping[str, Any]", item))
        # Old servers send this instead of tool_calls, some beside it.
        function = delta.get("function_call")
        if isinstance(function, Mapping) and not self._has_tool_calls_field:
            yield from self._calls.add({"index": 0, "function": function})

    def _take_usage(self, chunk: Mapping[str, Any], choice: Mapping[str, Any] | None) -> None:
        """Keep the last counts: those of one answer are snapshots, not parts of a sum."""
        groq = chunk.get("x_groq")
        places: list[object] = [chunk.get("usage"), (choice or {}).get("usage")]
        if isinstance(groq, Mapping):
            places.append(cast("Mapping[str, Any]", groq).get("usage"))
        found = next((usage for usage in map(read_usage, places) if usage is not None), None)
        self._usage = found or self._usage

    def _failure_in(
        self, chunk: Mapping[str, Any], choice: Mapping[str, Any] | None, event: str
    ) -> ProviderError | None:
        """Find an error in a chunk: services put it in many places."""
        if chunk.get("error"):
            return failure_of_object(self._who, chunk)
        named = event == "error" or "error" in (chunk.get("object"), chunk.get("type"))
        if named or (choice is None and (chunk.get("error_message") or chunk.get("error_type"))):
            return failure_of_object(self._who, chunk)
        if choice is not None and (choice.get("error") or choice.get("finish_reason") == "error"):
            return failure_of_object(self._who, choice)
        return None
