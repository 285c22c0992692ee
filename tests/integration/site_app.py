"""The application that the fleets of the integration tests run."""

import itertools
import os
import time
from pathlib import Path
from typing import Any

from littleghost import Agent, Limits, Tool, models, tool
from littleghost.celery.app import make_app
from littleghost.errors import OverloadedError
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.settings import Settings

DIRECTORY = Path(os.environ.get("SITE_DIRECTORY", os.devnull))


def leave(text: str) -> None:
    """Append a line; one write, so that parallel writers do not mix."""
    with (DIRECTORY / "traces.txt").open("a") as file:
        file.write(text + "\n")


def hold(name: str) -> None:
    """Wait until the test creates a file."""
    leave(f"hold {name}")
    while not (DIRECTORY / name).exists():
        time.sleep(0.01)


@tool(idempotent=True)
def echo(nonce: str) -> str:
    """Say it again, and which process said it."""
    return f"{nonce} by {os.getpid()}"


@tool(timeout_s=0.3)
def endless() -> str:
    """Never end by itself."""
    while True:
        time.sleep(0.01)


class Gated(Tool):
    """Wait for a gate."""

    idempotent = True
    input_schema = {"type": "object", "properties": {"gate": {"type": "string"}}}  # noqa: RUF012

    def call(self, input: dict[str, Any]) -> str:
        hold(input["gate"])
        return "through"


@tool(queue="gpu")
def render() -> str:
    """Render where there is a GPU."""
    return f"rendered by {os.getpid()}"


_failures = itertools.count()


def script(request: ModelRequest) -> Reply | str:
    """Do what the user's message says: say TEXT, TOOL ARGUMENT, many NONCE, flaky, hold GATE."""
    asked = [message for message in request.messages if message.role == "user"][-1].text
    verb, _, rest = asked.partition(" ")
    last = request.messages[-1]
    if last.role == "tool":
        return last.content[0].content  # type: ignore[union-attr]
    if verb == "say":
        return rest
    if verb == "flaky":
        if next(_failures) == 0:
            leave("flaky")
            return Reply(error=OverloadedError("busy", retry_after_s=1.5))
        return "at last"
    if verb == "hold":
        hold(rest)
        return "held"
    if verb == "many":
        return Reply(tool_calls=[Call("echo", {"nonce": f"{rest}-{n}"}) for n in range(8)])
    inputs = {"echo": {"nonce": rest}, "gated": {"gate": rest}}
    return Reply(tool_calls=[Call(verb, inputs.get(verb, {}))])


models().connect("site", "scripted", script=script)


class SiteAgent(Agent):
    model = "site:script"
    system_prompt = os.environ.get("SITE_PROMPT", "You test.")
    tools = [echo, endless, Gated, render]  # noqa: RUF012
    limits = Limits(max_turns=5)


app = make_app(Settings.from_environment())
