"""Declarations of swarms: everything wrong is told at once, and what they mean when right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from littleghost import Agent, Member, Swarm, registry, tool
from littleghost.errors import DefinitionError, OverloadedError
from littleghost.handoff import HANDOFF


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    known = dict(registry._assemblies)
    yield
    registry._assemblies.clear()
    registry._assemblies.update(known)


class AlphaAgent(Agent):
    description = "Does alpha."


class BetaAgent(Agent):
    description = "Does beta."


class GammaAgent(Agent):
    pass


def make(name: str = "Made", **attributes: Any) -> type[Swarm]:
    body = {"members": [AlphaAgent, BetaAgent, GammaAgent], "start": AlphaAgent, **attributes}
    return type(f"{name}Swarm", (Swarm,), {**body, "__module__": __name__})


def problem(**attributes: Any) -> str:
    with pytest.raises(DefinitionError) as caught:
        make(**attributes).check()
    return str(caught.value)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"members": [AlphaAgent]}, "members has 1; a swarm needs at least two"),
        ({"members": "ab"}, "members is 'ab'; use a list"),
        ({"members": [AlphaAgent, "beta"]}, "members holds 'beta'; use agent classes"),
        ({"members": [AlphaAgent, Swarm]}, "members holds Swarm; use agent classes"),
        ({"members": [AlphaAgent, AlphaAgent]}, "members holds 'alpha' twice"),
        ({"members": [AlphaAgent, Member(BetaAgent, history=1)]}, "history of BetaAgent is 1"),
        ({"members": [AlphaAgent, Member(BetaAgent, context="no")]}, "context of BetaAgent"),
        ({"members": [AlphaAgent, Member(BetaAgent, retries=1)]}, "retries need retry_on"),
        ({"members": [AlphaAgent, Member(BetaAgent, timeout_s=0)]}, "timeout_s is 0"),
        ({"members": [AlphaAgent, Member(BetaAgent, name=3)]}, "name of BetaAgent is 3"),
        ({"members": [AlphaAgent, Member(BetaAgent, name="a b")]}, "name of BetaAgent is 'a b'"),
        ({"start": None}, "start: None is no member"),
        ({"start": "delta"}, "start: 'delta' is no member; the members are alpha, beta, gamma"),
        ({"handoffs": [AlphaAgent]}, "handoffs is "),
        ({"handoffs": {"delta": [AlphaAgent]}}, "handoffs: 'delta' is no member"),
        ({"handoffs": {AlphaAgent: ["delta"]}}, "target of 'alpha': 'delta' is no member"),
        ({"handoffs": {AlphaAgent: [BetaAgent, "beta"]}}, "'alpha' has the target 'beta' twice"),
        ({"handoffs": {AlphaAgent: [AlphaAgent]}}, "lets 'alpha' hand off to itself"),
        ({"handoffs": {AlphaAgent: []}}, "targets of 'alpha' are []"),
        ({"handoffs": {AlphaAgent: BetaAgent}}, "targets of 'alpha' are "),
        ({"handoffs": {AlphaAgent: ["beta"], "alpha": ["beta"]}}, "handoffs has 'alpha' twice"),
        ({"max_steps": 0}, "max_steps is 0; use a whole number of at least 1"),
        ({"max_handoff_repeats": True}, "max_handoff_repeats is True"),
    ],
)
def test_each_mistake_is_named(attributes: dict[str, Any], said: str) -> None:
    text = problem(**attributes)
    assert text.startswith("MadeSwarm.")
    assert said in text


def test_all_mistakes_are_told_at_once() -> None:
    text = problem(start="x", handoffs={"y": ["z"]}, max_steps=-1, max_handoff_repeats=0)
    for part in ("start: 'x'", "handoffs: 'y'", "'z'", "max_steps is -1", "max_handoff_repeats"):
        assert part in text
    text = problem(members=[3, Member(BetaAgent, history=None)], max_steps=1.5)
    for part in ("members holds 3", "history of BetaAgent is None", "max_steps is 1.5"):
        assert part in text


def test_a_member_that_is_declared_wrongly_is_told_as_its_own_mistake() -> None:
    broken = type("BrokenAgent", (Agent,), {"tools": [3], "__module__": __name__})
    assert "BrokenAgent.tools" in problem(members=[AlphaAgent, broken])


def test_a_member_may_not_have_a_tool_of_the_same_name() -> None:
    @tool(name=HANDOFF)
    def own() -> str:
        """Do something else."""
        return ""

    body = {"tools": [own], "__module__": __name__}
    assert HANDOFF in problem(members=[AlphaAgent, type("OwnAgent", (Agent,), body)])


def targets(swarm: type[Swarm]) -> dict[str, list[str]]:
    return {name: [item["id"] for item in swarm.targets(name)] for name in swarm.roster()}


def test_without_handoffs_everyone_reaches_everyone() -> None:
    swarm = make()
    swarm.check()
    assert targets(swarm) == {
        "alpha": ["beta", "gamma"],
        "beta": ["alpha", "gamma"],
        "gamma": ["alpha", "beta"],
    }
    assert swarm.targets("gamma")[0] == {"id": "alpha", "description": "Does alpha."}


def test_with_a_handoff_the_others_only_answer() -> None:
    swarm = make(handoffs={AlphaAgent: [GammaAgent]})
    swarm.check()
    assert targets(swarm) == {"alpha": ["gamma"], "beta": [], "gamma": []}


def test_one_agent_may_be_two_members_that_go_by_name() -> None:
    first, second = Member(AlphaAgent, name="one"), Member(AlphaAgent, name="two")
    swarm = make(members=[first, second], start=second, handoffs={"two": ["one"]})
    swarm.check()
    assert (swarm.first(), targets(swarm)) == ("two", {"one": [], "two": ["one"]})
    assert "means one and two; use an id" in problem(members=[first, second], start=AlphaAgent)


def test_the_id_leaves_the_kind_out() -> None:
    assert make("ProblemSolver").id() == "problem_solver"


def test_the_fingerprint_tells_definitions_apart() -> None:
    different = [
        make(),
        make(start=BetaAgent),
        make(max_steps=3),
        make(max_handoff_repeats=1),
        make(handoffs={AlphaAgent: [BetaAgent]}),
        make(members=[AlphaAgent, BetaAgent, Member(GammaAgent, history=True)]),
        make(members=[AlphaAgent, BetaAgent, Member(GammaAgent, context=True)]),
        make(members=[AlphaAgent, BetaAgent, Member(GammaAgent, timeout_s=1)]),
        make(
            members=[
                AlphaAgent,
                BetaAgent,
                Member(GammaAgent, retries=1, retry_on=OverloadedError),
            ]
        ),
    ]
    assert len({item.fingerprint() for item in different}) == len(different)
    assert make().fingerprint() == make().fingerprint()
