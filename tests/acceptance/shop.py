"""Agents for the command line's tests; workers import this module."""

from littleghost import Agent, models, tool
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
