"""The application that the fault tests' workers run: scripted agents whose tools leave traces."""

import os
import time
import uuid
from pathlib import Path

from littleghost import Agent, Limits, Tool, Workflow, models, tool
from littleghost.celery.app import make_app
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.settings import Settings

EFFECTS = Path(os.environ.get("FAULTS_EFFECTS", os.devnull))


def leave_trace(text: str) -> None:
    """Append a line; one write, so that parallel writers do not mix."""
    with EFFECTS.open("a") as file:
        file.write(text + "\n")


def wait_for(name: str) -> None:
    """Wait until the test creates a file beside the traces."""
    gate = EFFECTS.parent / name
    while not gate.exists():
        time.sleep(0.01)


@tool(idempotent=True)
def repeatable(key: str, gate: str = "") -> str:
    """Do something that may be done twice."""
    leave_trace(f"repeatable {key}")
    if gate:
        wait_for(gate)
    return f"did {key}"


class Charge(Tool):
    """Charge an account."""

    name = "charge"
    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"key": {"type": "string"}, "gate": {"type": "string"}},
        "required": ["key"],
    }

    def call(self, input):
        leave_trace(f"charge {input['key']} {self.idempotency_key}")
        if input.get("gate"):
            wait_for(input["gate"])
        return f"charged {input['key']}"


@tool(idempotent=True)
def crash(key: str) -> str:
    """Kill the process that runs it, each time."""
    leave_trace(f"crash {key}")
    os._exit(1)


def script(request: ModelRequest) -> Reply | str:
    """Read a tiny language from the user's message.

    `say N` streams N words; `TOOL N [gate]` calls a tool N times at once and then answers.
    """
    asked = [message for message in request.messages if message.role == "user"][-1]
    verb, *rest = asked.text.split()
    answered = 0
    for message in reversed(request.messages):
        if message.role == "user":
            break
        answered += message.role == "assistant"
    if verb == "say":
        words = int(rest[0])
        return Reply(text="word " * words, chunk_chars=5, chunk_delay_s=0.02)
    if answered == 0:
        gate = rest[1] if len(rest) > 1 else ""
        extra = {"gate": gate} if gate else {}
        calls = [Call(verb, {"key": f"k{index}", **extra}) for index in range(int(rest[0]))]
        return Reply(text="working", tool_calls=calls)
    return "done"


models().connect("faults", "scripted", script=script)


class Worker(Agent):
    model = "faults:script"
    tools = [repeatable, Charge, crash]  # noqa: RUF012
    limits = Limits(max_turns=5)


def draw() -> str:
    """Give something that is never the same twice."""
    drawn = uuid.uuid4().hex
    leave_trace(f"draw {drawn}")
    return drawn


class NapWorkflow(Workflow):
    """Asks an agent, draws, sleeps as many seconds as it is told, and asks again."""

    def perform(self):
        before = self.invoke(Worker, input="say 1", name="before").output
        drawn = self.step(draw)
        self.sleep(float(self.input.text))
        after = self.invoke(Worker, input="say 2", name="after").output
        return f"{before}{drawn} {after}"


app = make_app(Settings.from_environment())
