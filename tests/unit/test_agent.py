"""Agent declarations: tools of all bases, prompts and models as text or methods."""

from collections.abc import Iterator
from typing import Any

import pytest

from littleghost import Agent, Tool, registry, tool
from littleghost.agent import DEFAULT_PROMPT
from littleghost.context import Binding
from littleghost.engine.view import RunView
from littleghost.errors import DefinitionError
from littleghost.invocation import read_invocation


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    before = dict(registry._assemblies)
    yield
    registry._assemblies.clear()
    registry._assemblies.update(before)


@tool
def one() -> str:
    """Be one."""
    return ""


@tool
def two() -> str:
    """Be two."""
    return ""


def bound(kind: type[Agent], **values: Any) -> Agent:
    from datetime import UTC, datetime

    invocation = read_invocation("Hi", values, datetime.now(UTC))
    return kind.bind(Binding(run=RunView("r", invocation, "x"), invocation=invocation))


def names(kind: type[Agent]) -> list[str]:
    return [entry.name for entry in kind.declarations().entries]


def test_tools_of_the_bases_come_first_and_none_comes_twice() -> None:
    parent = type("Parent", (Agent,), {"tools": [one]})
    child = type("Child", (parent,), {"tools": [two, one]})
    assert names(parent) == ["one"]
    assert names(child) == ["one", "two"]
    assert names(type("Plain", (child,), {})) == ["one", "two"]


def test_tools_of_several_bases_add_up() -> None:
    left = type("Left", (Agent,), {"tools": [one]})
    right = type("Right", (Agent,), {"tools": [two]})
    assert sorted(names(type("Both", (left, right), {}))) == ["one", "two"]


@pytest.mark.parametrize("bad", ["one", None, 7, {one}])
def test_tools_must_be_a_list(bad: Any) -> None:
    with pytest.raises(DefinitionError, match=r"Odd\.tools"):
        type("Odd", (Agent,), {"tools": bad}).check()


def test_every_problem_of_the_tools_is_told_at_once() -> None:
    silent = type("Silent", (Tool,), {"call": lambda self, value: ""})
    idle = type("Idle", (Tool,), {"description": "Be idle."})
    with pytest.raises(DefinitionError) as caught:
        type("Odd", (Agent,), {"tools": [silent, idle, print]}).check()
    for part in ("Silent.description", "Idle.call", "print"):
        assert part in str(caught.value)


@pytest.mark.parametrize("bad", [7, object(), ["x:m"], b"x"])
def test_a_model_must_be_a_selection(bad: Any) -> None:
    with pytest.raises(DefinitionError, match=r"Odd\.model"):
        type("Odd", (Agent,), {"model": bad}).check()


@pytest.mark.parametrize("bad", [7, None, ["x"]])
def test_a_prompt_must_be_text_or_a_method(bad: Any) -> None:
    with pytest.raises(DefinitionError, match=r"Odd\.system_prompt"):
        type("Odd", (Agent,), {"system_prompt": bad}).check()


def test_prompt_and_model_are_chosen_for_each_run() -> None:
    class Chooser(Agent):
        def model(self) -> str:  # type: ignore[override]
            return "x:" + self.invocation.context["tier"]

        def system_prompt(self) -> str:  # type: ignore[override]
            return f"You serve {self.run.actor_id}."

    agent = bound(Chooser, actor_id="ann", context={"tier": "large"})
    assert agent.model_selection() == "x:large"
    assert agent.prompt_text() == "You serve ann."


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Be brief.", "Be brief."),
        ("", ""),
        (lambda self: None, ""),
        (lambda self: "lone \ud800", "lone \ufffd"),
        (lambda self: 7, "7"),
    ],
)
def test_a_prompt_is_always_clean_text(prompt: Any, expected: str) -> None:
    assert bound(type("Prompted", (Agent,), {"system_prompt": prompt})).prompt_text() == expected


def test_without_a_prompt_there_is_a_default() -> None:
    assert bound(type("Plain", (Agent,), {})).prompt_text() == DEFAULT_PROMPT


def test_outside_of_a_run_there_is_none() -> None:
    agent = type("Plain", (Agent,), {})()
    assert agent.run is None
    assert agent.invocation is None
