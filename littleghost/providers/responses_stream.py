"""Turns the events of an OpenAI Responses answer into model events and one response.

Pure: fed with the data of server-sent events. An answer counts only when the service said how it
ended; anything else is an error, never a shorter answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from littleghost.errors import ProviderError, StreamError
from littleghost.providers.answer_frame import AnswerFrame
from littleghost.providers.answer_reader import DONE, chunk_of
from littleghost.providers.base import FinishReason, ModelEvent
from littleghost.providers.failures import failure_of_object
from littleghost.providers.openai_delta import text_of
from littleghost.providers.openai_usage import read_usage
from littleghost.providers.responses_output import Output
from littleghost.providers.tool_names import WireNames
from littleghost.usage import Usage

_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_REASONING = frozenset(
    {
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary.delta",
        "response.reasoning.delta",
    }
)
_ENDS = frozenset({"response.completed", "response.incomplete", "response.done"})
_FAILURES = frozenset({"error", "response.error", "response.failed", "response.cancelled"})
_FILTER = frozenset({"content_filter", "safety"})
# Codes of refusals that asking again does not change; others of their kind begin alike.
_REFUSED = ("invalid_", "image_", "unsupported_", "empty_image", "failed_to_download_image")


class ResponsesStream:
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
            origin: Whom kept reasoning belongs to.
        """
        self.is_done = False
        self._who = who
        self._frame = AnswerFrame()
        self._cut: FinishReason | None = None
        self._usage: Usage | None = None
        self._output = Output(names or WireNames(), taken_ids, origin)

    def feed(self, data: str, event: str = "message") -> list[ModelEvent]:
        """Take the data of one server-sent event and give the model events it causes.

        Args:
            data: JSON text, `[DONE]`, or nothing.
            event: The event's name, used where the data does not say its type.

        Raises:
            ProviderError: The event reports an error.
            StreamError: The event cannot be read.
        """
        data = data.strip()
        if not data or self.is_done or data == DONE:
            # [DONE] says nothing here: an answer ends with an event that says how.
            return []
        if event == "error" and not data.startswith("{"):
            raise failure_of_object(self._who, data)
        chunk = chunk_of(self._who, data)
        return self._take(chunk, text_of(chunk.get("type")) or event)

    def feed_whole(self, body: bytes) -> list[ModelEvent]:
        """Take a whole answer that was sent as one JSON object instead of a stream.

        Raises:
            ProviderError: It reports an error.
            StreamError: It is not an answer.
        """
        chunk = chunk_of(self._who, body.decode("utf-8", "replace"))
        if isinstance(chunk.get("output"), list) or chunk.get("object") == "response":
            return [*self._start(chunk), *self._end(chunk, "")]
        return self._take(chunk, text_of(chunk.get("type")))

    def finish(self) -> list[ModelEvent]:
        """Close the answer at the clean end of the stream.

        Returns:
            The last events; message_stop carries the response.

        Raises:
            StreamError: The answer is not complete.
        """
        if not self.is_done:
            raise StreamError(f"the answer of {self._who} ended before it was complete")
        message, events = self._output.finish()
        reason = self._cut or ("tool_calls" if message.tool_uses else "stop")
        return [*events, *self._frame.stop(message, reason, self._usage)]

    def _take(self, chunk: Mapping[str, Any], kind: str) -> list[ModelEvent]:
        response: object = chunk.get("response")
        body = cast("Mapping[str, Any]", response) if isinstance(response, Mapping) else {}
        if kind in _FAILURES or chunk.get("error") or chunk.get("object") == "error":
            raise self._failure(chunk, body)
        events = self._start(body)
        if kind in _ENDS:
            return [*events, *self._end(body, kind)]
        return [*events, *self._piece(chunk, kind)]

    def _piece(self, chunk: Mapping[str, Any], kind: str) -> list[ModelEvent]:
        """Take one event about an item; kinds that are not known are about nothing we asked for."""
        if kind in _TEXT:
            return self._output.add_text(chunk)
        if kind in _REASONING:
            return self._output.add_reasoning({**chunk, "type": kind})
        match kind:
            case "response.output_item.added":
                return self._output.open(chunk)
            case "response.output_item.done":
                return self._output.close(chunk)
            case "response.function_call_arguments.delta":
                return self._output.add_arguments(chunk)
            case "response.function_call_arguments.done":
                return self._output.end_arguments(chunk)
            case _:
                return []

    def _start(self, body: Mapping[str, Any]) -> list[ModelEvent]:
        self._frame.id = self._frame.id or text_of(body.get("id"))
        self._frame.model = text_of(body.get("model")) or self._frame.model
        return self._frame.start()

    def _end(self, body: Mapping[str, Any], kind: str) -> list[ModelEvent]:
        """Take the whole answer. Its status decides, not the name of the event it came in."""
        status = text_of(body.get("status")) or kind.removeprefix("response.") or "completed"
        if body.get("error") or status in ("failed", "cancelled"):
            raise self._failure({}, body)
        if status not in ("completed", "incomplete", "done"):
            raise StreamError(f"the answer of {self._who} ended before it was complete")
        details: object = body.get("incomplete_details")
        if status == "incomplete" or isinstance(details, Mapping):
            reason = cast("Mapping[str, Any]", details or {}).get("reason")
            self._cut = "content_filter" if reason in _FILTER else "length"
        events = self._output.close_all(body.get("output"))
        self._usage = read_usage(body.get("usage"))
        self.is_done = True
        return events

    def _failure(self, chunk: Mapping[str, Any], body: Mapping[str, Any]) -> ProviderError:
        """Name the error that an event or a failed answer reports."""
        found: object = chunk.get("error") or body.get("error")
        if found is None or isinstance(found, Mapping):
            error: dict[str, Any] = dict(cast("Mapping[str, Any]", found or chunk))
            error.setdefault("status", chunk.get("status"))
        else:
            error = {"message": str(found)}
        if not error.get("message") and not chunk.get("message"):
            error["message"] = f"the answer is {text_of(body.get('status')) or 'failed'}"
        code = text_of(error.get("code")).lower()
        if code.startswith(_REFUSED) or "policy" in code:
            # The code alone does not say so, and what has no status is tried again.
            error["status"] = 400
        error.pop("response", None)
        return failure_of_object(self._who, error)
