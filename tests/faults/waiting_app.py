"""What waits for people and other programs in the fault tests; workers import it, too."""

from littleghost import Agent, Tool, Workflow, models
from littleghost.engine.interjection import FRAME
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Reply
from tests.faults.fleet_app import leave_trace, script


def polite_script(request: ModelRequest) -> Reply | str:
    """Answer what comes in between, and else as the other agents do."""
    return "I do." if request.messages[-1].text.startswith(FRAME) else script(request)


models().connect("polite", "scripted", script=polite_script)


class Pay(Tool):
    """Pay money back."""

    name = "pay"
    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "required": ["key"],
    }
    requires_approval = True

    def call(self, input):
        leave_trace(f"pay {input['key']}")
        return f"paid {input['key']}"


class Payer(Agent):
    model = "polite:script"
    tools = [Pay]  # noqa: RUF012


class DeliveryWorkflow(Workflow):
    """Acts, waits for the world, acts again."""

    def perform(self):
        self.step(lambda: leave_trace("order"), name="order")
        arrived = self.wait_for("arrived")
        self.step(lambda: leave_trace("unpack"), name="unpack")
        return f"got {arrived['what']}"
