"""A plain fork of a graph: many branches of one node each, which one join waits for.

Its branches need no look before all have ended, or one has failed: nothing bounds an attempt, no
error edge leads on, and each ends where it begins. So they share a join, they are numbered in a
row, and only their number is kept; they are started and told of in pieces, see `replay_many`.

JSON in the graph's record: `{"number": of the first participant, "step": of the first node,
"begun": how many were started, "closed": how many ends were told, "before": what led to them}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from littleghost.engine.commands import Join
from littleghost.engine.decide.graph import GraphPlan, Route
from littleghost.engine.decide.graph_paths import Path, Progress
from littleghost.engine.opening import advance_id
from littleghost.engine.steps import START_PIECE

# From so many branches on. Of fewer, each is looked at when it ends, and told of then.
MANY_BRANCHES = 32


def begin_fan(plan: GraphPlan, now: Progress, route: Route, path: Path) -> dict[str, Any] | None:
    """Give the record of a plain fork that begins; None when the fork is none."""
    fork = route.fork
    if fork is None or len(route.targets) < MANY_BRANCHES:
        return None
    if now.step + len(route.targets) > plan.max_steps:
        return None
    for target, end in zip(route.targets, fork.ends, strict=True):
        policy = plan.nodes[target].policy
        if target != end or policy.timeout_s is not None or policy.retries:
            return None
        if plan.errors.get(target):
            return None
    return {
        "number": now.number,
        "step": now.step + 1,
        "begun": 0,
        "closed": 0,
        "before": path.given(),
    }


def fan_path(participant: str, now: Progress, route: Route, place: int) -> Path:
    """Give a branch as the path it would be; running if it was started."""
    fan, target = now.fan or {}, route.targets[place]
    path = Path(node=target, branch=target)
    path.come_to(target, ["route", *(now.fork or ()), place], [dict(fan["before"])])
    if place < fan["begun"]:
        path.status, path.step = "running", fan["step"] + place
        path.pids = [f"{participant}.{fan['number'] + place}"]
    return path


def fan_join(participant: str, now: Progress, route: Route) -> Join:
    """Make the join of the branches, before a piece of them is started."""
    fan = now.fan or {}
    return Join(
        id=f"{participant}-j{fan['number']}",
        participant=participant,
        members=tuple(
            f"{participant}.{fan['number'] + place}" for place in range(len(route.targets))
        ),
        width=route.fork.width if route.fork else 1,
        then=advance_id(participant),
        fail_fast=True,
        begun=fan["begun"],
        at_once=True,
        starting=min(START_PIECE, len(route.targets) - fan["begun"]),
    )


def fan_running(participant: str, now: Progress, children: Mapping[str, Any]) -> list[str]:
    """Give the participants of a plain fork that still run."""
    fan = now.fan or {"number": 0, "begun": 0}
    pids = (f"{participant}.{fan['number'] + place}" for place in range(fan["begun"]))
    return [pid for pid in pids if pid not in children]
