import base64
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_server import load_vectors

from littleghost.errors import StreamError
from littleghost.providers.sse import SseParser


def parse(chunks):
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return [{"event": e.event, "data": e.data, "id": e.id} for e in events]


@pytest.mark.parametrize("vector", load_vectors(), ids=lambda vector: vector["id"])
@pytest.mark.parametrize("way", ["given", "bytes", "empty chunks between"])
def test_a_vector_gives_its_events(vector, way):
    data = base64.b64decode(vector["bytes_b64"])
    chunks = [data] if way == "given" else [data[i : i + 1] for i in range(len(data))]
    if way == "empty chunks between":
        chunks = [piece for chunk in chunks for piece in (chunk, b"")]

    assert parse(chunks) == vector["events"]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=300, deadline=None)
def test_where_the_network_cuts_makes_no_difference(data, cuts):
    data = data.replace(b"a", b"\ndata:").replace(b"b", b"\r\n").replace(b"c", b"\r")
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(edges)]

    assert parse(pieces) == parse([data])


def test_events_come_out_as_soon_as_they_are_complete():
    parser = SseParser()

    assert [e.data for e in parser.feed(b"data: a\r\r")] == ["a"]
    assert [e.data for e in parser.feed(b"\ndata: b\n\n")] == ["b"]


def test_a_carriage_return_at_a_chunk_end_is_not_two_line_ends():
    parser = SseParser()

    assert parser.feed(b"data: a\r") == []
    assert parser.feed(b"\ndata: b\r") == []
    assert [e.data for e in parser.feed(b"\n\r\n")] == ["a\nb"]


def test_the_open_event_at_the_end_can_be_asked_for():
    parser = SseParser()
    parser.feed(b"data: 1\n\nevent: e\ndata: 2")
    assert parser.has_partial_line

    event = parser.pending()

    assert event is not None
    assert (event.event, event.data) == ("e", "2")
    assert parser.pending() is None


def test_an_unfinished_comment_is_no_partial_line():
    parser = SseParser()
    parser.feed(b"data: 1\n\n: ping")

    assert not parser.has_partial_line
    assert parser.pending() is None


@pytest.mark.parametrize("data", [b"data: " + b"x" * 200, b"data: xxxxxxxx\n" * 20])
def test_an_event_that_never_ends_is_refused(data):
    with pytest.raises(StreamError, match="larger than 100 bytes") as caught:
        SseParser(max_event_bytes=100).feed(data)

    assert not caught.value.is_retryable
