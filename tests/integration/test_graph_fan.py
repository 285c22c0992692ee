"""Forks of many branches, which a graph does not look at one by one."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from littleghost import Edge, Graph, Node
from littleghost.engine.graph_fan import MANY_BRANCHES
from littleghost.engine.steps import START_PIECE
from littleghost.errors import InvalidRequestError
from littleghost.providers.scripted import Reply
from tests.integration.scripted import kinds, make_agent

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]
_numbers = itertools.count()


def fork(count: int, leaf: Any, end: Any, **attributes: Any) -> type[Any]:
    """Make a graph of a fork and a join."""
    names = [f"n{number}" for number in range(count)]
    body = {
        "nodes": {
            "start": make_agent(lambda request: "go"),
            **dict.fromkeys(names, leaf),
            "end": end,
        },
        "edges": [Edge("start", names, input=lambda s: s.current), Edge(names, "end")],
        "start": "start",
        "finish": "end",
        "max_steps": count + 2,
        **attributes,
    }
    return type(f"Many{next(_numbers)}Graph", (Graph,), {**body, "__module__": __name__})


def echo(request: Any) -> Reply:
    return Reply(text=f"re: {request.messages[-1].text}")


@pytest.mark.parametrize("count", [MANY_BRANCHES - 1, MANY_BRANCHES, START_PIECE + 5])
def test_a_fork_of_any_size_joins_once_with_all_results(count: int) -> None:
    end = Node(
        make_agent(echo),
        input=lambda s: ",".join(s.incoming_results[name].text for name in s.predecessors),
    )
    run = fork(count, make_agent(echo), end).ask("go")
    expected = ",".join(f"re: n{number}" for number in range(count))
    assert (run.status, run.response) == ("completed", f"re: {expected}")
    told = Counter(kinds(run))
    assert told["assembly_step_start"] == told["assembly_step_stop"] == count + 2
    assert (told["assembly_fork"], told["assembly_join"]) == (1, 1)
    steps = run.result.steps
    assert [step.participant for step in steps] == [
        "start",
        *(f"n{number}" for number in range(count)),
        "end",
    ]
    assert {step.branch_id for step in steps[1:-1]} == {f"n{number}" for number in range(count)}


def test_a_failing_branch_of_many_ends_the_graph() -> None:
    def moody(request: Any) -> Reply:
        if request.messages[-1].text == "n3":
            raise InvalidRequestError("no")
        return Reply(text="well")

    count = MANY_BRANCHES + 8
    run = fork(count, make_agent(moody), make_agent(echo), max_concurrency=2).ask("go")
    assert run.status == "failed"
    assert "InvalidRequestError" in str(run.error)
    told = Counter(kinds(run))
    assert told["assembly_step_error"] == 1
    assert told["assembly_join"] == 0


def test_a_mapper_that_fails_in_a_later_piece_ends_the_graph() -> None:
    names = [f"n{number}" for number in range(START_PIECE + 5)]

    def mapper(state: Any) -> str:
        return str(1 / (state.current != names[-1]))

    graph = fork(len(names), make_agent(echo), make_agent(echo))
    graph.edges = [Edge("start", names, input=mapper), Edge(names, "end")]
    graph._plan = None
    run = graph.ask("go")
    assert run.status == "failed"
    assert "ZeroDivisionError" in str(run.error)
