"""Which tools an agent has: by condition, by provider, by base class, at run time."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost import Tool, tool
from littleghost.context import Binding
from littleghost.wiring import Runtime
from tests.integration.scripted import calls, make_agent, results

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


class Probe(Tool):
    """Remember what was given."""

    seen: list[Tool] = []  # noqa: RUF012

    def call(self, input: dict[str, Any]) -> str:
        type(self).seen.append(self)
        return "ok"


@pytest.fixture(autouse=True)
def forget() -> None:
    Probe.seen.clear()


class TestAvailability:
    """available_if decides for each turn and each call."""

    def offered(self, agent: type[Any]) -> list[list[str]]:
        return [[spec.name for spec in request.tools] for request in agent.brain.requests]

    def test_by_the_callers_context(self) -> None:
        class Refund(Tool):
            """Refund."""

            available_if = staticmethod(
                lambda binding: binding.invocation.context.get("role") == "clerk"
            )

            def call(self, input: dict[str, Any]) -> str:
                return "refunded"

        agent = make_agent([calls("refund"), "done"], Refund, Probe)
        clerk = agent.ask("Go", context={"role": "clerk"})
        other = agent.ask("Go", context={"role": "guest"})

        assert results(clerk) == [("success", "refunded")]
        [(status, text)] = results(other)
        assert status == "error"
        assert text == "Unknown tool: refund. Available tools: probe"
        assert self.offered(agent) == [["refund", "probe"]] * 2 + [["probe"]] * 2

    def test_by_what_tools_have_put_into_the_state(self) -> None:
        @tool
        def unlock(tool: Any) -> str:
            """Unlock."""
            tool.context.state["open"] = True
            return "open"

        @tool(available_if=lambda binding: binding.context.state.get("open", False))
        def enter() -> str:
            """Enter."""
            return "inside"

        agent = make_agent([calls("unlock"), calls("enter"), "done"], unlock, enter)
        run = agent.ask("Go")
        assert self.offered(agent) == [["unlock"], ["unlock", "enter"], ["unlock", "enter"]]
        assert results(run)[-1] == ("success", "inside")

    def test_an_agent_may_hide_tools_from_single_turns(self) -> None:
        agent = make_agent([calls("probe"), "done"], Probe)
        hiding = type(
            "HidingAgent",
            (agent,),
            {"offered": lambda self, specs, turn: [] if turn else specs},
        )
        hiding.ask("Go")
        assert self.offered(agent) == [["probe"], []]


class Desk:
    """A provider whose tools share one resource for a turn or call."""

    log: list[str] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.log.append("open desk")

    def tools(self, binding: Binding) -> Any:
        made = [
            type(name, (DeskTool,), {"description": name, "desk": self})
            for name in ("Pen", "Paper")
        ]
        return [made, None, [Probe]]

    def close(self) -> None:
        self.log.append("close desk")


class DeskTool(Tool):
    desk: Any = None

    def call(self, input: dict[str, Any]) -> str:
        Desk.log.append(f"use {self.name}")
        return self.name

    def close(self) -> None:
        Desk.log.append(f"close {self.name}")


def test_a_providers_tools_are_used_and_closed_before_it() -> None:
    Desk.log.clear()
    agent = make_agent([calls("pen"), "done"], Desk)
    run = agent.ask("Go")

    assert results(run) == [("success", "pen")]
    assert [spec.name for spec in agent.brain.requests[0].tools] == ["pen", "paper", "probe"]
    turn = ["open desk", "close desk"]
    call = ["open desk", "use pen", "close pen", "close desk"]
    assert Desk.log == turn + call + turn


def test_a_providers_tool_without_a_description_fails_the_run_by_name() -> None:
    class Careless:
        def tools(self, binding: Binding) -> Any:
            return [type("Silent", (Tool,), {"call": lambda self, value: ""})]

    run = make_agent(["never"], Careless).ask("Go")
    assert run.error is not None
    assert run.error.code == "definition"
    assert "Silent" in run.error.detail


def test_tools_of_the_bases_come_first_and_add_up() -> None:
    @tool
    def more() -> str:
        """Do more."""
        return "more"

    base = make_agent([calls("probe", "more"), "done"], Probe)
    child = type("ChildAgent", (base,), {"tools": [more, Probe]})
    run = child.ask("Go")
    assert [status for status, _ in results(run)] == ["success", "success"]
    assert [spec.name for spec in base.brain.requests[0].tools] == ["probe", "more"]


def test_a_tool_can_be_defined_from_a_function_at_run_time() -> None:
    made = Tool.define(
        name="greet",
        description="Greet.",
        input_schema={"type": "object", "properties": {"who": {"type": "string"}}},
        call=lambda value, tool: f"Hello {value['who']} from {tool.run.actor_id}",
    )
    run = make_agent([calls(("greet", {"who": "Bob"})), "done"], made).ask("Go", actor_id="ann")
    assert results(run) == [("success", "Hello Bob from ann")]


def test_a_tool_with_a_queue_of_its_own_waits_there(embedded: Runtime) -> None:
    @tool(queue="gpu")
    def render() -> str:
        """Render."""
        return "rendered"

    run = make_agent([calls("render"), "done"], render).enqueue("Go")
    from tests.integration.scripted import until

    until(lambda: embedded.client.llen("lg.gpu"), "the call waits in its queue")
    [task] = [task for task in run.refresh().record.tasks.values() if task["k"] == "call"]
    assert task["q"] == "lg.gpu"
    run.cancel()
    assert run.wait(10).outcome == "cancelled"
    embedded.client.delete("lg.gpu")
