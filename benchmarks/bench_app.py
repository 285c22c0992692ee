"""What the benchmarks' workers run: plain Celery tasks, and agents with an instant model."""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from celery import Celery

from littleghost import Agent, Edge, Graph, Limits, Node, Workflow, models, tool
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

    `chain N`: N turns with one call each, then an answer; `fan N`: N calls at once; else an answer.
    """

    def __init__(self, tool: str = "instant") -> None:
        self.tool = tool

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
            ToolUse(f"call_{turn}_{n}", self.tool, {"n": n}, f'{{"n":{n}}}') for n in range(calls)
        )
        yield ModelEvent("message_start", {"id": "1", "model": "instant"})
        yield ModelEvent("text_delta", {"text": text})
        response = ModelResponse(
            message=Message("assistant", (Text(text), *uses)),
            finish="tool_calls" if uses else "stop",
            usage=Usage(input=100, output=50),
        )
        if counter is not None and not uses:
            counter.add()
        yield ModelEvent("message_stop", {}, response)

    def close(self) -> None:
        pass


models().connect("bench", InstantProvider())
models().connect("asking", InstantProvider("risky"))


class Bench(Agent):
    model = "bench:instant"
    tools = [instant]  # noqa: RUF012
    limits = Limits(max_turns=None, max_tool_calls=None, max_parallel_calls=10_000)


@tool(requires_approval=True)
def risky(n: int) -> str:
    """Answer at once, when a person has allowed it."""
    return "x" * 200


class Asking(Agent):
    """`chain 1`: waits for a person."""

    model = "asking:instant"
    tools = [risky]  # noqa: RUF012


class Sleeper(Workflow):
    """Waits for a day."""

    def perform(self) -> int:
        self.sleep(86_400)
        return 1


class Leaf(Agent):
    """A child that answers at once."""

    model = "bench:instant"


class Fan(Workflow):
    """`fan N`: N children at once; `fan N W`: W of them at once."""

    def perform(self) -> int:
        count, *width = map(int, self.input.text.split()[1:])
        children = [self.invoke(Leaf, input="leaf 0") for _ in range(count)]
        return len(self.parallel(*children, max_concurrency=(width or [count])[0]))


class Line(Workflow):
    """`line N`: N children one after the other."""

    def perform(self) -> int:
        count = int(self.input.text.split()[1])
        for _ in range(count):
            self.invoke(Leaf, input="leaf 0").result  # noqa: B018 - reading it waits for it
        return count


def fan_graph(count: int) -> type[Graph]:
    """Make a graph of a fork of some branches, and what joins them."""
    branches = [f"n{number}" for number in range(count)]
    node = Node(Leaf, input=lambda state: "leaf 0")
    fields = {
        "__module__": __name__,
        "nodes": dict.fromkeys(["begin", *branches, "end"], node),
        "start": "begin",
        "finish": "end",
        "edges": [Edge("begin", branches), Edge(branches, "end")],
        "max_steps": count + 2,
        "max_concurrency": count,
    }
    return type(f"Fan{count}Graph", (Graph,), fields)


Fan100Graph, Fan1000Graph = fan_graph(100), fan_graph(1000)


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
    if os.environ.get("BENCH_RESULTS"):
        # A chord counts its header in the result backend.
        app.conf.update(
            result_backend=os.environ["LITTLEGHOST_REDIS_URL"], task_ignore_result=False
        )
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


@app.task(name="bench.join")
def join(results: list[str]) -> int:
    if counter is not None:
        counter.add()
    return len(results)
