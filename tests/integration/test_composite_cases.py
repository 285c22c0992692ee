"""The reduced cases of `tests/cases` about graphs and swarms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from littleghost import Edge, Run
from littleghost.engine.decide.graph import Route, choose
from littleghost.engine.decide.graph_state import NodeResult, State
from littleghost.errors import AssemblyRoutingError, DefinitionError
from littleghost.messages import user
from littleghost.providers.scripted import Call, Reply
from tests.integration.scripted import (
    is_valid_for_providers,
    last_request,
    make_agent,
    results_in,
    terminals,
)
from tests.integration.test_graph import Order, asked, code_of, make_graph, says
from tests.integration.test_swarm import Look, handoff, make_swarm, member

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]
CASES = Path(__file__).parent.parent / "cases"


def case(name: str) -> Mapping[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text())


def usage_of(run: Run) -> int:
    return run.usage.total


# graph-join-with-skipped-branch

SKIPPED = case("graph-join-with-skipped-branch")


def diamond(said: str, order: Order) -> type[Any]:
    """Make the case's graph; taking both ways is declared, as one edge to two nodes."""
    names: list[str] = SKIPPED["input"]["graph"]["nodes"]
    nodes = {name: says(said if name == "start" else name, order) for name in names}
    edges: list[Edge] = []
    for source, target, when in SKIPPED["input"]["graph"]["edges"]:
        way = str(when)[-2:-1]
        edges.append(
            Edge(source, target, when and (lambda s, way=way: s.result("start").output == way))
        )
    both = Edge("start", ["A", "B"], lambda state: state.result("start").output == "both")
    return make_graph(nodes, [*edges, both])


@pytest.mark.parametrize("route", ["a", "b", "both"])
def test_a_join_waits_for_the_branches_that_were_taken(route: str) -> None:
    order: Order = []
    graph = diamond(route, order)
    run = graph.ask("go")
    assert run.is_completed
    wanted = SKIPPED["expected"][route]
    assert order[0] == route
    if route == "both":
        assert sorted(order[1:3]) == ["A", "B"]
        assert order[3:] == ["join", "after"]
        question = asked(graph.nodes["join"])
        assert question.endswith("\n\nFrom A:\nA\n\nFrom B:\nB")
    else:
        assert order[1:] == wanted[1:]
        assert run.result is not None
        skipped = {"a": "B", "b": "A"}[route]
        assert skipped not in [step.participant for step in run.result.steps]


def test_a_route_that_is_none_is_told() -> None:
    kind, detail = code_of(diamond("none", []).ask("go"))
    assert kind == "AssemblyRoutingError"
    assert "'start'" in detail
    assert "'none'" in detail


# graph-no-edge-matches

NO_MATCH = case("graph-no-edge-matches")


@pytest.mark.parametrize("given", NO_MATCH["input"]["router_results"], ids=str)
def test_a_router_whose_value_fits_no_edge_fails_with_node_and_value(given: Any) -> None:
    routes: list[Route] = []
    for source, target, when in NO_MATCH["input"]["graph"]["edges"]:
        value = int(when[-1])
        holds = lambda state, value=value: state.result("r").output == value  # noqa: E731
        routes.append(Route(source=source, targets=(target,), mappers=(None,), when=holds))
    results = {"r": NodeResult(given)}
    state = State(
        input=user("go"), context={}, step=1, current="r", results=results, incoming_results={}
    )
    with pytest.raises(AssemblyRoutingError) as raised:
        choose("r", routes, state)
    assert "'r'" in str(raised.value)
    assert repr(given) in str(raised.value)


def test_an_unknown_target_is_refused_before_a_run_exists() -> None:
    graph = make_graph({"r": says("1"), "x": says("x")}, [Edge("r", "x"), Edge("r", "z")])
    with pytest.raises(DefinitionError, match="'z', which is no node"):
        graph.ask("go")


# graph-uneven-branches-run-join-once


@pytest.mark.parametrize("declared", [True, False])
def test_the_join_of_uneven_branches_runs_once_with_both_outputs_in_order(declared: bool) -> None:
    uneven = case("graph-uneven-branches-run-join-once")["input"]["graph"]
    order: Order = []
    # A join of whichever comes first is no part of a graph here: `k` is left out.
    nodes = {name: says(name, order) for name in uneven["nodes"] if name != "k"}
    pairs = [(source, target) for source, target, _ in uneven["edges"] if target != "k"]
    edges: list[Edge] = [Edge(*pair) for pair in pairs]
    if declared:
        edges = [Edge(*pair) for pair in pairs if pair[1] != "j"] + [Edge(["a1", "b3"], "j")]
    graph = make_graph(nodes, edges)
    assert graph.ask("go").response == "j"
    assert order.count("j") == 1
    assert order.index("j") == len(order) - 1
    assert asked(nodes["j"]).endswith("From a1:\na1\n\nFrom b3:\nb3")


# handoff-loops


def test_two_that_hand_over_to_each_other_for_ever_are_ended_by_default() -> None:
    a, b = member("a", lambda _: handoff("b")), member("b", lambda _: handoff("a"))
    run = make_swarm(a, b).ask("go")
    assert run.is_failed
    assert run.error is not None
    assert run.error.code == "assembly_limit"
    assert "max_handoff_repeats" in run.error.detail
    assert usage_of(run) > 0
    assert terminals(run) == ["run_error"]


def test_of_two_handoffs_in_one_turn_none_is_followed_and_each_is_answered() -> None:
    both = Reply(tool_calls=[*handoff("b").tool_calls, *handoff("c").tool_calls])
    a = member("a", [both, handoff("c", "alone")])
    b, c = member("b", ["never"]), member("c", ["I am c."])
    run = make_swarm(a, b, c).ask("go")
    assert run.response == "I am c."
    told = results_in(last_request(a))
    assert [status for status, _ in told] == ["error", "error"]
    assert all("must be the only call" in text for _, text in told)
    assert is_valid_for_providers(last_request(c))
    assert not b.brain.requests


def test_a_handoff_beside_a_call_waits_until_the_call_was_made() -> None:
    mixed = Reply(tool_calls=[Call("look"), *handoff("b").tool_calls])
    a = member("a", [mixed, Reply(tool_calls=[Call("look")]), handoff("b", "I looked.")], Look)
    b = member("b", ["I am b."])
    run = make_swarm(a, b).ask("go", context={"k": 1})
    assert run.response == "I am b."
    statuses = [status for status, _ in results_in(last_request(a))]
    assert statuses == ["error", "error", "success"]


def test_a_handoff_to_itself_is_an_error_for_the_model() -> None:
    a, b = member("a", [handoff("a"), "I stay."]), member("b", ["never"])
    run = make_swarm(a, b).ask("go")
    assert run.response == "I stay."
    [(status, _)] = results_in(last_request(a))
    assert status == "error"


def test_an_empty_answer_is_final() -> None:
    a, b = member("a", [Reply(text="")]), make_agent(["never"], assembly_id="b")
    run = make_swarm(a, b).ask("go")
    assert run.is_completed
    assert run.response == ""
    assert len(a.brain.requests) == 1
