"""The application of the fleet whose journal is on a Redis Cluster."""

from typing import Any

from littleghost import Agent, Tool, Workflow, models
from littleghost.errors import InvalidRequestError
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from tests.integration.site_app import DIRECTORY, SiteAgent, app

__all__ = ["app"]


class Refund(Tool):
    """Pay money back."""

    name = "refund"
    input_schema = {"type": "object", "properties": {"n": {"type": "integer"}}}  # noqa: RUF012
    requires_approval = True

    def call(self, input: dict[str, Any]) -> str:
        return f"paid {input['n']}"


def clerk_script(request: ModelRequest) -> Reply | str:
    """Ask for a refund, say how often it was asked, or fail until a file is there."""
    asked = [message.text for message in request.messages if message.role == "user"]
    last = request.messages[-1]
    if last.role == "tool":
        return last.content[0].content  # type: ignore[union-attr]
    if asked[-1] == "refund":
        return Reply(tool_calls=[Call("refund", {"n": 7})])
    if asked[-1] == "fail" and not (DIRECTORY / "mended").exists():
        return Reply(error=InvalidRequestError("not now"))
    return f"asked {len(asked)} times"


models().connect("clerk", "scripted", script=clerk_script)


class Clerk(Agent):
    model = "clerk:script"
    tools = [Refund]  # noqa: RUF012


class Fan(Workflow):
    """Three agents at once, then a signal."""

    def perform(self) -> Any:
        told = self.parallel(*[self.invoke(SiteAgent, input=f"say {n}") for n in range(3)])
        return f"{' '.join(told)} {self.wait_for('go', timeout_s=60)}"
