"""A model server on loopback that speaks the OpenAI chat dialect, and has storms."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.faults.under_fire.plays import INPUT_TOKENS, OUTPUT_TOKENS, Heard, Said, say

WEATHERS = ("429", "429 date", "529", "500", "hang", "cut", "cut late", "silent")


class StormServer:
    """Answers as the plays say, unless the weather is bad.

    Attributes:
        weather: `fair`, or what happens to three of four requests.
        hits: How often which weather struck.
    """

    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.weather = "fair"
        self.hits: Counter[str] = Counter()
        self.chance = random.Random(f"{seed}-storm")
        self.over = threading.Event()
        storm = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                try:
                    storm.answer(self, body)
                except (OSError, ValueError):
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler, body: Mapping[str, Any]) -> None:
        weather = self.weather if self.chance.random() < 0.75 else "fair"
        self.hits[weather] += 1
        if weather in ("429", "429 date", "529", "500"):
            _refuse(handler, weather)
            return
        if weather == "hang":
            # Longer than the client waits.
            self.over.wait(4.0)
            _hang_up(handler)
            return
        said = say(_heard(body, self.place))
        if said.is_refused:
            _whole(handler, 400, {"error": {"message": "not to be", "type": "invalid_request"}})
            return
        chunks = _chunks(said)
        stop = {"cut": len(chunks) // 2, "cut late": len(chunks) - 1, "silent": 1}.get(weather)
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for number, chunk in enumerate(chunks):
            if number == stop:
                if weather == "silent":
                    self.over.wait(4.0)
                _hang_up(handler)
                return
            time.sleep(0.02)
            _send(handler, chunk)
        _send(handler, "[DONE]")
        handler.wfile.write(b"0\r\n\r\n")


def _heard(body: Mapping[str, Any], place: Path) -> Heard:
    users: list[str] = []
    turn = 0
    for message in body["messages"]:
        if message["role"] == "user":
            content = message["content"]
            parts = content if isinstance(content, list) else [{"text": content}]
            users.append("".join(part["text"] for part in parts))
            turn = 0
        turn += message["role"] == "assistant"
    return Heard(body["model"], users, turn, place)


def _chunks(said: Said) -> list[dict[str, Any]]:
    size = 5 if said.is_slow else max(1, -(-len(said.text) // 3))
    deltas: list[dict[str, Any]] = [
        {"content": said.text[start : start + size]} for start in range(0, len(said.text), size)
    ]
    for index, (name, value) in enumerate(said.calls):
        function = {"name": name, "arguments": json.dumps(value)}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    finish = "tool_calls" if said.calls else "stop"
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
    return [*chunks, {"choices": [], "usage": usage}]


def _send(handler: BaseHTTPRequestHandler, chunk: Any) -> None:
    text = chunk if isinstance(chunk, str) else json.dumps({"id": "c", "model": "m", **chunk})
    data = f"data: {text}\n\n".encode()
    handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


def _refuse(handler: BaseHTTPRequestHandler, weather: str) -> None:
    status = int(weather[:3])
    headers: dict[str, str] = {}
    if weather == "429":
        headers["retry-after"] = "1"
    elif weather == "429 date":
        # By the server's clock, which its Date header tells; that of a worker may be off.
        moment = datetime.now(UTC) + timedelta(seconds=2)
        headers["retry-after"] = format_datetime(moment, usegmt=True)
    _whole(handler, status, {"error": {"message": "try later", "type": "overloaded"}}, headers)


def _whole(
    handler: BaseHTTPRequestHandler,
    status: int,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> None:
    data = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
