"""Reads an answer's body to its end, whether it is a stream of events or one JSON value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from littleghost.errors import StreamError
from littleghost.providers.base import ModelEvent
from littleghost.providers.http import HttpAnswer
from littleghost.providers.sse import SseParser

DONE = "[DONE]"


class AnswerStream(Protocol):
    """What a dialect does with an answer."""

    @property
    def is_done(self) -> bool:
        """Whether the service said that nothing more comes."""
        ...

    def feed(self, data: str, event: str = "message") -> list[ModelEvent]:
        """Take the data and name of one server-sent event."""
        ...

    def feed_whole(self, body: bytes) -> list[ModelEvent]:
        """Take a whole answer that came as one JSON value."""
        ...

    def finish(self) -> list[ModelEvent]:
        """Close the answer at the clean end of the stream."""
        ...


def read_answer(answer: HttpAnswer, stream: AnswerStream) -> Iterator[ModelEvent]:
    """Give the events of a body as its bytes come.

    Raises:
        StreamError: The body ends in the middle of an event.
        ProviderError: What the stream raises.
    """
    parser = SseParser()
    whole: bytearray | None = None
    is_first = True
    for chunk in answer.chunks():
        if is_first and chunk.strip():
            is_first = False
            # No event stream begins so, and content types are not to be trusted.
            whole = bytearray() if chunk.lstrip()[:1] in (b"{", b"[") else None
        if whole is not None:
            whole += chunk
            continue
        for event in parser.feed(chunk):
            yield from stream.feed(event.data, event.event)
        if stream.is_done:
            answer.expect_end()
    if whole is not None:
        yield from stream.feed_whole(bytes(whole))
    elif not stream.is_done:
        yield from _read_pending(parser, stream)


def chunk_of(who: str, data: str) -> Mapping[str, Any]:
    """Read the JSON object in one event.

    Raises:
        StreamError: It is none; `who` names the service.
    """
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StreamError(f"{who} sent a chunk that cannot be read") from error
    if not isinstance(value, dict):
        raise StreamError(f"{who} sent a chunk that is not an object")
    return cast("Mapping[str, Any]", value)


def _read_pending(parser: SseParser, stream: AnswerStream) -> Iterator[ModelEvent]:
    """Take an event that only lacks its blank line; one that was cut is an error."""
    was_inside_line = parser.has_partial_line
    event = parser.pending()
    if event is not None and _is_whole(event.data):
        yield from stream.feed(event.data, event.event)
    elif event is not None or was_inside_line:
        raise StreamError("the answer ended in the middle of an event")


def _is_whole(data: str) -> bool:
    data = data.strip()
    if not data or data == DONE:
        return True
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False
