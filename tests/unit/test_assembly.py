"""What all assemblies share: ids, checks and fingerprints of their definitions."""

from collections.abc import Iterator
from typing import Any

import pytest

from littleghost import Agent, Limits, registry, tool
from littleghost.assembly import Assembly, derived_id
from littleghost.errors import DefinitionError


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    before = dict(registry._assemblies)
    yield
    registry._assemblies.clear()
    registry._assemblies.update(before)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CustomerSupportAgent", "customer_support"),
        ("ResponseWorkflow", "response"),
        ("ProblemSolverSwarm", "problem_solver"),
        ("SupportFlowGraph", "support_flow"),
        ("Agent", "agent"),
        ("HTTPProbe", "httpprobe"),
        ("Triage2Agent", "triage2"),
        ("A", "a"),
        ("_PrivateAgent", "private"),
    ],
)
def test_an_id_is_made_of_the_class_name(name: str, expected: str) -> None:
    assert derived_id(name) == expected
    if name != "Agent":
        assert type(name, (Agent,), {}).id() == expected


def test_an_id_of_ones_own_wins_and_is_inherited() -> None:
    parent = type("Parent", (Agent,), {"assembly_id": "desk-1"})
    assert parent.id() == "desk-1"
    assert type("Child", (parent,), {}).id() == "desk-1"


@pytest.mark.parametrize("bad", ["Upper", "a b", "ü", "x" * 65, "-x", 7, None])
def test_an_id_that_events_could_not_carry_is_refused(bad: Any) -> None:
    with pytest.raises(DefinitionError, match="assembly_id"):
        type("Named", (Agent,), {"assembly_id": bad}).check()


@tool
def look() -> str:
    """Look."""
    return ""


def fingerprint(**attributes: Any) -> str:
    return type("Printed", (Agent,), attributes).fingerprint()


def test_a_fingerprint_stays_as_long_as_the_definition_does() -> None:
    assert fingerprint() == fingerprint()
    assert len(fingerprint()) == 16
    kept = {"model": "x:m", "tools": [look], "limits": Limits(max_turns=3)}
    assert fingerprint(**kept) == fingerprint(**kept)


def test_everything_that_changes_a_run_changes_the_fingerprint() -> None:
    def described(text: str) -> Any:
        return type("Look", (look.tool_class,), {"name": "look", "description": text})

    variants: list[dict[str, Any]] = [
        {},
        {"model": "x:m"},
        {"model": {"provider": "x", "model": "m"}},
        {"model": lambda self: "x:m"},
        {"system_prompt": "Be brief."},
        {"tools": [look]},
        {"tools": [described("Look again.")]},
        {"limits": Limits(max_turns=3)},
        {"limits": Limits(model_settings={"temperature": 0})},
        {"assembly_id": "another"},
    ]
    assert len({fingerprint(**variant) for variant in variants}) == len(variants)


def test_a_subclass_has_checks_and_a_fingerprint_of_its_own() -> None:
    parent = type("Parent", (Agent,), {"model": "x:m"})
    parent.check()
    child = type("Child", (parent,), {"model": 7})
    with pytest.raises(DefinitionError, match=r"Child\.model"):
        child.check()
    assert parent.fingerprint() != type("Other", (parent,), {}).fingerprint()


def test_what_is_abstract_cannot_be_called() -> None:
    for abstract in (Assembly, Agent, type("Base", (Agent,), {}, abstract=True)):
        with pytest.raises(DefinitionError, match="abstract"):
            abstract.check()


def test_limits_must_be_limits_and_their_settings_json() -> None:
    with pytest.raises(DefinitionError, match=r"limits.*Limits\("):
        type("Loose", (Agent,), {"limits": {"max_turns": 1}}).check()
    for bad in ({"t": object()}, {1: 2}, {"t": float("inf")}, "text"):
        with pytest.raises(DefinitionError, match="model_settings"):
            type("Odd", (Agent,), {"limits": Limits(model_settings=bad)}).check()  # type: ignore[arg-type]
