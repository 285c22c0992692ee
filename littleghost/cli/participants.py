"""The participants of a run as a watcher sees them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from littleghost.cli.conversation import arguments_text
from littleghost.cli.escape import one_line
from littleghost.usage import Usage

State = Literal["running", "again", "done", "failed", "stopped"]
KEPT_CALLS = 8
# Of a streaming text, what a region of a few lines can show.
TAIL_CHARS = 4_000
NAME_CHARS = 60
SAID_CHARS = 300


@dataclass(slots=True)
class Turn:
    """A model turn that is going on; `began` is None if nobody saw it begin."""

    number: int
    began: float | None
    text: str = ""
    reasoning: bool = False


@dataclass(slots=True)
class Call:
    """A tool call; its texts are safe to print.

    Attributes:
        state: asks is waiting for a person.
        asked: The id by which a person answers.
    """

    name: str
    arguments: str
    began: float | None
    state: Literal["running", "asks", "ok", "error"] = "running"
    seconds: float | None = None
    result: str = ""
    asked: str = ""


@dataclass(slots=True)
class Participant:
    """One participant; its texts are safe to print, but for a turn's.

    Attributes:
        key: The id of its step, or its own; empty for the root.
        kind: agent, workflow, swarm or graph, where an event has said it.
        after: Which participants it follows.
        waits: The signal it waits for.
        said: The beginning of what it said last.
        folded: Participants below it that have ended and are not kept.
        operation: Whose events it is told by at present: that of the newest attempt.
        ways: Of a composite, who is followed by whom next: predecessors by name.
    """

    key: str
    name: str
    parent: Participant | None = None
    kind: str = ""
    state: State = "running"
    began: float | None = None
    seconds: float | None = None
    attempt: int = 1
    usage: Usage = field(default_factory=Usage)
    turn: Turn | None = None
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    after: str = ""
    waits: str = ""
    said: str = ""
    why: str = ""
    children: dict[str, Participant] = field(default_factory=lambda: dict[str, Participant]())
    folded: int = 0
    operation: str = ""
    ways: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is expected of it."""
        return self.state in ("done", "failed", "stopped")


def model_event(place: Participant, inner: str, data: Mapping[str, Any]) -> None:
    """Take in what its model does in a turn."""
    turn = place.turn
    if inner == "model_stop":
        place.usage += Usage.from_json(data.get("usage") or {})
        place.said = one_line(said(data) or (turn.text if turn else ""), SAID_CHARS) or place.said
        place.turn = None
    elif turn is None and inner in ("text_delta", "reasoning_delta"):
        place.turn = turn = Turn(0, None)
    if turn is None:
        return
    if inner == "text_delta":
        turn.text = (turn.text + str(data.get("text", "")))[-TAIL_CHARS:]
    elif inner == "reasoning_delta":
        turn.reasoning = True
    elif inner == "model_retry":
        # What that attempt said is withdrawn.
        turn.text = ""


def tool_event(place: Participant, inner: str, data: Mapping[str, Any], now: float | None) -> None:
    """Take in that a call begins or ends."""
    use = data.get("tool_use") or {}
    key = str(use.get("id", ""))
    if inner == "tool_start":
        # The ids of a new turn's calls are its own; calls of earlier turns have ended.
        place.calls[key] = call_of(use, now)
        while len(place.calls) > KEPT_CALLS:
            ended = next((k for k, c in place.calls.items() if c.state in ("ok", "error")), None)
            if ended is None:
                break
            del place.calls[ended]
        return
    result = data.get("result") or {}
    call = place.calls.setdefault(key, call_of(use, None))
    call.state = "ok" if result.get("status") == "success" else "error"
    call.result = one_line(str(result.get("content", "")), SAID_CHARS)
    if now is not None and call.began is not None:
        call.seconds = now - call.began


def call_of(use: Mapping[str, Any], now: float | None) -> Call:
    """Make a call of a tool_use."""
    return Call(one_line(str(use.get("name", "")), 64), arguments_text(use.get("input") or {}), now)


def said(data: Mapping[str, Any]) -> str:
    """Give the text of the answer in a model_stop."""
    message = (data.get("response") or {}).get("message") or {}
    blocks = message.get("content") or ()
    return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def count(value: object) -> int:
    """Read a number; what is none is 0."""
    return value if isinstance(value, int) else 0
