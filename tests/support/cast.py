"""The agents that tests of the journal run, their tools and what these did to the outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from littleghost import Agent, Limits, Tool
from littleghost.engine.interjection import FRAME
from littleghost.errors import InvalidRequestError, OverloadedError, ToolError
from littleghost.messages import ToolResult
from littleghost.providers.base import CallControl, ModelEvent, ModelRequest
from littleghost.providers.scripted import Call, Reply, ScriptedProvider
from littleghost.usage import Usage

# Calls by idempotency key: what a tool did to the world outside of the journal.
EFFECTS: Counter[str] = Counter()
# What happens at a named place in the work of a model or tool; set by the world that is running.
HOOKS: list[Callable[[str], object]] = []
USAGE = Usage(input=10, output=5, reasoning=1)


def at(place: str) -> bool:
    """Tell the running world that the work has come to a place; true when it is to wait there."""
    answers = [hook(place) for hook in HOOKS]
    return any(answers)


class Traced(Tool):
    """Base of the tools: leaves a trace in `EFFECTS`."""

    description = "Leaves a trace."

    def call(self, input: dict[str, Any]) -> str:
        at("tool before")
        EFFECTS[self.idempotency_key] += 1
        self.state.increment("calls", 1)
        self.context.state.append("order", input.get("n", 0))
        at("tool after")
        return f"done {self.name} {input.get('n', 0)}"


class Charge(Traced):
    """Must never be repeated."""

    name = "charge"


class Fetch(Traced):
    """May be repeated."""

    name = "fetch"
    idempotent = True


class Exclusive(Traced):
    """Runs alone, in the model's order."""

    name = "exclusive"
    exclusive = True


class Asked(Traced):
    """Must never be repeated, and a person must allow it."""

    name = "asked"
    requires_approval = True


class AskedInOrder(Traced):
    """Runs alone, and a person must allow its odd numbers."""

    name = "asked_in_order"
    exclusive = True

    def requires_approval(self, input: dict[str, Any]) -> bool:
        return input.get("n", 0) % 2 == 1


class Hurried(Traced):
    """Nobody has the time to allow it."""

    name = "hurried"
    requires_approval = True
    approval_timeout_s = 0.001


class Refuse(Tool):
    """Always fails with a sentence for the model."""

    name = "refuse"
    description = "Fails."
    idempotent = True

    def call(self, input: dict[str, Any]) -> str:
        at("tool before")
        raise ToolError("the shop is closed")


class Scripted(Agent, abstract=True):
    """Base: the first word of the user's newest message chooses the script."""

    model = "script:any"
    system_prompt = ""
    limits = Limits(max_model_retries=3, max_parallel_calls=4)


class Clerk(Scripted):
    """Does everything the scripts ask for."""

    tools = (Charge, Fetch, Exclusive, Refuse, Asked, AskedInOrder, Hurried)


class Boss(Scripted):
    """Has a clerk do the work."""

    tools = (Clerk.as_tool(name="clerk", description="A clerk."), Fetch)


def _since_user(request: ModelRequest) -> tuple[str, int]:
    """Give the newest user text and how many answers followed it."""
    text, turns = "", 0
    for message in request.messages:
        if message.role == "user":
            text, turns = message.text.rpartition(FRAME)[2], 0
        elif message.role == "assistant":
            turns += 1
    return text, turns


SCRIPTS: dict[str, list[Reply]] = {
    "text": [Reply(text="Hello there, friend.", usage=USAGE)],
    "parallel": [
        Reply(text="Let me see.", tool_calls=[Call("charge", {"n": 1}), Call("fetch", {"n": 2})],
              usage=USAGE),
        Reply(text="Both are done.", usage=USAGE),
    ],
    "exclusive": [
        Reply(tool_calls=[Call("exclusive", {"n": n}) for n in (1, 2, 3)], usage=USAGE),
        Reply(text="One by one.", usage=USAGE),
    ],
    "error": [
        Reply(tool_calls=[Call("refuse"), Call("unknown", {"n": 1})], usage=USAGE),
        Reply(text="It could not be done.", usage=USAGE),
    ],
    "approvals": [
        Reply(tool_calls=[Call("asked", {"n": 1}), Call("asked", {"n": 2}),
                          Call("fetch", {"n": 3}), Call("asked", {"n": 4})], usage=USAGE),
        Reply(text="Asked and done.", usage=USAGE),
    ],
    "approvals in order": [
        Reply(tool_calls=[Call("asked_in_order", {"n": n}) for n in (1, 2, 3)], usage=USAGE),
        Reply(text="Asked in order.", usage=USAGE),
    ],
    "nobody answers": [
        Reply(tool_calls=[Call("hurried", {"n": 1})], usage=USAGE),
        Reply(text="Nobody answered.", usage=USAGE),
    ],
    "delegate": [
        Reply(tool_calls=[Call("clerk", {"input": "text"}), Call("fetch", {"n": 5}),
                          Call("clerk", {"input": "say yes"})], usage=USAGE),
        Reply(text="The clerk did it.", usage=USAGE),
    ],
    "long": [
        Reply(text=f"Step {n}.", tool_calls=[Call("fetch", {"n": n})], usage=USAGE)
        for n in range(30)
    ] + [Reply(text="The end.", usage=USAGE)],
}  # fmt: skip
# Texts whose first request fails, by run: taken once each.
FAILURES: Counter[str] = Counter()


def script(request: ModelRequest) -> Reply:
    """Answer a request by the newest user text."""
    at("model")
    text, turn = _since_user(request)
    name, _, rest = text.partition(" ")
    if name == "retry":
        FAILURES[text] += 1
        if FAILURES[text] <= 2:
            return Reply(text="No wait", error=OverloadedError("busy"), error_after_chars=5)
        return Reply(text="Third time lucky.", usage=USAGE)
    if name == "slow" and turn == 0:
        return Reply(text="First a look.", tool_calls=[Call("fetch", {"n": 1})], usage=USAGE)
    if name == "slow":
        return Reply(text="Half of a sentence", chunk_chars=8, usage=USAGE)
    if name == "bad":
        raise InvalidRequestError("the script refuses this")
    if name == "say":
        return Reply(text=rest, usage=USAGE, chunk_chars=int(1e6))
    if text in SCRIPTS:
        return SCRIPTS[text][turn]
    if name == "note":
        return Reply(text=f"Noted {rest}.", usage=USAGE)
    return SCRIPTS[name][turn]


class CastProvider(ScriptedProvider):
    """Answers by the script, and says where it is after each piece of text."""

    def __init__(self) -> None:
        super().__init__(script)

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        """Give the scripted answer; wait to be cut where a hook says so."""
        for event in super().stream(request, control):
            yield event
            if event.type == "text_delta" and at("delta"):
                control.wait(30)


def results(messages: list[Any]) -> dict[str, str]:
    """Give the tool results of a conversation by call id; each may stand there once only."""
    found: dict[str, str] = {}
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolResult):
                assert block.tool_use_id not in found, f"two results of {block.tool_use_id}"
                found[block.tool_use_id] = block.content
    return found
