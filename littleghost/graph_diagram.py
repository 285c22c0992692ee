"""Draws a graph as a Mermaid flowchart."""

from __future__ import annotations

import re
from collections.abc import Iterable

from littleghost.engine.decide.graph import GraphPlan, Route


def draw(plan: GraphPlan) -> str:
    """Give the text of a flowchart: nodes, ways, conditions, forks, joins and error edges."""
    ids = _ids(plan.nodes)
    lines = ["flowchart TD", "  START((START))", "  FINISH((FINISH))"]
    lines += [f'  {ids[name]}["{_label(name)}"]' for name in plan.nodes]
    lines.append(f"  START --> {ids[plan.start]}")
    routes = [route for own in plan.routes.values() for route in own]
    # An edge that a fork's branches end with is a join, however it was declared.
    joins = {(end, route.fork.join) for route in routes if route.fork for end in route.fork.ends}
    lines += [
        f"  {ids[route.source]} -->{_kind(route)} {ids[target]}"
        for route in routes
        for target in route.targets
        if (route.source, target) not in joins
    ]
    lines += [f"  {ids[end]} -->|join| {ids[join]}" for end, join in sorted(joins)]
    lines += [
        f"  {ids[route.source]} -.->|error| {ids[route.target]}"
        for own in plan.errors.values()
        for route in own
    ]
    lines.append(f"  {ids[plan.finish]} --> FINISH")
    return "\n".join(lines) + "\n"


def _kind(route: Route) -> str:
    words = [
        word for word, said in (("condition", route.when), ("fork", len(route.targets) > 1)) if said
    ]
    return f"|{' '.join(words)}|" if words else ""


def _label(name: str) -> str:
    return name.replace('"', "#quot;")


def _ids(names: Iterable[str]) -> dict[str, str]:
    """Give each node an id of plain characters; two that would be equal get a number."""
    ids: dict[str, str] = {}
    for name in names:
        plain = "n_" + re.sub(r"[^A-Za-z0-9_]", "_", name)
        taken, number = set(ids.values()), 2
        wanted = plain
        while wanted in taken:
            wanted, number = f"{plain}_{number}", number + 1
        ids[name] = wanted
    return ids
