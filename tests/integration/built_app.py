"""What the builders of the tests refer to: functions, an agent, a tool, an error."""

from __future__ import annotations

from typing import Any

from littleghost import Agent, models, tool
from littleghost.celery.app import make_app
from littleghost.errors import ToolError
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.settings import Settings


class BusyError(ToolError):
    """Something to try again after."""


@tool(idempotent=True)
def number() -> int:
    """Give a number."""
    return 7


def script(request: ModelRequest) -> Reply | str:
    """Answer as the model's name says."""
    if request.model == "triage" and request.messages[-1].role != "tool":
        return Reply(tool_calls=[Call("number", {})])
    if request.model == "clerk":
        return f"{request.messages[0].text}: {request.messages[-1].text.splitlines()[-1]}"
    return request.model


models().connect("built", "scripted", script=script)


class ClerkAgent(Agent):
    model = "built:report on triage"


def choose(agent: Any) -> str:
    return "built:clerk"


def prompt(agent: Any) -> str:
    return str(agent.id())


def is_billing(state: Any) -> bool:
    return bool(state.result("triage").output == "billing")


def is_triage(state: Any) -> bool:
    return bool(state.result("triage").output == "triage")


def told(state: Any) -> str:
    return f"It is {state.previous_result.output}."


def report(workflow: Any) -> str:
    return f"Reported: {workflow.input.text}"


def ask_clerk(workflow: Any) -> Any:
    return workflow.invoke(ClerkAgent)


app = make_app(Settings.from_environment())
