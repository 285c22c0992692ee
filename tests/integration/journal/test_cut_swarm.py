"""Cut a swarm at every operation of its journal: handoffs happen once, and the end is the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from littleghost import Member, Swarm
from littleghost.errors import InvalidRequestError
from littleghost.handoff import HANDOFF
from littleghost.providers.base import ModelRequest
from littleghost.providers.registry import Models
from littleghost.providers.scripted import Call, Reply, ScriptedProvider
from tests.integration.journal.test_cut import MODES, cut_everywhere
from tests.support.cast import USAGE, CastProvider, Fetch, Scripted, _since_user, at
from tests.support.scenarios import Scenario, enqueue, play
from tests.support.world import World

pytestmark = pytest.mark.redis


class RelayMember(Scripted, abstract=True):
    """Base: what it does depends on the newest user message."""

    model = "relay:any"


class FirstAgent(RelayMember):
    """Looks something up, then hands off."""

    tools = (Fetch,)


class SecondAgent(RelayMember):
    """Hands off at once."""


class ThirdAgent(RelayMember):
    """Answers, or fails."""


class RelaySwarm(Swarm):
    """Two handoffs, then an answer."""

    members = (
        FirstAgent,
        SecondAgent,
        Member(ThirdAgent, retries=1, retry_on=InvalidRequestError, context=True, timeout_s=7200),
    )
    start = FirstAgent
    handoffs = {FirstAgent: [SecondAgent], SecondAgent: [ThirdAgent]}  # noqa: RUF012


def handoff(to: str, message: str) -> Reply:
    value = {"agent_id": to, "message": message, "context": {"n": 1}}
    return Reply(text="Not mine.", tool_calls=[Call(HANDOFF, value)], usage=USAGE)


def script(request: ModelRequest) -> Reply:
    """Answer by the newest user message alone."""
    at("model")
    text, turn = _since_user(request)
    if text.startswith("Handoff from first"):
        return handoff("third", text)
    if text.startswith("Handoff from second"):
        if "badly" in text:
            raise InvalidRequestError("the script refuses this")
        return Reply(text="Here you are.", usage=USAGE)
    if turn == 0:
        # The second call is refused, since a handoff comes alone.
        more = [Call(HANDOFF, {"agent_id": "second", "message": "x"})] if "both" in text else []
        return Reply(tool_calls=[Call("fetch", {"n": 1}), *more], usage=USAGE)
    return handoff("second", text)


class RelayProvider(CastProvider):
    """Answers by this module's script."""

    def __init__(self) -> None:
        ScriptedProvider.__init__(self, script)


SCENARIOS = [
    Scenario(name, lambda world, name=name: [enqueue(world, name, assembly=RelaySwarm)])
    for name in ("relay", "relay both", "relay badly")
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_swarm_ends_the_same_wherever_it_is_cut(
    worlds: Callable[..., World], cast_models: Models, scenario: Scenario, mode: str
) -> None:
    cast_models.connect("relay", RelayProvider())
    assert cut_everywhere(worlds(**MODES[mode]), scenario) > 40


def test_undisturbed_it_ends_as_declared(world: World, cast_models: Models) -> None:
    cast_models.connect("relay", RelayProvider())
    plain, both, badly = (play(world, scenario)[0] for scenario in SCENARIOS)
    for end, answers in ((plain, 4), (both, 4)):
        assert (end.status, end.response) == ("completed", "Here you are.")
        assert end.usage["input"] == answers * (USAGE.input or 0)
        assert end.events["assembly_transition"] == 2
        assert end.events["assembly_step_stop"] == 3
    assert (plain.events["tool_start"], both.events["tool_start"]) == (1, 0)
    assert (badly.status, badly.error) == ("failed", InvalidRequestError.code)
    assert badly.events["assembly_step_retry"] == 1
    assert badly.events["assembly_step_error"] == 2
