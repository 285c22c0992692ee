"""The graph of `littleghost demo`: customer support.

triage ─┬─ billing and policies, at once ─┬─ respond
        └─ general ───────────────────────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from littleghost.agent import Agent
from littleghost.demo.model import RESPOND, STAND_IN, TRIAGE
from littleghost.errors import ToolError
from littleghost.functions import tool
from littleghost.graph import Edge, Graph, Node, State
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


class DemoAgent(Agent, abstract=True):
    """Has the model that the caller of the demo chose."""

    stand_in: ClassVar[str] = STAND_IN

    def model(self) -> str:
        """Use it; a stand-in plays the part of this agent."""
        chosen = str(self.invocation.context["model"])
        return self.stand_in if chosen == STAND_IN else chosen


class TriageAgent(DemoAgent):
    """Sorts questions."""

    stand_in = TRIAGE
    system_prompt = (
        "You sort customers' questions for a small shop. Answer with one word and nothing else: "
        "billing if it is about an order, a payment, a refund or an invoice, else general."
    )


class BillingAgent(DemoAgent):
    """Knows the orders."""

    system_prompt = (
        "You know the orders of a small shop. Look up the orders that the customer names with "
        "your tool, never guess, and report what you found in a sentence or two."
    )
    tools: ClassVar = [OrderStatusTool]


class PoliciesAgent(DemoAgent):
    """Knows the rules."""

    system_prompt = (
        "You know the rules of a small shop. Look up those that the question is about with your "
        "tool, never guess, and report what they say in a sentence or two."
    )
    tools: ClassVar = [help_center_lookup]


class GeneralAgent(DemoAgent):
    """Helps with everything else."""

    system_prompt = (
        "You answer general questions of a small shop's customers. Look facts up with your tool, "
        "never guess, and say so if you do not know."
    )
    tools: ClassVar = [help_center_lookup]


class RespondAgent(DemoAgent):
    """Writes to the customer."""

    stand_in = RESPOND
    system_prompt = (
        "You write to the customers of a small shop. Answer the question in two or three friendly "
        "sentences, from what your colleagues found out and from nothing else."
    )


def is_billing(state: State) -> bool:
    """Say whether triage sent the question to billing."""
    return "billing" in str(state.result("triage").output).lower()


class SupportGraph(Graph):
    """Sorts a question, looks up what it needs, at once, and answers."""

    # Their code sees the caller's context: the account, and the model.
    nodes: ClassVar = {
        "triage": Node(TriageAgent, context=True),
        "billing": Node(BillingAgent, context=True),
        "policies": Node(PoliciesAgent, context=True),
        "general": Node(GeneralAgent, context=True),
        "respond": Node(RespondAgent, context=True),
    }
    start = "triage"
    edges: ClassVar = [
        Edge("triage", ["billing", "policies"], when=is_billing),
        Edge("triage", "general"),
        Edge(["billing", "policies"], "respond"),
        Edge("general", "respond"),
    ]
    finish = "respond"
