"""Agents whose model answers from a script, and what tests look at in their runs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from littleghost import Agent, Message, Run, models
from littleghost.messages import ToolResult
from littleghost.providers.scripted import Call, Reply, Script, ScriptedProvider
from littleghost.wiring import runtime
from tests.faults.fleet import wait_until

T = TypeVar("T")
WAIT_S = 20.0
_numbers = itertools.count()


def make_agent(script: Script, *tools: Any, **attributes: Any) -> type[Any]:
    """Make an agent class with a model connection of its own; `brain.requests` is what it asked."""
    number = next(_numbers)
    brain = ScriptedProvider(script)
    models().connect(f"brain{number}", brain)
    body = {"model": f"brain{number}:m", "tools": list(tools), "brain": brain, **attributes}
    return type(f"Scripted{number}Agent", (Agent,), {**body, "__module__": __name__})


def calls(*names: str | tuple[str, Mapping[str, Any]], **options: Any) -> Reply:
    """Write an answer that calls tools: names, or names with an input."""
    pairs = [(name, {}) if isinstance(name, str) else name for name in names]
    return Reply(tool_calls=[Call(name, value) for name, value in pairs], **options)


def results(run: Run) -> list[tuple[str, str]]:
    """Give status and text of each tool result of a completed run, in the conversation's order."""
    assert run.result is not None, run.error
    return results_in(run.result.messages)


def results_in(messages: Any) -> list[tuple[str, str]]:
    return [
        (block.status, block.content)
        for message in messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]


def kinds(run: Run) -> list[str]:
    """Give the types of a run's events, agent events by their own."""
    return [event.inner_type for event in run.events()]


def event_data(run: Run, kind: str) -> list[Any]:
    """Give the data of a run's events of a type."""
    return [event.inner["data"] for event in run.events() if event.inner_type == kind]


def terminals(run: Run) -> list[str]:
    return [event.type for event in run.events() if event.is_terminal]


def run_keys() -> set[str]:
    """Give the keys of runs and sessions, and what the indexes of runs hold."""
    client = runtime().client
    found = {key for key in client.scan_iter("lg:{*", count=1000) if ":r:" in key or ":s:" in key}
    for key in client.scan_iter("lg:{*:runs"):
        found.update(f"{key}/{member}" for member in client.zrange(key, 0, -1))
    return found


def texts(messages: Any) -> list[tuple[str, str]]:
    """Give role and text of messages."""
    return [(message.role, message.text) for message in messages]


def is_valid_for_providers(messages: Any) -> bool:
    """Say whether every tool call is followed at once by its results, and no result is alone."""
    open_calls: set[str] = set()
    for message in messages:
        answered = {block.tool_use_id for block in message.content if isinstance(block, ToolResult)}
        if not answered <= open_calls:
            return False
        open_calls -= answered
        if message.role in ("user", "assistant") and not answered and open_calls:
            return False
        open_calls |= {use.id for use in message.tool_uses}
    return not open_calls


class Gate:
    """Holds tools until the test opens it, and counts who has come."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._lock = threading.Lock()
        self.arrived: list[Any] = []

    def enter(self, who: Any = None) -> None:
        with self._lock:
            self.arrived.append(who)
        assert self._open.wait(WAIT_S), "nobody opened the gate"

    def open(self) -> None:
        self._open.set()

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.arrived) >= count, f"{count} arrived, {self.arrived}")


def until(condition: Callable[[], T], what: str) -> T:
    return wait_until(condition, what, WAIT_S)


def last_request(agent: type[Any]) -> list[Message]:
    return list(agent.brain.requests[-1].messages)
