"""What a participant waits for, and with what state it goes on in another run."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost.engine.decide.graph_paths import Path, Progress
from littleghost.engine.unfinished import awaited, kept, reopened


def step(*pids: str, at: int = 5) -> dict[str, Any]:
    return {"pids": list(pids), "at": [at] * len(pids)}


def workflow(*steps: Any, cut: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"n": 3, "open": {"i": 0, "steps": list(steps), "cut": list(cut)}}


def path(*pids: str, status: str = "running") -> Path:
    return Path(node="n", status=status, pids=list(pids), at=[5] * len(pids))


def graph(main: Path, *branches: Path) -> dict[str, Any]:
    fork = ["s", 0] if branches else None
    return Progress(main=main, fork=fork, branches=list(branches)).to_json()


@pytest.mark.parametrize(
    ("kind", "state", "expected"),
    [
        ("agent", {"turn": 1}, ["0.7"]),
        ("workflow", {}, []),
        ("workflow", {"n": 2, "last": "0.1"}, []),
        ("workflow", workflow(step("0.0", "0.2"), None, step("0.1")), ["0.2", "0.1"]),
        ("workflow", {"open": {"i": 0, "from": 4, "begun": 2, "closed": 0}}, ["0.4", "0.5"]),
        ("swarm", {}, []),
        ("swarm", {"active": "a", **step("0.0", "0.1")}, ["0.1"]),
        ("graph", {}, []),
        ("graph", graph(path("0.0", "0.1")), ["0.1"]),
        ("graph", graph(path("0.0", status="waiting")), []),
        (
            "graph",
            graph(
                path("0.0", status="ended"),
                path("0.1"),
                path("0.2", status="ended"),
                path("0.3", "0.4"),
                path(status="limited"),
            ),
            ["0.1", "0.4"],
        ),
        (
            "graph",
            {
                **graph(path("0.0", status="ended")),
                "fork": ["s", 0],
                "fan": {"number": 1, "begun": 2, "closed": 1},
            },
            ["0.1", "0.2"],
        ),
        ("subagents", {}, []),
        ("subagents", {"ids": {"/boss/a": {"pid": "0.1"}, "/boss/b": {"pid": None}}}, ["0.1"]),
        ("team", {"members": []}, None),
    ],
)
def test_the_children_that_are_still_to_answer(kind: str, state: Any, expected: Any) -> None:
    assert awaited("0", kind, state, ["0.7"]) == expected


def test_revived_steps_are_not_stopped_and_have_their_time_again() -> None:
    state = workflow(step("0.0", "0.2"), None, step("0.1"), cut=("0.1", "0.2", "0.0"))
    again = reopened("workflow", state, {"0.2"}, 99)
    opened = again["open"]
    assert opened["cut"] == ["0.1", "0.0"]
    assert [one and one["at"] for one in opened["steps"]] == [[5, 99], None, [5]]
    assert state["open"]["cut"] == ["0.1", "0.2", "0.0"], "the old state was changed"
    assert reopened("swarm", {"active": "a", **step("0.0")}, {"0.0"}, 99)["at"] == [99]
    assert reopened("graph", graph(path("0.0")), {"0.0"}, 99)["main"]["at"] == [99]
    assert reopened("agent", {"turn": 2, "calls": 1}, {"0.0"}, 99) == {"turn": 2, "calls": 1}
    assert reopened("swarm", {}, {"0.0"}, 99) == {}


def test_the_ends_of_children_in_a_row_are_told_again() -> None:
    row = {"i": 0, "from": 0, "begun": 2, "closed": 2, "cut": ["0.1"]}
    again = reopened("workflow", {"n": 2, "open": row}, {"0.1"}, 99)
    assert again["open"] == {**row, "closed": 0, "cut": []}
    state = {"n": 2, "open": row}
    tail = [{"m": 0, "end": [{"p": "0.0"}, {"p": "0.2"}]}, {"m": 1, "x": {}}]
    assert kept("0", "workflow", state, tail, {"0.1"}) == (1, {"n": 2, "last": "0.1"})


ASKED = {"m": 1, "ask": {"k": "step", "n": "f"}}


@pytest.mark.parametrize(
    ("kind", "tail", "count"),
    [
        ("agent", [{"role": "assistant"}], 0),
        ("workflow", [], 0),
        ("workflow", [{**ASKED, "v": 1}], 1),
        ("workflow", [{**ASKED, "v": 1}, {"m": 2, "ask": {}, "v": 2}], 2),
        ("workflow", [{**ASKED, "v": 1}, {"m": 2, "ask": {}, "x": {}}], 1),
        ("workflow", [{**ASKED, "x": {}}, {"m": 2, "ask": {}, "v": 2}], 0),
        ("workflow", [{"m": 0, "end": [{"p": "0.0"}]}, {**ASKED, "v": 1}], 2),
        ("workflow", [{"m": 0, "end": [{"p": "0.0"}, {"p": "0.1"}]}, {**ASKED, "v": 1}], 0),
        ("workflow", [{"m": 0, "end": [{"x": {}, "stopped": True}]}], 0),
        ("workflow", [{**ASKED, "v": 1}, {"m": 2, "ask": {}}], 1),
        ("workflow", [{"p": "0.1", "x": {}}], 0),
    ],
)
def test_what_a_failing_decision_recorded_stays_up_to_what_failed(
    kind: str, tail: Any, count: int
) -> None:
    state = workflow(step("0.0"), step("0.1"))
    found, again = kept("0", kind, state, tail, {"0.1"})
    assert found == count
    closed = count > 0 and "end" in tail[0]
    assert ("open" in again) is not closed
    assert again.get("last") == ("0.1" if closed else None)
    assert "open" in state, "the old state was changed"
