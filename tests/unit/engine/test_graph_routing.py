"""Which way a graph takes from a node that ended, well or not, and what its code sees."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost.engine.decide.graph import ErrorRoute, Route, choose, error_route
from littleghost.engine.decide.graph_paths import Path, Progress
from littleghost.engine.decide.graph_state import NodeResult, State, default_input
from littleghost.errors import (
    AssemblyRoutingError,
    AssemblyStepTimeoutError,
    CancelledError,
    CleanupError,
    DeadlineExceededError,
    LittleGhostError,
    ProviderError,
    RateLimitedError,
)
from littleghost.failure import Failure
from littleghost.messages import Image, Message, Text, user


def state(output: Any = None, **changes: Any) -> State:
    results = {"r": NodeResult(output, "0.0")}
    values: dict[str, Any] = {
        "input": user("hi"), "context": {}, "step": 1, "current": "r", "results": results,
        "incoming_results": {},
    }  # fmt: skip
    return State(**{**values, **changes})


def route(target: str, when: Any = None) -> Route:
    return Route(source="r", targets=(target,), mappers=(None,), when=when)


def gives(value: Any) -> Any:
    return lambda state: state.result("r").output == value


ROUTER = [route("x", gives(1)), route("y", gives(2))]


@pytest.mark.parametrize(("output", "index"), [(1, 0), (2, 1)])
def test_the_condition_that_holds_decides(output: Any, index: int):
    assert choose("r", ROUTER, state(output)) == index


@pytest.mark.parametrize("output", [3, None, "z", ["x", "x"], []])
def test_no_match_names_the_node_and_its_value(output: Any):
    with pytest.raises(AssemblyRoutingError, match="'r' no condition holds") as caught:
        choose("r", ROUTER, state(output))
    assert repr(output) in str(caught.value)
    assert choose("r", [*ROUTER, route("z")], state(output)) == 2
    assert choose("r", [route("z"), *ROUTER], state(output)) == 0


def test_two_matches_are_an_error_even_when_they_lead_to_the_same_node():
    for other in ("x", "y"):
        with pytest.raises(AssemblyRoutingError, match="2 edges hold at once"):
            choose("r", [route("x", gives(1)), route(other, gives(1)), route("z")], state(1))


def test_every_condition_is_asked_and_one_that_raises_is_named():
    with pytest.raises(AssemblyRoutingError, match="from 'r' to 'y' raised ZeroDivisionError"):
        choose("r", [route("x", gives(1)), route("y", lambda state: 1 / 0)], state(1))
    with pytest.raises(AssemblyRoutingError, match="node 'q' has given no result yet"):
        choose("r", [route("x", lambda state: state.result("q").output)], state(1))
    with pytest.raises(AssemblyRoutingError, match="it has no edge"):
        choose("r", [], state(1))


@pytest.mark.parametrize(
    ("error", "index"),
    [
        (RateLimitedError("busy"), 0),
        (AssemblyStepTimeoutError("late"), 1),
        (ValueError("no"), None),
        (CancelledError("no"), None),
        (DeadlineExceededError("no"), None),
        (CleanupError("no"), None),
    ],
)
def test_an_error_edge_takes_its_classes_and_their_subclasses(
    error: BaseException, index: int | None
):
    routes = [
        ErrorRoute(source="r", target="x", on=(ProviderError,)),
        ErrorRoute(source="r", target="y", on=(AssemblyStepTimeoutError, CancelledError)),
    ]
    assert error_route("r", routes, Failure.of(error)) == index


def test_two_error_edges_for_one_failure_are_an_error():
    routes = [
        ErrorRoute(source="r", target=name, on=(kind,))
        for name, kind in (("x", LittleGhostError), ("y", ProviderError))
    ]
    with pytest.raises(AssemblyRoutingError, match="'x', 'y' all take"):
        error_route("r", routes, Failure.of(ProviderError("no")))


def test_a_state_is_read_only_and_gives_results_by_name():
    seen = state({"a": 1}, previous="r", predecessors=("r",))
    assert seen.result("r").output == {"a": 1}
    assert seen.result("r").text == '{"a":1}'
    assert seen.previous_result == seen.result("r")
    assert state(1).previous_result is None
    with pytest.raises(AttributeError):
        seen.step = 2  # type: ignore[misc]


def test_the_usual_input_keeps_the_task_and_its_attachments():
    picture = Image(b"x", "image/png")
    original = Message("user", (Text("Look."), picture), {"id": 7})
    assert default_input(original, []) is original
    made = default_input(original, [("a", "one"), ("b", "Failed with ValueError.")])
    assert made.text == (
        "Original Task:\nLook.\n\nInputs from previous nodes:"
        "\n\nFrom a:\none\n\nFrom b:\nFailed with ValueError."
    )
    assert picture in made.content
    assert (made.role, made.metadata) == ("user", {"id": 7})


def test_progress_is_json_and_branches_see_their_own_results_only():
    main = Path(node="s", results={"s": ["0.0", "0.0"], "old": ["0.1", "0.1"]})
    branch = Path(node="a", branch="a", results={"a": ["0.2", "0.2"], "old": None})
    sibling = Path(node="b", branch="b")
    now = Progress(main=main, step=3, number=4, fork=["s", 0], branches=[branch, sibling])
    assert now.results_for(branch) == {"s": ["0.0", "0.0"], "a": ["0.2", "0.2"]}
    assert set(now.results_for(sibling)) == {"s", "old"}
    assert Progress.from_json(now.to_json()) == now
