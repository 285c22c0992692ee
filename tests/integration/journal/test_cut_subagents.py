"""Cut agents with subagents at every operation of their journal, and require the same end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from littleghost import Agent, Limits, Subagent, SubagentLimits
from littleghost.engine.subagent_state import ROOT_PATH
from littleghost.errors import InvalidRequestError
from littleghost.messages import ToolResult
from littleghost.providers.base import ModelRequest
from littleghost.providers.registry import Models
from littleghost.providers.scripted import Call, Reply, ScriptedProvider
from tests.integration.journal.test_cut import MODES, cut_everywhere
from tests.support.cast import USAGE, CastProvider, Fetch, _since_user, at
from tests.support.scenarios import Scenario, enqueue, play
from tests.support.world import World

pytestmark = pytest.mark.redis
WAIT = Call("wait_for_subagents")


def path(name: str) -> str:
    return f"{ROOT_PATH}/{name}"


def spawn(name: str, task: str, mode: str = "sync", kind: str = "diver") -> Call:
    given = {"kind": kind, "task_name": name, "task": task, "mode": mode}
    return Call("spawn_subagent", given)


def send(name: str, message: str, mode: str = "sync") -> Call:
    given = {"subagent_id": path(name), "message": message, "mode": mode}
    return Call("send_message_to_subagent", given)


class Crew(Agent, abstract=True):
    """Base: what it does depends on its name and the newest user message."""

    system_prompt = ""
    limits = Limits(max_model_retries=0)


class DiverAgent(Crew):
    """Says how much it was told before, or asks its tool for it."""

    model = "crew:diver"
    tools = (Fetch,)


class LeadAgent(Crew):
    """A subagent that has one of its own."""

    model = "crew:lead"
    subagents = (Subagent(DiverAgent, kind="diver"),)


class CaptainAgent(Crew):
    """Does what the plan of that name says, then tells what it was answered."""

    model = "crew:captain"
    subagents = (Subagent(DiverAgent, kind="diver"), Subagent(LeadAgent, kind="lead"))
    # A keeper's round makes every timer due, so a wait is over only when all have ended.
    subagent_limits = SubagentLimits(concurrent=2, wait_s=3_600)
    tools = (DiverAgent.as_tool(name="notes", description="Notes.", preserve_context=True),)


def notes(text: str) -> Call:
    return Call("notes", {"input": text})


PLANS: dict[str, list[list[Call]]] = {
    "both": [[spawn("a", "say A"), spawn("b", "say B", "async")], [WAIT]],
    "follow": [[spawn("a", "fetch A")], [send("a", "count")]],
    "failing": [[spawn("a", "bad"), spawn("b", "say B")]],
    "interject": [[spawn("a", "fetch A", "async")],
                  [Call("interject_subagent", {"subagent_id": path("a"), "message": "say yes"})],
                  [WAIT]],
    "notes": [[notes("say A")], [notes("count")]],
    "nest": [[spawn("top", "begin", kind="lead")]],
    "leave": [[spawn("top", "begin", "async", kind="lead"), spawn("b", "fetch B", "async")]],
    "begin": [[spawn("a", "say A")]],
    "go on": [[send("a", "count")]],
}  # fmt: skip


def script(request: ModelRequest) -> Reply:
    """Answer by who is asked and what was said since."""
    at("model")
    text, turn = _since_user(request)
    told = [block.content for message in request.messages for block in message.content
            if isinstance(block, ToolResult)]  # fmt: skip
    if request.model != "diver":
        plan = PLANS[text]
        if turn < len(plan):
            return Reply(tool_calls=plan[turn], usage=USAGE)
        # What is said in mid-turn comes before the turn's end or after it.
        said = f"{len(told)} answers" if text in ("interject", "leave") else "; ".join(told)
        return Reply(text=said, usage=USAGE, chunk_chars=int(1e6))
    verb, _, rest = text.partition(" ")
    if verb == "bad":
        raise InvalidRequestError("the script refuses this")
    if verb == "fetch" and turn == 0:
        return Reply(text="I look.", tool_calls=[Call("fetch", {"n": 1})], usage=USAGE)
    if verb == "count":
        return Reply(text=f"{len(request.messages)} messages", usage=USAGE)
    return Reply(text=f"{verb} {rest}", usage=USAGE)


class CrewProvider(CastProvider):
    """Answers by this module's script."""

    def __init__(self) -> None:
        ScriptedProvider.__init__(self, script)


def _run(text: str, **more: Any) -> Scenario:
    return Scenario(text, lambda world: [enqueue(world, text, assembly=CaptainAgent)], **more)


def _two_runs(world: World) -> list[str]:
    first = enqueue(world, "begin", assembly=CaptainAgent, session_id="s")
    return [first, enqueue(world, "go on", assembly=CaptainAgent, session_id="s")]


def _finished(name: str, turn: int, said: str) -> str:
    return (
        f'{{"status":"finished","subagent_id":"{path(name)}","kind":"diver","turn":{turn},'
        f'"response":"{said}"}}'
    )


# What the last run says.
ENDS = {
    "follow": [_finished("a", 1, "fetch A"), _finished("a", 2, "5 messages")],
    "notes": ["say A", "3 messages"],
    "interject": ["3 answers"],
    "leave": ["2 answers"],
    "go on": [_finished("a", 1, "say A"), _finished("a", 2, "3 messages")],
}
SCENARIOS = [
    _run("both"),
    _run("follow"),
    _run("failing"),
    # The message meets the subagent at one turn or another, or too late.
    _run("interject", is_timed=True),
    _run("notes"),
    _run("nest"),
    # How far they come before their agent ends is not the same.
    _run("leave", is_timed=True),
    Scenario("two runs", _two_runs),
]


@pytest.fixture(autouse=True)
def _crew_models(cast_models: Models) -> None:
    cast_models.connect("crew", CrewProvider())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_undisturbed_it_ends_as_planned(world: World, scenario: Scenario) -> None:
    ends = play(world, scenario)
    assert [(end.status, end.error) for end in ends] == [("completed", "")] * len(ends)
    said = ends[-1].response
    if scenario.name in ENDS:
        assert said == "; ".join(ENDS[scenario.name])
    elif scenario.name == "both":
        assert said.count('"status":"finished"') == 4
    elif scenario.name == "failing":
        assert said.count('"status":"failed"') == said.count('"status":"finished"') == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_end_is_the_same_wherever_it_is_cut(
    worlds: Callable[..., World], scenario: Scenario, mode: str
) -> None:
    assert cut_everywhere(worlds(**MODES[mode]), scenario) > 60
