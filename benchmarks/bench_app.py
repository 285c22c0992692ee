"""What the benchmarks' workers run: plain Celery tasks, and agents with an instant model."""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from celery import Celery

from littleghost import Agent, Limits, models, tool
from littleghost.celery.app import make_app
from littleghost.messages import Message, Text, ToolUse
from littleghost.providers.base import CallControl, ModelEvent, ModelRequest, ModelResponse
from littleghost.settings import Settings
from littleghost.usage import Usage

_path = os.environ.get("BENCH_COUNTER")
_lock = threading.Lock()


class Counter:
    """A number shared with the benchmark through a file, so that counting costs nothing."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8)

    @property
    def value(self) -> int:
        return struct.unpack("q", self._memory[:8])[0]

    def add(self) -> None:
        with _lock:
            self._memory[:8] = struct.pack("q", self.value + 1)

    def reset(self) -> None:
        self._memory[:8] = struct.pack("q", 0)


counter = Counter(Path(_path)) if _path else None


@tool(idempotent=True)
def instant(n: int) -> str:
    """Answer at once."""
    return "x" * 200


class InstantProvider:
    """A model that answers at once and at the same cost, however long the conversation is.

    `chain N`: N turns with one call each, then an answer; `fan N`: N calls at once.
    """

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        messages = request.messages
        verb, count = messages[1].text.split()
        turn = len(messages) // 2 - 1
        text, calls = "x" * 200, 0
        if verb == "chain" and turn < int(count):
            calls = 1
        elif verb == "fan" and len(messages) == 2:
            calls = int(count)
        uses = tuple(
            ToolUse(f"call_{turn}_{n}", "instant", {"n": n}, f'{{"n":{n}}}') for n in range(calls)
        )
        yield ModelEvent("message_start", {"id": "1", "model": "instant"})
        yield ModelEvent("text_delta", {"text": text})
        response = ModelResponse(
            message=Message("assistant", (Text(text), *uses)),
            finish="tool_calls" if uses else "stop",
            usage=Usage(input=100, output=50),
        )
        yield ModelEvent("message_stop", {}, response)

    def close(self) -> None:
        pass


models().connect("bench", InstantProvider())


class Bench(Agent):
    model = "bench:instant"
    tools = [instant]  # noqa: RUF012
    limits = Limits(max_turns=None, max_tool_calls=None, max_parallel_calls=10_000)


class Stream(Agent):
    """Streams from a local server; see memory.py."""

    model = "local:bench"


if os.environ.get("BENCH_BASE_URL"):
    models().connect(
        "local", "openai_compatible", base_url=os.environ["BENCH_BASE_URL"], api_key="none"
    )

if os.environ.get("BENCH_KIND") == "celery":
    app = Celery("bench", broker=os.environ["LITTLEGHOST_REDIS_URL"])
    app.conf.task_ignore_result = True
else:
    app = make_app(Settings.from_environment())


@app.task(name="bench.noop")
def noop(payload: str = "") -> str:
    if counter is not None:
        counter.add()
    return payload


@app.task(name="bench.step")
def step(payload: str) -> str:
    return payload


@app.task(name="bench.last")
def last(payload: str) -> str:
    if counter is not None:
        counter.add()
    return payload
