"""Cut a graph with a fork and a join at every operation, and require the same end."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import pytest

from littleghost import Edge, ErrorEdge, Graph, Node
from littleghost.errors import ProviderError
from littleghost.graph import State
from tests.integration.journal.test_cut import MODES, cut_everywhere, faults_at
from tests.support.cast import Clerk
from tests.support.scenarios import Scenario, enqueue, play
from tests.support.world import World

pytestmark = pytest.mark.redis


class ForkGraph(Graph):
    """Two branches, one of two nodes; the join tells what both gave."""

    nodes = dict.fromkeys(("s", "a", "b1", "b2", "j"), Clerk)
    start, finish = "s", "j"
    edges = (
        Edge("s", "a", input=lambda state: "say one"),
        Edge("s", "b1", input=lambda state: "parallel"),
        Edge("b1", "b2", input=lambda state: f"say {state.result('b1').text} two"),
        Edge(["a", "b2"], "j", input=lambda state: "say " + _told(state)),
    )


class RescueGraph(Graph):
    """A branch that fails, is tried again and then rescued."""

    nodes = MappingProxyType(
        {
            **dict.fromkeys("srebj", Clerk),
            "a": Node(Clerk, retries=1, retry_on=ProviderError, input=lambda state: "bad"),
        }
    )
    start, finish = "s", "j"
    edges = (
        Edge("s", ["a", "b"], max_concurrency=1, input=lambda state: _input_of(state)),
        ErrorEdge("a", "r", on=ProviderError, input=lambda state: f"say {state.error.type}"),
        Edge("r", "e", input=lambda state: f"say {state.result('r').text}"),
        Edge("a", "e", input=lambda state: "say never"),
        Edge(["e", "b"], "j", input=lambda state: "say " + _told(state)),
    )


class FailingGraph(Graph):
    """A branch that fails, with the whole graph, while the other is at work."""

    nodes = dict.fromkeys("sabj", Clerk)
    start, finish = "s", "j"
    edges = (
        Edge("s", ["a", "b"], input=lambda state: "bad" if state.current == "a" else "say b"),
        Edge(["a", "b"], "j"),
    )


def _told(state: State) -> str:
    return " ".join(f"{name}={result.text}" for name, result in state.incoming_results.items())


def _input_of(state: State) -> str:
    return "bad" if state.current == "a" else "say b"


def _scenario(name: str, graph: type[Graph]) -> Scenario:
    return Scenario(name, lambda world: [enqueue(world, "text", assembly=graph)])


SCENARIOS = [
    _scenario("fork", ForkGraph),
    _scenario("rescue", RescueGraph),
    _scenario("failing branch", FailingGraph),
]


def test_the_quiet_ends_are_what_they_should_be(world: World):
    fork, rescue, failing = (play(world, scenario)[0] for scenario in SCENARIOS)
    assert (fork.status, fork.response) == ("completed", "a=one b2=Both are done. two")
    assert fork.events["assembly_join"] == fork.events["assembly_fork"] == 1
    assert fork.events["assembly_step_stop"] == 5
    assert (rescue.status, rescue.response) == ("completed", "e=InvalidRequestError b=b")
    assert rescue.events["assembly_step_error"] == 2
    assert (failing.status, failing.error) == ("failed", "invalid_request")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS[:2], ids=lambda scenario: scenario.name)
def test_the_end_is_the_same_wherever_a_graph_is_cut(
    worlds: Callable[..., World], scenario: Scenario, mode: str
) -> None:
    assert cut_everywhere(worlds(**MODES[mode]), scenario) > 20


def test_a_failing_branch_ends_the_graph_wherever_it_is_cut(world: World):
    # How far the other branch comes is a matter of time, so only the end itself is compared.
    scenario = SCENARIOS[2]
    play(world, scenario)
    for number, operation in enumerate(list(world.operations)):
        for fault in faults_at(operation):
            [end] = play(world, scenario, {number: fault})
            assert (end.status, end.error) == ("failed", "invalid_request"), (number, operation)
