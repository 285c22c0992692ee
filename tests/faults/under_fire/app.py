"""The application of the load; workers import it, and so does the driver."""

from __future__ import annotations

import os
import signal
import time
import uuid
from typing import Any

from littleghost import (
    Agent,
    Edge,
    ErrorEdge,
    Graph,
    Limits,
    Member,
    Node,
    Subagent,
    SubagentLimits,
    Swarm,
    Tool,
    Workflow,
    models,
)
from littleghost.errors import InvalidRequestError
from littleghost.journal.keeper import Keeper
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.usage import Usage
from tests.faults.fleet_app import EFFECTS, leave_trace
from tests.faults.under_fire import plays

PLACE = EFFECTS.parent
TURN_USAGE = Usage(input=plays.INPUT_TOKENS, output=plays.OUTPUT_TOKENS)
CALL_S, LINGER_S = 0.1, 4.0
# Storms and kills must not be what ends a run.
LIMITS = Limits(max_model_retries=1_000, max_turns=6)


def script(request: ModelRequest) -> Reply:
    """Answer as the plays say, with pauses that are long enough to be killed in."""
    users = [message.text for message in request.messages if message.role == "user"]
    turn = 0
    for message in reversed(request.messages):
        if message.role == "user":
            break
        turn += message.role == "assistant"
    said = plays.say(plays.Heard(request.model, users, turn, PLACE))
    if said.is_refused:
        return Reply(error=InvalidRequestError("this is not to be"))
    calls = [Call(name, value) for name, value in said.calls]
    size = 5 if said.is_slow else -(-len(said.text) // 3)
    delay_s = 0.02 if said.is_slow else 0.1
    return Reply(
        text=said.text, tool_calls=calls, chunk_chars=size, chunk_delay_s=delay_s, usage=TURN_USAGE
    )


if os.environ.get("FIRE_MODEL_URL"):
    models().connect(
        "fire",
        "openai_compatible",
        base_url=os.environ["FIRE_MODEL_URL"],
        api_key="none",
        read_timeout_s=2.0,
        open_timeout_s=2.0,
    )
else:
    models().connect("fire", "scripted", script=script)


class Traced(Tool):
    """Leaves a trace with the call's idempotency key as soon as it takes effect."""

    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "required": ["key"],
    }
    takes_s = CALL_S

    def call(self, input: Any) -> str:
        leave_trace(f"{self.name} {input['key']} {self.idempotency_key}")
        time.sleep(self.takes_s)
        return f"{self.name} {input['key']}"


class Look(Traced):
    """Look something up, twice if need be."""

    name = "look"
    idempotent = True


class Tally(Traced):
    """Count one more."""

    name = "tally"
    idempotent = True

    def call(self, input: Any) -> str:
        self.context.state.increment("tally")
        return super().call(input)


class Charge(Traced):
    """Charge an account, never twice."""

    name = "charge"


class Seal(Traced):
    """Seal a letter, never twice and never two at once."""

    name = "seal"
    exclusive = True


class Pay(Traced):
    """Pay money back, if somebody allows it."""

    name = "pay"
    requires_approval = True


class Linger(Traced):
    """Take longer than its run may."""

    name = "linger"
    takes_s = LINGER_S


class CrewAgent(Agent):
    model = "fire:crew"
    tools = [Look, Tally, Charge, Seal]  # noqa: RUF012
    limits = LIMITS


class SmallAgent(Agent):
    model = "fire:small"
    tools = [Look, Charge]  # noqa: RUF012
    limits = LIMITS


class SayAgent(Agent):
    model = "fire:say"
    limits = LIMITS


class TalkAgent(Agent):
    model = "fire:talk"
    limits = LIMITS


class SlowAgent(Agent):
    model = "fire:slow"
    limits = LIMITS


class BrokenAgent(Agent):
    model = "fire:broken"
    limits = LIMITS


class StuckAgent(Agent):
    model = "fire:stuck"
    tools = [Linger]  # noqa: RUF012
    limits = LIMITS


class FragileAgent(Agent):
    model = "fire:fragile"
    tools = [Charge, Look]  # noqa: RUF012
    limits = LIMITS


class PayerAgent(Agent):
    model = "fire:payer"
    tools = [Pay]  # noqa: RUF012
    limits = LIMITS


class BossAgent(Agent):
    model = "fire:boss"
    subagents = [Subagent(SmallAgent, kind="small")]  # noqa: RUF012
    subagent_limits = SubagentLimits(wait_s=600.0)
    limits = LIMITS


class AskerAgent(Agent):
    model = "fire:asker"
    tools = [SmallAgent.as_tool(name="small"), Look]  # noqa: RUF012
    limits = LIMITS


class FireTriageAgent(Agent):
    model = "fire:triage"
    limits = LIMITS


class FireBillingAgent(Agent):
    model = "fire:billing"
    limits = LIMITS


class FireSwarm(Swarm):
    members = [FireTriageAgent, Member(FireBillingAgent)]  # noqa: RUF012
    start = FireTriageAgent
    handoffs = {FireTriageAgent: [FireBillingAgent]}  # noqa: RUF012


def _small_input(state: Any) -> str:
    return f"small {state.input.text.split()[-1]}.{state.current}"


def _joined(state: Any) -> str:
    said = [state.result(name).output for name in ("a", "b", "mend")]
    return f"{' + '.join(said)} for {state.input.text.split()[-1]}"


def _mend(state: Any) -> str:
    return "mended"


def _is_joined(state: Any) -> bool:
    return "mended" in state.result("join").output


class FireGraph(Graph):
    """A fork, an error edge, a join, and a condition."""

    nodes = {  # noqa: RUF012
        "start": SayAgent,
        "a": Node(SmallAgent, input=_small_input),
        "b": Node(SmallAgent, input=_small_input),
        "broken": BrokenAgent,
        "mend": Node(SayAgent, input=_mend),
        "join": Node(SayAgent, input=_joined),
        "good": Node(SayAgent, input=lambda state: "good " + state.result("join").output),
        "bad": SayAgent,
        "end": Node(SayAgent, input=lambda state: "end " + state.result("good").output),
    }
    start = "start"
    edges = [  # noqa: RUF012
        Edge("start", ["a", "b", "broken"]),
        Edge("broken", "mend"),
        ErrorEdge("broken", "mend", on=InvalidRequestError),
        Edge(["a", "b", "mend"], "join"),
        Edge("join", "good", when=_is_joined),
        Edge("join", "bad"),
        Edge("good", "end"),
        Edge("bad", "end"),
    ]
    finish = "end"


def draw() -> str:
    """Give something that is never the same twice."""
    drawn = uuid.uuid4().hex
    leave_trace(f"draw {drawn} step")
    return drawn


class FireWorkflow(Workflow):
    """A step, three children at once, a sleep, a signal, and one more child."""

    def perform(self) -> Any:
        key = self.input.text.split()[-1]
        drawn = self.step(draw)
        children = [
            self.invoke(SmallAgent, input=f"small {key}.{name}", name=name) for name in plays.SMALL
        ]
        said = self.parallel(*children)
        self.sleep(0.3)
        word = self.wait_for("word")
        last = self.invoke(SayAgent, input=f"last {key}", name="last").output
        return f"{drawn}|{';'.join(said)}|{word}|{last}"


def _die_mid_sweep() -> None:
    """Have the leading keeper die between two partitions, once for each file the driver makes."""
    work = Keeper._partition

    def partition(self: Keeper, number: int, *rest: Any) -> None:
        work(self, number, *rest)
        if number == self._journal.partitions // 2:
            try:
                (PLACE / "die-mid-sweep").unlink()
            except FileNotFoundError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    Keeper._partition = partition  # type: ignore[method-assign]


if os.environ.get("FIRE_WORKER"):
    _die_mid_sweep()
