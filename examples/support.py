"""A support agent with two tools, in a module that workers can import.

littleghost run examples.support:SupportAgent "Where is order 481?" --context account_id=acme
"""

from typing import Literal

from littleghost import Agent, Tool, ToolError, tool
from littleghost.demo import model_or_stand_in

ORDERS = {("acme", "481"): "Order 481 left the warehouse on Monday and arrives on Thursday."}
HELP = {
    "refunds": "Refunds are possible within 30 days of delivery.",
    "shipping": "Shipping takes 3 working days.",
}


@tool(idempotent=True)
def help_center_lookup(topic: Literal["refunds", "shipping"]) -> str:
    """Look up a help centre entry by topic."""
    return HELP[topic]


class OrderStatus(Tool):
    """Look up an order of the customer's own account."""

    name = "order_status"
    idempotent = True
    input_schema = {
        "type": "object",
        "properties": {"order_number": {"type": "string"}},
        "required": ["order_number"],
        "additionalProperties": False,
    }

    def call(self, input):
        # The account comes from the application, never from the model.
        account = self.invocation.context["account_id"]
        found = ORDERS.get((account, input["order_number"]))
        if found is None:
            raise ToolError(f"This account has no order {input['order_number']}.")
        return found


class SupportAgent(Agent):
    # The environment's model, or a scripted stand-in without one; or "openai:gpt-5.6-luna".
    model = model_or_stand_in
    system_prompt = "Answer customers' questions. Look facts up with your tools, never guess."
    tools = [OrderStatus, help_center_lookup]
