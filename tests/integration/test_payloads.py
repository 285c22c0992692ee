"""Odd and large values go all the way: tool, journal, events, next requests, other turns (P12)."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from littleghost import Run, tool
from littleghost.messages import Message, ToolUse
from littleghost.providers.base import ModelEvent, ModelResponse
from littleghost.providers.scripted import Call, Reply
from littleghost.wiring import Runtime
from tests.integration.scripted import calls, last_request, make_agent, results, results_in

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


class Color(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int


def strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def check_stored(run: Run, agent: Any) -> None:
    """Everything that leaves is strict JSON in valid UTF-8, and the last request is as stored."""
    for event in run.events():
        strict(json.dumps(event.to_json(), ensure_ascii=False).encode().decode())
    for request in agent.brain.requests:
        for message in request.messages:
            strict(json.dumps(message.to_json(), ensure_ascii=False).encode().decode())
    assert run.result is not None
    asked = [message for message in last_request(agent) if message.role != "system"]
    assert list(run.result.messages)[: len(asked)] == asked


def give(value: Any, *, turns: int = 3) -> tuple[Run, Any]:
    """Have a tool give a value, take some more turns, and go on in the session after that."""

    @tool
    def odd() -> Any:
        """Give."""
        return value

    @tool
    def plain() -> str:
        """Give text."""
        return "plain"

    agent = make_agent([calls("odd"), *[calls("plain")] * turns, "done"], odd, plain)
    run = agent.ask("Go", session_id=f"payload-{id(value)}")
    assert run.outcome == "completed", run.error
    check_stored(run, agent)
    again = agent.ask("Go on", session_id=f"payload-{id(value)}")
    assert again.outcome == "completed", again.error
    return run, agent


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("10.10"), "10.10"),
        (datetime(2026, 1, 15, 10, 0, tzinfo=UTC), "2026-01-15T10:00:00+00:00"),
        (datetime(2026, 1, 15, 10, 0), "2026-01-15T10:00:00"),  # noqa: DTZ001
        (date(2026, 1, 15), "2026-01-15"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Path("/x"), "/x"),
        (Color.RED, "red"),
        ({"raw": b"\xff\x00"}, '{"raw":{"base64":"/wA="}}'),
        ({3, 1, 2}, "[1,2,3]"),
        ((1, 2), "[1,2]"),
        (2**70, str(2**70)),
        ({1: "a", None: "b"}, '{"1":"a","null":"b"}'),
        (Point(1, 2), '{"x":1,"y":2}'),
        (None, ""),
        ("", ""),
        ({"dec": Decimal("1.0")}, '{"dec":"1.0"}'),
        ("ok \ud83d end \udc00 " + "🦀" + " café", "ok \ufffd end \ufffd 🦀 café"),
        ("a\0b", "a\ufffdb"),
        ("\ud83e\udd80", "🦀"),
        ({"k\ud800": "v\0"}, '{"k\ufffd":"v\ufffd"}'),
    ],
)
def test_a_value_is_shown_in_one_form(value: Any, shown: str) -> None:
    run, _ = give(value, turns=1)
    assert results(run)[0] == ("success", shown)


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: Any = "bottom"
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [float("nan")]}, "$.a[0]"),
        ({"inf": float("-inf")}, "$.inf"),
        ({"x": {(1, 2): "c"}}, "$.x"),
        (CYCLE, "$[0]"),
        (DEEP, "deep"),
        ({"o": object()}, "$.o"),
    ],
)
def test_a_value_without_a_json_form_is_a_clear_error_and_the_run_goes_on(
    value: Any, place: str
) -> None:
    run, _ = give(value)
    status, text = results(run)[0]
    assert status == "error"
    assert "cannot be shown" in text
    assert place in text
    assert results(run)[1:] == [("success", "plain")] * 3


def test_64_megabytes_of_text_are_bounded_everywhere(embedded: Runtime) -> None:
    run, agent = give("x" * (64 << 20))
    [(_, text)] = results_in(last_request(agent))[:1]
    assert len(text) <= 40_000
    assert str(64 << 20) in text
    client = embedded.client
    stored = sum(client.memory_usage(key) or 0 for key in client.scan_iter(f"*{run.id}*"))
    assert stored < 1 << 20


def test_many_turns_with_large_results_grow_linearly(embedded: Runtime) -> None:
    """P10: the journal of 40 turns takes about four times that of 10."""

    @tool
    def big(n: int) -> str:
        """Give much."""
        return f"{n}:" + "x" * 20_000

    sizes = {}
    for turns in (10, 40):
        script = [calls(("big", {"n": n})) for n in range(turns)]
        run = make_agent([*script, "done"], big).ask("Go")
        assert run.outcome == "completed"
        client = embedded.client
        sizes[turns] = sum(
            client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(f"*{run.id}*")
        )
    assert sizes[40] < 5 * sizes[10]
    assert sizes[40] < 1.5 * 40 * 20_000


class RawBrain:
    """An adapter that cleans nothing: text and input as the test gives them."""

    def __init__(self, text: str, value: Any) -> None:
        self._text, self._value = text, value
        self.requests: list[Any] = []

    def stream(self, request: Any, control: Any) -> Any:
        self.requests.append(request)
        turn = sum(message.role == "assistant" for message in request.messages)
        yield ModelEvent("text_delta", {"text": self._text})
        blocks: list[Any] = []
        if turn < 3:
            use = ToolUse(f"c{turn}", "echo", {"value": self._value}, None)
            yield ModelEvent("tool_call_stop", {"index": 0, "tool_use": use.to_json()})
            blocks = [use]
        from littleghost.messages import Text

        message = Message("assistant", (Text(self._text), *blocks))
        finish = "tool_calls" if blocks else "stop"
        yield ModelEvent("message_stop", {}, ModelResponse(message=message, finish=finish))

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("text", "value", "said", "result"),
    [
        ("\ud99c caf\u00e9 \0", "\ud99c \u3131", "\ufffd café \ufffd", ("success", "\ufffd ㄱ")),
        ("fine", "\ud83e\udd80", "fine", ("success", "🦀")),
        ("fine", float("nan"), "fine", ("error", "arguments.value")),
        ("fine", DEEP, "fine", ("error", "deep")),
        ("fine", {"o": object()}, "fine", ("error", "arguments.value.o")),
        ("fine", 2**70, "fine", ("success", str(2**70))),
    ],
    ids=["surrogate", "pair", "nan", "deep", "object", "big"],
)
def test_what_a_careless_adapter_gives_holds_up_nothing(
    text: str, value: Any, said: str, result: tuple[str, str]
) -> None:
    """P12: every run ends, with text that every store and service takes."""
    from littleghost import models

    @tool
    def echo(value: Any) -> Any:
        """Echo."""
        return value

    brain = RawBrain(text, value)
    models().connect("raw", brain)
    agent = make_agent([], echo, model="raw:m", brain=brain)
    run = agent.enqueue("Go").wait(15)

    assert (run.outcome, run.response) == ("completed", said)
    check_stored(run, agent)
    for status, shown in results(run):
        assert status == result[0]
        assert result[1] in shown
    assert len(results(run)) == 3
    other = make_agent(["other runs are well"]).ask("Go")
    assert "".join(event.text for event in other.events()) == "other runs are well"


def test_a_users_message_is_cleaned_and_goes_through_unchanged_otherwise() -> None:
    agent = make_agent(["ok"])
    agent.ask("lone \ud83d pair \ud83e\udd80 nul \0 café\r\n")
    assert last_request(agent)[-1].text == "lone \ufffd pair 🦀 nul \ufffd café\r\n"


def test_large_arguments_and_messages_go_through() -> None:
    @tool
    def measure(text: str) -> str:
        """Measure."""
        return str(len(text))

    reply = Reply(tool_calls=[Call("measure", {"text": "ü" * 300_000})])
    agent = make_agent([reply, "done"], measure)
    run = agent.ask("m" * 1_000_000)
    assert results(run) == [("success", "300000")]
    check_stored(run, agent)
