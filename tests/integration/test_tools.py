"""What a tool call gives the model: checked input, safe errors, text that fits (P7, P8, P12)."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pydantic
import pytest

from littleghost import Limits, Tool, ToolError, tool
from littleghost.providers.scripted import Call, Reply
from tests.faults.fleet import wait_until
from tests.integration.scripted import (
    Gate,
    calls,
    last_request,
    make_agent,
    results,
    results_in,
    until,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]

SECRET = "/srv/app/secrets.py token=hunter2"


class WithSchema(Tool):
    """Order by a schema."""

    name = "order"
    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"size": {"enum": ["S", "M"]}, "count": {"type": "integer", "minimum": 1}},
        "required": ["size", "count"],
        "additionalProperties": False,
    }

    def call(self, input: dict[str, Any]) -> str:
        return f"{input['count']} of {input['size']}"


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    size: Literal["S", "M"]
    count: int = pydantic.Field(ge=1)


class WithModel(Tool):
    """Order by a model."""

    name = "order"
    input_schema = Order

    def call(self, input: Order) -> str:
        assert isinstance(input, Order)
        return f"{input.count} of {input.size}"


@tool(name="order")
def with_types(size: Literal["S", "M"], count: int) -> str:
    """Order by types."""
    return f"{count} of {size}"


@pytest.mark.parametrize("declared", [WithSchema, WithModel, with_types])
def test_input_is_checked_before_the_call_and_every_error_is_told_at_once(declared: Any) -> None:
    bad = {"size": "XL", "count": "many", "colour": "red"}
    agent = make_agent(
        [calls(("order", bad), ("order", {"size": "M", "count": 2})), "done"], declared
    )
    run = agent.ask("Go")

    (status, text), good = results(run)
    assert status == "error"
    assert text.startswith("Invalid tool input: ")
    for field in ("size", "count", "colour"):
        assert field in text
    assert good == ("success", "2 of M")
    [spec] = agent.brain.requests[0].tools
    assert spec.name == "order"
    assert set(spec.input_schema["properties"]) == {"size", "count"}


@pytest.mark.parametrize("value", [None, [], "text", 7], ids=["null", "list", "text", "number"])
def test_an_input_that_is_no_object_is_an_error_the_model_can_read(value: Any) -> None:
    """The adapter says what was wrong; the tool is not called."""
    from littleghost.messages import Message, ToolUse
    from littleghost.providers.base import ModelEvent, ModelResponse

    called: list[Any] = []

    @tool
    def note(text: str = "") -> str:
        """Note."""
        called.append(text)
        return "noted"

    class Brain:
        def stream(self, request: Any, control: Any) -> Any:
            if len(request.messages) > 2:
                message, finish = Message("assistant", ()), "stop"
            else:
                use = ToolUse("c1", "note", {}, str(value), "the arguments are no JSON object")
                message, finish = Message("assistant", (use,)), "tool_calls"
            yield ModelEvent("message_stop", {}, ModelResponse(message=message, finish=finish))

        def close(self) -> None: ...

    from littleghost import models

    models().connect("broken-arguments", Brain())
    run = make_agent([], note, model="broken-arguments:m").ask("Go")
    assert results(run) == [("error", "Invalid tool input: the arguments are no JSON object")]
    assert called == []


def test_a_tool_error_is_shown_and_any_other_exception_only_named() -> None:
    """P8."""

    @tool
    def refuse() -> str:
        """Refuse."""
        raise ToolError("closed on Sundays")

    @tool
    def crash() -> str:
        """Crash."""
        raise FileNotFoundError(SECRET)

    @tool
    def chained() -> str:
        """Crash with a cause."""
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            raise KeyError("x") from error

    agent = make_agent([calls("refuse", "crash", "chained"), "done"], refuse, crash, chained)
    run = agent.ask("Go")

    assert results(run) == [
        ("error", "closed on Sundays"),
        ("error", "Tool failed (FileNotFoundError)"),
        ("error", "Tool failed (KeyError)"),
    ]
    assert "hunter2" not in repr(last_request(agent))
    assert "hunter2" not in repr([event.to_json() for event in run.events()])


class OddError(BaseException):
    """No Exception, as some libraries' timeouts are."""


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit, OddError]
)
def test_an_exception_that_is_no_error_is_a_result_as_well(error: type[BaseException]) -> None:
    """P5: the call lets go of its lease, the worker lives, the run goes on."""

    @tool
    def odd() -> str:
        """Raise."""
        raise error(SECRET)

    run = make_agent([calls("odd"), "done"], odd).enqueue("Go").wait(10)
    assert run.response == "done"
    assert results(run) == [("error", f"Tool failed ({error.__name__})")]


def test_an_async_tool_runs_to_its_end() -> None:
    @tool
    async def slow() -> str:
        """Wait a little."""
        await asyncio.sleep(0)
        return "slept"

    run = make_agent([calls("slow"), "done"], slow).ask("Go")
    assert results(run) == [("success", "slept")]


class TestUnknown:
    """The model calls what is not there."""

    def test_it_is_told_what_there_is_and_the_other_calls_run(self) -> None:
        agent = make_agent([calls("nothing", ("order", {"size": "S", "count": 1})), "done"])
        agent = type("KnowsOneAgent", (agent,), {"tools": [WithSchema]})
        run = agent.ask("Go")
        (status, text), good = results(run)
        assert status == "error"
        assert "Unknown tool: nothing" in text
        assert "order" in text
        assert good == ("success", "1 of S")

    def test_a_name_with_anything_in_it_is_repeated_only_in_part(self) -> None:
        name = "x\ud800\0" + "y" * 10_000
        run = make_agent([Reply(tool_calls=[Call(name, {})]), "done"], with_types).ask("Go")
        [(status, text)] = results(run)
        assert status == "error"
        assert len(text) < 200
        text.encode()

    def test_a_model_that_never_learns_is_stopped_by_the_turn_limit(self) -> None:
        agent = make_agent(lambda _: calls("nothing"), with_types, limits=Limits(max_turns=4))
        run = agent.ask("Go")
        assert run.error is not None
        assert run.error.code == "max_turns"


class TestTimeout:
    """timeout_s in a pool of threads; nothing can interrupt the code, so its result is dropped."""

    def test_the_model_hears_of_it_and_what_the_tool_says_later_is_dropped(self) -> None:
        gate = Gate()
        returned: list[str] = []

        @tool(timeout_s=0.2)
        def slow(tool: Any) -> str:
            """Be slow."""
            tool.context.state["touched"] = True
            gate.enter(tool)
            returned.append("late")
            return "late"

        run = make_agent([calls("slow"), "done"], slow).ask("Go")
        assert results(run) == [("error", "The tool did not finish within 0.2 s.")]
        assert gate.arrived[0].cancellation.is_cut
        gate.open()
        wait_until(lambda: returned, "the abandoned code ended")
        assert run.result is not None
        assert run.result.state == {}
        assert results(run) == [("error", "The tool did not finish within 0.2 s.")]

    def test_a_tool_that_looks_at_its_cancellation_ends_early(self) -> None:
        ended: list[str] = []

        @tool(timeout_s=0.1)
        def polite(tool: Any) -> str:
            """Look."""
            try:
                tool.cancellation.wait(20)
            finally:
                ended.append("now")
            return ""

        run = make_agent([calls("polite"), "done"], polite).ask("Go")
        assert run.response == "done"
        until(lambda: ended, "the tool noticed")

    def test_a_tool_within_its_time_is_untouched(self) -> None:
        @tool(timeout_s=20)
        def quick() -> str:
            """Be quick."""
            return "quick"

        run = make_agent([calls("quick"), "done"], quick).ask("Go")
        assert results(run) == [("success", "quick")]


@pytest.mark.parametrize("kind", ["value", "error"])
def test_a_long_result_is_cut_in_the_middle_and_names_its_size(kind: str) -> None:
    text = "A" * 30_000 + "Z" * 30_000

    @tool
    def long() -> str:
        """Say much."""
        if kind == "error":
            raise ToolError(text)
        return text

    agent = make_agent([calls("long"), "done"], long, limits=Limits(max_tool_result_tokens=100))
    run = agent.ask("Go")
    [(_, shown)] = results_in(last_request(agent))
    assert len(shown.encode()) <= 400
    assert shown.startswith("AAA")
    assert shown.endswith("ZZZ")
    assert "60000 bytes" in shown
    assert results(run) == [("success" if kind == "value" else "error", shown)]
