"""What the fan-out tests run: fifty branches, each with two turns and two calls, and a join."""

from __future__ import annotations

import time
from typing import Any

from littleghost import Agent, Edge, Graph, Node, Tool, Workflow, models
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.usage import Usage
from tests.faults.fleet_app import leave_trace

BRANCHES = tuple(f"b{number:02}" for number in range(50))
# A branch's turn takes CHUNKS times CHUNK_S, and a call CALL_S: long enough to be killed in.
CHUNKS, CHUNK_S, CALL_S = 4, 0.15, 0.2
# Told by the model itself, so that it does not depend on what the tools said.
TURN_USAGE = Usage(input=7, output=3)
JOIN_USAGE = Usage(input=11, output=5)


class Traced(Tool):
    """Leaves a trace with the call's idempotency key as soon as it takes effect."""

    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "required": ["key"],
    }

    def call(self, input: Any) -> str:
        leave_trace(f"{self.name} {self.idempotency_key}")
        time.sleep(CALL_S)
        return f"{self.name} {input['key']}"


class LookUp(Traced):
    """Look something up, twice if need be."""

    name = "look_up"
    idempotent = True


class Book(Traced):
    """Book something, never twice."""

    name = "book"


def branch_script(request: ModelRequest) -> Reply:
    """Call both tools at once; then answer the same, whatever they said."""
    key = next(item for item in request.messages if item.role == "user").text.split()[-1]
    turn = sum(item.role == "assistant" for item in request.messages)
    leave_trace(f"turn {key} {turn}")
    text, calls = f"done {key}", []
    if turn == 0:
        text = f"branch {key} goes on"
        calls = [Call("look_up", {"key": key}), Call("book", {"key": key})]
    size = -(-len(text) // CHUNKS)
    return Reply(
        text=text, tool_calls=calls, chunk_chars=size, chunk_delay_s=CHUNK_S, usage=TURN_USAGE
    )


def join_script(request: ModelRequest) -> Reply:
    """Say again what it was told."""
    return Reply(text=f"joined: {request.messages[-1].text}", usage=JOIN_USAGE)


models().connect("branch", "scripted", script=branch_script)
models().connect("join", "scripted", script=join_script)


class BranchAgent(Agent):
    model = "branch:any"
    tools = [LookUp, Book]  # noqa: RUF012


class EchoAgent(Agent):
    model = "join:any"


def _work(state: Any) -> str:
    return f"work {state.current}"


class FanOutGraph(Graph):
    """A start, the branches, and a join of them all."""

    nodes = {  # noqa: RUF012
        "start": EchoAgent,
        **{name: Node(BranchAgent, input=_work) for name in BRANCHES},
        "join": EchoAgent,
    }
    start = "start"
    edges = [Edge("start", BRANCHES), Edge(BRANCHES, "join")]  # noqa: RUF012
    finish = "join"
    max_steps = len(BRANCHES) + 2
    max_concurrency = len(BRANCHES)


class FanOutWorkflow(Workflow):
    """The same as Python."""

    def perform(self) -> Any:
        start = self.invoke(EchoAgent, name="start").output
        branches = [self.invoke(BranchAgent, input=f"work {name}", name=name) for name in BRANCHES]
        said = self.parallel(*branches, max_concurrency=len(BRANCHES))
        return self.invoke(EchoAgent, input="; ".join([start, *said]), name="join")
