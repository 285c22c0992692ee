"""The agent of `littleghost demo`: customer support with two tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from littleghost.agent import Agent
from littleghost.errors import ToolError
from littleghost.functions import tool
from littleghost.tool import Tool

ACCOUNT = "acme"
QUESTION = "Where is order 481, and can I still get a refund?"

# A real application asks its database.
_ORDERS: Mapping[str, Mapping[str, str]] = {
    "acme": {
        "481": "Order 481 left the warehouse on Monday and arrives on Thursday.",
        "502": "Order 502 waits for its payment.",
    },
    "globex": {"777": "Order 777 was delivered last week."},
}
_HELP = {
    "refunds": "Refunds are possible within 30 days of delivery; the money is back in 5 days.",
    "shipping": "Shipping takes 3 working days; parcels are tracked.",
    "invoices": "Invoices are in the account under Billing, and come by mail on request.",
}


@tool(idempotent=True)
def help_center_lookup(topic: Literal["refunds", "shipping", "invoices"]) -> str:
    """Look up a help centre entry by topic."""
    return _HELP[topic]


class OrderStatusTool(Tool):
    """Look up an order of the customer's own account."""

    name = "order_status"
    idempotent = True
    input_schema: ClassVar[Mapping[str, Any] | type[Any]] = {
        "type": "object",
        "properties": {"order_number": {"type": "string", "pattern": "^[0-9]+$"}},
        "required": ["order_number"],
        "additionalProperties": False,
    }

    def call(self, input: Any) -> str:
        """Look only where the caller may look: the account comes from the application."""
        orders = _ORDERS.get(self.invocation.context["account_id"], {})
        found = orders.get(input["order_number"])
        if found is None:
            raise ToolError(f"This account has no order {input['order_number']}.")
        return found


class SupportAgent(Agent):
    """Answers customers' questions."""

    system_prompt = (
        "You are the support agent of a small shop. Look facts up with your tools, never guess, "
        "and answer in two or three friendly sentences."
    )
    tools: ClassVar = [OrderStatusTool, help_center_lookup]

    def model(self) -> str:
        """Use the model that the caller's demo chose."""
        return str(self.invocation.context["model"])
