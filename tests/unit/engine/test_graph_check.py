"""What a graph's declaration may say, and that everything wrong with it is told at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from littleghost import Agent, Edge, ErrorEdge, Graph, Node
from littleghost.errors import DefinitionError, ProviderError
from littleghost.graph_check import check_graph


class Step(Agent, abstract=True):
    """Stands for any assembly; nothing runs here."""


THREE: Any = 3


def when(state: Any) -> bool:
    return True


async def later(state: Any) -> bool:
    return True


def check(edges: list[Any], nodes: Any = "s a b j", **changes: Any) -> Any:
    names = nodes.split() if isinstance(nodes, str) else nodes
    declared = {
        "nodes": dict.fromkeys(names, Step) if not isinstance(names, dict) else names,
        "start": "s", "finish": "j", "edges": edges, "max_steps": 20, "max_concurrency": 8,
    }  # fmt: skip
    return check_graph("Sample", SimpleNamespace(**{**declared, **changes}))


def problems(edges: list[Any], nodes: Any = "s a b j", **changes: Any) -> str:
    with pytest.raises(DefinitionError) as caught:
        check(edges, nodes, **changes)
    return str(caught.value)


DIAMOND = [Edge("s", "a"), Edge("s", "b"), Edge("a", "j"), Edge("b", "j")]
ROUTES = [Edge("s", "a", when=when), Edge("s", "b"), Edge("a", "j"), Edge("b", "j")]


def test_several_edges_without_condition_are_a_fork_that_ends_where_they_meet():
    fork = check(DIAMOND).routes["s"][0].fork
    assert (fork.ends, fork.order, fork.join, fork.width) == (("a", "b"), ("a", "b"), "j", 8)


def test_a_list_of_targets_and_a_list_of_sources_belong_together():
    edges = [Edge("s", ["a", "b"], max_concurrency=1), Edge("b", "c"), Edge(["c", "a"], "j")]
    fork = check(edges, "s a b c j").routes["s"][0].fork
    assert (fork.ends, fork.order, fork.join, fork.width) == (("a", "c"), ("c", "a"), "j", 1)


def test_branches_may_be_of_any_length_and_route_inside():
    edges = [
        Edge("s", "a"), Edge("s", "b"), Edge("b", "c", when=when), Edge("b", "d"), Edge("d", "c"),
        Edge("a", "j"), Edge("c", "j"), Edge("j", "k"),
    ]  # fmt: skip
    fork = check(edges, "s a b c d j k", finish="k").routes["s"][0].fork
    assert (fork.ends, fork.join) == (("a", "c"), "j")


def test_cycles_and_conditional_ways_are_no_forks():
    plan = check([*ROUTES[:3], Edge("b", "s", when=when), Edge("b", "j")])
    assert [route.fork for own in plan.routes.values() for route in own] == [None] * 5


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ([], "nodes['s'] has no way on"),
        ([*DIAMOND, Edge("j", "s")], "edges[4] leaves the finish node 'j'"),
        ([*DIAMOND, Edge("a", "x")], "edges[4]: target is 'x', which is no node"),
        ([*DIAMOND, Edge("s", ["a", "x"])], "edges[4]: target has 'x', which is no node"),
        ([*DIAMOND, "s -> a"], "edges[4] is 's -> a'; use Edge"),
        ([Edge("s", ["a", "a"])], "two or more distinct"),
        ([Edge(["s", "a"], ["b", "j"])], "lists on both sides"),
        ([Edge(["a", "b"], "j", when=when)], "takes no condition"),
        ([Edge("s", "a", max_concurrency=2)], "max_concurrency needs a list"),
        ([Edge("s", ["a", "b"], max_concurrency=0)], "max_concurrency is 0"),
        ([Edge("s", "a", when="yes")], "edges[0]: when is 'yes'"),  # type: ignore[arg-type]
        ([Edge("s", "a", input=later)], "edges[0]: input is a coroutine function"),
        ([*DIAMOND, Edge("s", "j", when=when)], "2 ways without a condition from 's'"),
        ([*DIAMOND, Edge("s", ["a", "b"])], "3 ways without a condition from 's'"),
        ([*DIAMOND, Edge("s", "a")], "two equal edges from 's'"),
        ([Edge("s", "a"), Edge("a", "j")], "nodes['b']: 'b' cannot be reached"),
        ([Edge("s", "a"), Edge("a", "b"), Edge("b", "a")], "finish: 'j' cannot be reached"),
        ([*DIAMOND[:3], Edge("b", "j", when=when)], "has no fan-in"),
        ([*DIAMOND[:3], Edge("b", "j", input=str)], "has no fan-in"),
        ([Edge("s", ["a", "b"]), Edge("a", "j")], "has no fan-in"),
        ([*ROUTES, Edge(["a", "b"], "j")], "belongs to no fan-out"),
        ([*DIAMOND, ErrorEdge("a", "x", on=ValueError)], "edges[4]: target is 'x'"),
        ([*DIAMOND, ErrorEdge("a", "b", on="ValueError")], "on is 'ValueError'"),  # type: ignore[arg-type]
        ([*DIAMOND, ErrorEdge("a", "b", on=())], "use one or more exception classes"),
        ([*DIAMOND, ErrorEdge("j", "b", on=ValueError)], "leaves the finish node"),
        ([Edge("s", ["a", "b"]), Edge(["a", "b"], "j"), ErrorEdge("a", "b", on=ValueError)],
         "must not overlap|no fan-in"),
        ([Edge("s", ["a", "b"]), Edge(["a", "b"], "j"), Edge("s", "a", when=when)],
         "'s' leads into the branch of 'a'"),
        ([Edge("s", ["a", "b"]), Edge(["a", "b"], "j"), ErrorEdge("a", "j", on=ValueError)],
         "from inside the branch"),
    ],
)  # fmt: skip
def test_a_wrong_edge_is_named(edges: list[Any], said: str):
    text = problems(edges)
    assert any(part in text for part in said.split("|")), text
    assert text.startswith("Sample.")


def test_branches_do_not_fork_again():
    edges = [
        Edge("s", ["a", "b"]), Edge("a", ["c", "d"]), Edge(["c", "d"], "e"), Edge(["e", "b"], "j"),
    ]  # fmt: skip
    assert "forks again" in problems(edges, "s a b c d e j") or "no fan-in" in problems(
        edges, "s a b c d e j"
    )


def test_all_problems_are_told_at_once():
    nodes = {
        "s": Step, "a": "Step", "b": Node(Step, retries=1), "c": Node(Step, input=THREE), "": Step,
        "j": Node(Step, timeout_s=0), "h": Node(Step, history="no"),  # type: ignore[arg-type]
    }  # fmt: skip
    edges = [Edge("s", "x"), Edge("a", "j", when=1)]  # type: ignore[arg-type]
    text = problems(edges, nodes, start="q", finish="j", max_steps=0, max_concurrency=True)
    for part in (
        "nodes['a'] is 'Step'", "retries need retry_on", "nodes['c']: input is 3",
        "nodes has the name ''", "timeout_s is 0", "start is 'q'", "'x', which is no node",
        "when is 1", "max_steps is 0", "max_concurrency is True",
        "nodes['h']: history is 'no'",
    ):  # fmt: skip
        assert part in text
    assert text.count("Sample.") == 11


def test_an_empty_graph_says_what_is_missing():
    text = problems([], {}, start="", finish="")
    for part in ("nodes is empty", "start is ''", "finish is ''"):
        assert part in text
    assert "edges is None" in problems(None)  # type: ignore[arg-type]


def test_the_error_edge_takes_one_class_or_several():
    edges = [*ROUTES[:3], Edge("b", "j"), ErrorEdge("a", "b", on=ProviderError)]
    assert check(edges).errors["a"][0].on == (ProviderError,)


def test_a_graph_is_drawn():
    class Drawn(Graph, abstract=True):
        nodes = dict.fromkeys(("s", "a-1", "a_1", "j"), Step)
        start, finish = "s", "j"
        edges = (Edge("s", ["a-1", "a_1"]), Edge(["a-1", "a_1"], "j"))

    class Routed(Graph, abstract=True):
        nodes = dict.fromkeys("sabj", Step)
        start, finish = "s", "j"
        edges = (*ROUTES, ErrorEdge("a", "b", on=ValueError))

    text = Drawn.to_mermaid()
    for line in (
        "flowchart TD", "START((START))", "FINISH((FINISH))", "START --> n_s", "n_j --> FINISH",
        'n_a_1["a-1"]', 'n_a_1_2["a_1"]', "n_s -->|fork| n_a_1\n", "n_s -->|fork| n_a_1_2",
        "n_a_1 -->|join| n_j",
    ):  # fmt: skip
        assert line in text
    routed = Routed.to_mermaid()
    for line in ("n_s -->|condition| n_a", "n_s --> n_b", "n_a -.->|error| n_b", "n_a --> n_j"):
        assert line in routed
