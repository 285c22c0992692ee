"""Reads the body of an answer to its end, whether it is a stream of events or one JSON value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from littleghost.errors import StreamError
from littleghost.providers.base import ModelEvent
from littleghost.providers.http import HttpAnswer
from littleghost.providers.sse import SseParser


class AnswerStream(Protocol):
    """A dialect's collector of one answer."""

    @property
    def is_done(self) -> bool:
        """Whether all that matters has come."""
        ...

    def feed(self, data: str, event: str = "message") -> Iterable[ModelEvent]:
        """Take the data of one server-sent event."""
        ...

    def feed_whole(self, body: bytes) -> Iterable[ModelEvent]:
        """Take an answer that was sent as one JSON value."""
        ...

    def is_whole(self, data: str) -> bool:
        """Say whether data that the stream's end left open was all there."""
        ...


def read_answer(answer: HttpAnswer, stream: AnswerStream) -> Iterator[ModelEvent]:
    """Feed a body to a collector and yield the events it causes.

    Raises:
        ProviderError: The answer reports an error.
        StreamError: It broke off or cannot be read.
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


def _read_pending(parser: SseParser, stream: AnswerStream) -> Iterator[ModelEvent]:
    """Take an event that only lacks its blank line; one that was cut is an error."""
    was_inside_line = parser.has_partial_line
    event = parser.pending()
    if event is not None and stream.is_whole(event.data):
        yield from stream.feed(event.data, event.event)
    elif event is not None or was_inside_line:
        raise StreamError("the answer ended in the middle of an event")
