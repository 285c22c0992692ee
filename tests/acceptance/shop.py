"""Agents for the command line's tests; workers import this module."""

from littleghost import Agent, Edge, ErrorEdge, Graph, Swarm, Tool, Workflow, models, tool
from littleghost.errors import InvalidRequestError
from littleghost.providers.scripted import Call, Reply, ScriptedProvider

# A title change, a cleared screen, a hidden direction change, and rich markup.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e[bold red]x[/bold red]"


@tool(idempotent=True)
def hostile(text: str) -> str:
    """Give back what no terminal should obey."""
    return HOSTILE


def _hostile_script(request):
    if request.messages[-1].role == "tool":
        return Reply(text=f"done {HOSTILE}")
    return Reply(text=f"look {HOSTILE}", tool_calls=[Call("hostile", {"text": HOSTILE})])


models().connect("shop-hostile", ScriptedProvider(_hostile_script))
models().connect(
    "shop-echo", ScriptedProvider(lambda request: f"you said {request.messages[-1].text}")
)
models().connect("shop-slow", ScriptedProvider([Reply(text="word " * 5000, chunk_delay_s=0.05)]))
models().connect("shop-bad", ScriptedProvider([Reply(error=InvalidRequestError("no such thing"))]))


class EchoAgent(Agent):
    model = "shop-echo:any"


class HostileAgent(Agent):
    model = "shop-hostile:any"
    tools = (hostile,)


class SlowAgent(Agent):
    model = "shop-slow:any"


class BadAgent(Agent):
    model = "shop-bad:any"


class Refund(Tool):
    """Pay money back."""

    name = "refund"
    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"eur": {"type": "integer"}},
        "required": ["eur"],
        "additionalProperties": False,
    }
    requires_approval = True

    def call(self, input):
        return f"paid {input['eur']}"


def _payer_script(request):
    """Ask for as many refunds as the user says, and answer what comes in between."""
    last = request.messages[-1]
    if last.role != "user":
        return Reply(text="; ".join(block.content for m in request.messages for block in m.content
                                    if m.role == "tool"))  # fmt: skip
    if not last.text.isdigit():
        return Reply(text="I wait for somebody.")
    return Reply(tool_calls=[Call("refund", {"eur": n + 1}) for n in range(int(last.text))])


models().connect("shop-payer", ScriptedProvider(_payer_script))


class PayerAgent(Agent):
    model = "shop-payer:any"
    tools = (Refund,)


class AskerAgent(Agent):
    model = "shop-echo:any"
    tools = (PayerAgent.as_tool(description="Pays.", requires_approval=True), hostile)


class DeliveryWorkflow(Workflow):
    def perform(self):
        paid = self.invoke(PayerAgent, name="paying").output
        return {"paid": paid, "arrived": self.wait_for("arrived")}


class HelpSwarm(Swarm):
    members = (EchoAgent, PayerAgent, BadAgent)
    start = EchoAgent
    handoffs = {EchoAgent: [PayerAgent, BadAgent], PayerAgent: [EchoAgent]}  # noqa: RUF012


class FlowGraph(Graph):
    nodes = {  # noqa: RUF012
        "first": EchoAgent,
        "pay": PayerAgent,
        "help": HelpSwarm,
        "sorry": EchoAgent,
        "last": EchoAgent,
    }
    start = "first"
    edges = (
        Edge("first", ["pay", "help"], when=lambda state: True),
        Edge("first", "sorry"),
        Edge(["pay", "help"], "last"),
        Edge("sorry", "last"),
        ErrorEdge("first", "sorry", on=InvalidRequestError),
    )
    finish = "last"


models().connect(
    "shop-boss",
    ScriptedProvider([Reply(tool_calls=[Call("echo", {"input": "what"})]), "all is said"]),
)


class BossAgent(Agent):
    model = "shop-boss:any"
    tools = (EchoAgent.as_tool(description="Repeats."),)
