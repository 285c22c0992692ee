"""What a participant that did not end well was waiting for, and how it goes on in another run.

Each kind of assembly keeps in its own state which of its children are still to answer. A child
whose failure its parent has dealt with (another attempt, an error edge, an `except`) is no longer
among them and stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

# Kinds whose state holds steps: `{"pids": [participant of each attempt], "at": [start of each]}`.
_STEPS = ("workflow", "swarm", "graph")
# An agent's coordinator of subagents, which goes on with it; it never ends by itself.
COORDINATOR = "subagents"


def awaited(
    participant: str, kind: str, state: Mapping[str, Any], parked: Collection[str]
) -> Collection[str] | None:
    """Give the children that a participant waits for, however they ended.

    Args:
        participant: Its id.
        kind: The assembly's kind.
        state: What its decider remembers.
        parked: The participants that its own tasks wait for.

    Returns:
        Their ids; None for a kind that is not known here, which waits for all of its children.
    """
    if kind in _STEPS:
        rows = [f"{participant}.{number}" for number in _open_row(kind, state)]
        return [*rows, *(step["pids"][-1] for step in _open_steps(kind, state))]
    if kind == COORDINATOR:
        return [item["pid"] for item in state.get("ids", {}).values() if item["pid"]]
    return parked if kind == "agent" else None


def reopened(
    kind: str, state: Mapping[str, Any], revived: Collection[str], now_ms: int
) -> dict[str, Any]:
    """Give the state with which a participant goes on.

    Args:
        revived: The participants that go on as well. They count as not stopped, and what may bound
            their time begins anew.
        now_ms: The journal's time.
    """
    again = deepcopy(dict(state))
    if kind not in _STEPS:
        return again
    for step in _open_steps(kind, again):
        if step["pids"][-1] in revived:
            step["at"][-1] = now_ms
    if "open" in again:
        again["open"]["cut"] = [pid for pid in again["open"]["cut"] if pid not in revived]
    for row in (again.get("open"), again.get("fan")):
        if row and "closed" in row:
            # What was told of their ends was told of the old run.
            row["closed"] = 0
    return again


def kept(
    participant: str,
    kind: str,
    state: Mapping[str, Any],
    tail: Sequence[Any],
    failed: Collection[str],
) -> tuple[int, dict[str, Any]]:
    """Say how much of what a failing decision appended stays, and the state that goes with it.

    A workflow's decision may record values before it fails; they are made once only. What failed,
    and whatever its code did about that, is left to be done again.

    Args:
        state: The state before that decision.
        tail: The records that the decision appended.
        failed: The participants that did not end well.

    Returns:
        How many of the records stay, and the state.
    """
    again = dict(state)
    if kind != "workflow":
        return 0, again
    count = 0
    for record in tail:
        if not isinstance(record, Mapping) or "x" in record or "m" not in record:
            break
        ends = record.get("end", ())
        if any("x" in end or end.get("p") in failed for end in ends):
            break
        count += 1
        opened = again.get("open", {})
        if "end" in record and opened.get("i") == record["m"]:
            if "from" in opened:
                again["last"] = f"{participant}.{opened['from'] + len(ends) - 1}"
            else:
                again["last"] = opened["steps"][-1]["pids"][0]
            del again["open"]
    # Children that a decision began, and then failed beside, were never started.
    while count and set(tail[count - 1]) == {"m", "ask"}:
        count -= 1
    return count, again


def _open_row(kind: str, state: Mapping[str, Any]) -> Iterable[int]:
    """Give the numbers of children that were started in a row, of which no list is kept."""
    if kind == "workflow" and "from" in state.get("open", {}):
        opened = state["open"]
        return range(opened["from"], opened["from"] + opened["begun"])
    if kind == "graph" and state.get("fan"):
        fan = state["fan"]
        return range(fan["number"], fan["number"] + fan["begun"])
    return ()


def _open_steps(kind: str, state: Mapping[str, Any]) -> Iterator[Any]:
    if kind == "swarm":
        if state:
            yield state
    elif kind == "workflow":
        yield from (step for step in state.get("open", {}).get("steps", ()) if step)
    elif state:
        paths = [state["main"]] if state["fork"] is None else state["branches"]
        yield from (path for path in paths if path["status"] == "running")
