"""A local HTTP server whose answers are written byte by byte by the test."""

import base64
import json
import queue
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[2] / "cases"


class Exchange:
    """One request, and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self.body = body
        self.json: dict[str, Any] = json.loads(body) if body else {}
        self.headers = handler.headers
        self.path = handler.path
        self.client = handler.client_address
        self._handler = handler
        self.is_chunked = False

    def head(self, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Send the status and headers of a chunked answer."""
        self.is_chunked = True
        self._handler.send_response(status)
        for name, value in (headers or {"content-type": "text/event-stream"}).items():
            self._handler.send_header(name, value)
        self._handler.send_header("transfer-encoding", "chunked")
        self._handler.end_headers()

    def chunk(self, data: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        self._handler.wfile.write(b"0\r\n\r\n")

    def whole(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Send a whole answer with its length."""
        self._handler.send_response(status)
        for name, value in (headers or {}).items():
            self._handler.send_header(name, value)
        self._handler.send_header("content-length", str(len(body)))
        self._handler.end_headers()
        self._handler.wfile.write(body)

    def hang_up(self) -> None:
        """Close the connection in the middle of the answer."""
        self._handler.close_connection = True
        self._handler.wfile.flush()
        with suppress(OSError):
            self._handler.connection.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Reset the connection."""
        self._handler.close_connection = True
        option = struct.pack("ii", 1, 0)
        self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        self._handler.connection.close()

    def wait_for_hang_up(self) -> None:
        """Return when the client is gone."""
        self._handler.close_connection = True
        with suppress(OSError):
            while self._handler.connection.recv(4096):
                pass


class WireServer:
    """Answers every POST with the function it was given.

    Attributes:
        exchanges: The requests that have come, the oldest first.
        came: The same, to wait for.
    """

    def __init__(self, answer: Callable[[Exchange], None]) -> None:
        self.answer = answer
        self.exchanges: list[Exchange] = []
        self.came: queue.Queue[Exchange] = queue.Queue()
        self.connections = 0
        self.open_connections = 0
        self.changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 0

            def setup(self) -> None:
                super().setup()
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                outer.count(1)

            def finish(self) -> None:
                with suppress(OSError):
                    super().finish()
                outer.count(-1)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                exchange = Exchange(self, body)
                outer.exchanges.append(exchange)
                outer.came.put(exchange)
                try:
                    outer.answer(exchange)
                except OSError:
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, *args: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )

    def count(self, change: int) -> None:
        with self.changed:
            self.connections += max(change, 0)
            self.open_connections += change
            self.changed.notify_all()

    def wait_until_all_closed(self, timeout_s: float = 10) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.open_connections == 0, timeout_s)

    def __enter__(self) -> "WireServer":
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def load_case(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def load_vectors() -> list[dict[str, Any]]:
    return json.loads((CASES / "sse_vectors.json").read_text(encoding="utf-8"))


def case_chunks(case: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(chunk) for chunk in case["input"]["response"]["chunks_b64"]]


def three_ways(chunks: Iterable[bytes]) -> dict[str, list[bytes]]:
    """The same bytes as given, in one chunk, and one by one."""
    chunks = list(chunks)
    whole = b"".join(chunks)
    return {"given": chunks, "one": [whole], "bytes": [bytes([byte]) for byte in whole]}


def replay(chunks: Iterable[bytes]) -> Callable[[Exchange], None]:
    """Answer every request with these chunks and a clean end."""
    chunks = list(chunks)

    def answer(exchange: Exchange) -> None:
        exchange.head()
        for chunk in chunks:
            exchange.chunk(chunk)
        exchange.end()

    return answer


def event(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One chunk of an answer as a server-sent event."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    chunk = {"id": "chatcmpl-1", "model": "test-model", "choices": [choice], **more}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
