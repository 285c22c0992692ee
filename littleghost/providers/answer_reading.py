"""Reads an answer's body to its end, whether it is a stream of events or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from littleghost.errors import StreamError
from littleghost.providers.base import ModelEvent
from littleghost.providers.http import HttpAnswer
from littleghost.providers.sse import SseParser


class Collector(Protocol):
    """Makes model events of what a service sends; one per answer."""

    @property
    def is_done(self) -> bool:
        """Whether the service said that nothing more comes."""
        ...

    def feed(self, data: str, event: str = "message") -> list[ModelEvent]:
        """Take the data of one server-sent event."""
        ...

    def feed_whole(self, body: bytes) -> list[ModelEvent]:
        """Take a whole answer that was sent as one JSON object."""
        ...

    def is_whole(self, data: str) -> bool:
        """Say whether data that the stream's end left open was all there."""
        ...


def read_answer(answer: HttpAnswer, collector: Collector) -> Iterator[ModelEvent]:
    """Feed an answer to its collector and yield the events as they come.

    Raises:
        StreamError: The body broke off, or ended in the middle of an event.
        ProviderError: The service reported an error inside the answer.
        ControlError: The request was cut.
    """
    parser = SseParser()
    whole: bytearray | None = None
    is_first = True
    for chunk in answer.chunks():
        if is_first and chunk.strip():
            is_first = False
            # No event stream begins with a brace, and content types are not to be trusted.
            whole = bytearray() if chunk.lstrip()[:1] == b"{" else None
        if whole is not None:
            whole += chunk
            continue
        for event in parser.feed(chunk):
            yield from collector.feed(event.data, event.event)
        if collector.is_done:
            answer.expect_end()
    if whole is not None:
        yield from collector.feed_whole(bytes(whole))
    elif not collector.is_done:
        yield from _read_pending(parser, collector)


def load_object(who: str, data: str) -> Mapping[str, Any]:
    """Read the JSON object that a service sent.

    Raises:
        StreamError: It is not one.
    """
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StreamError(f"{who} sent a chunk that cannot be read") from error
    if not isinstance(value, dict):
        raise StreamError(f"{who} sent a chunk that is not an object")
    return cast("Mapping[str, Any]", value)


def is_object(data: str) -> bool:
    """Say whether data is the whole text of a JSON object."""
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _read_pending(parser: SseParser, collector: Collector) -> Iterator[ModelEvent]:
    """Take an event that only lacks its blank line; one that was cut is an error."""
    was_inside_line = parser.has_partial_line
    event = parser.pending()
    if event is not None and collector.is_whole(event.data):
        yield from collector.feed(event.data, event.event)
    elif event is not None or was_inside_line:
        raise StreamError("the answer ended in the middle of an event")
