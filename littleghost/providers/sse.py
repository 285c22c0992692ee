"""Server-sent events, parsed from bytes as they come.

Follows the WHATWG rules to the letter: only CR, LF and CRLF end a line, a block without data is
dropped, a block that the stream's end cuts off is not dispatched. `pending` shows such a block to
callers who know a reason to take it.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from dataclasses import dataclass

from littleghost.errors import StreamError

_BOM = b"\xef\xbb\xbf"
# Bytes. The largest sound event is a whole image in base64; more is a server gone wrong.
MAX_EVENT_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event.

    Attributes:
        event: Its name; "message" when the server gave none.
        data: Its data lines, joined by LF. May be empty.
        id: The last event id the server set, "" when it set none.
    """

    event: str
    data: str
    id: str


class SseParser:
    """Turns the bytes of an event stream into events, however the network cut them.

    Not thread-safe: one parser reads one stream.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        """Start at the beginning of a stream.

        Args:
            max_event_bytes: Most bytes of one event, its unfinished line included.
        """
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()
        self._is_first_line = True
        self._skips_lf = False
        self._data: list[str] = []
        self._data_bytes = 0
        self._event = ""
        self._id = ""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and give the events they complete.

        Raises:
            StreamError: An event is larger than the limit; asking again cannot help.
        """
        if not chunk:
            return []
        if self._skips_lf and chunk[0] == 0x0A:
            # The LF of a CRLF whose CR ended the chunk before, and already ended the line.
            chunk = chunk[1:]
        self._skips_lf = chunk.endswith(b"\r")
        events: list[SseEvent] = []
        # bytes.splitlines knows CR, LF and CRLF only; str.splitlines would cut at U+2028 too.
        for piece in chunk.splitlines(keepends=True):
            line = piece.rstrip(b"\r\n")
            if len(line) == len(piece):
                self._line += piece
                self._check_size()
                break
            if self._line:
                self._line += line
                line = bytes(self._line)
                self._line.clear()
            event = self._take_line(line)
            if event is not None:
                events.append(event)
        return events

    def pending(self) -> SseEvent | None:
        """Give the event that the end of the stream left open, or None.

        Returns:
            The event as if its last line and the blank line after it had come. The stream may
            have been cut inside it: the caller must see whether the data is whole.
        """
        if self._line:
            line = bytes(self._line)
            self._line.clear()
            self._take_line(line)
        return self._dispatch()

    @property
    def has_partial_line(self) -> bool:
        """Whether bytes of an unfinished line are waiting; comments do not count."""
        return bool(self._line) and not self._line.startswith(b":")

    def _take_line(self, line: bytes) -> SseEvent | None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        # Whole lines are decoded, so a character that the network split stays whole.
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_bytes += len(line)
            self._check_size()
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> SseEvent | None:
        event, self._event = self._event, ""
        if not self._data:
            return None
        data = "\n".join(self._data)
        self._data.clear()
        self._data_bytes = 0
        return SseEvent(event or "message", data, self._id)

    def _check_size(self) -> None:
        if self._data_bytes + len(self._line) > self._max_event_bytes:
            raise StreamError(
                f"an event of the stream is larger than {self._max_event_bytes} bytes",
                retryable=False,
            )
