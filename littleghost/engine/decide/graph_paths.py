"""Where a graph is, as its record keeps it: the main path, and the branches of an open fork.

JSON: `{"step", "number", "main": path, "fork": [source, route index] | null, "branches": [path],
"fan"}`.
Nodes' results are kept as `[participant, step id]`; the values themselves are in the graph's list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

# [participant of the last attempt, id of the step]; None: the node failed when it ran last.
Given: TypeAlias = "list[str] | None"


@dataclass(slots=True, kw_only=True)
class Path:
    """A sequence of nodes, one after the other.

    Attributes:
        node: The node it has come to.
        status: waiting to start it, running it, ended (the path's last node is done), or limited
            (it may not go on, since the graph has used its steps).
        branch: The branch's first node; None for the main path.
        edge: How it came to the node: `[kind, source, index, place]`; empty at the start.
        step: The number of the node's execution.
        pids: The participant of each attempt.
        at: When each attempt could start, in the journal's milliseconds.
        before: The direct predecessors: `{n: name, s: step id, p: participant | x: error class}`.
        results: What nodes of this path gave.
        error: Why the node before failed, when an error edge led here.
    """

    node: str
    status: Literal["waiting", "running", "ended", "limited"] = "waiting"
    branch: str | None = None
    edge: list[Any] = field(default_factory=list[Any])
    step: int = 0
    pids: list[str] = field(default_factory=list[str])
    at: list[int] = field(default_factory=list[int])
    before: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    results: dict[str, Given] = field(default_factory=dict[str, "Given"])
    error: dict[str, Any] | None = None

    @property
    def step_id(self) -> str:
        """The id of the step it runs: the participant of the first attempt."""
        return self.pids[0] if self.pids else ""

    @property
    def previous(self) -> str | None:
        """The node before, when it is exactly one."""
        return self.before[0]["n"] if len(self.before) == 1 else None

    def come_to(
        self,
        node: str,
        edge: list[Any],
        before: list[dict[str, str]],
        error: dict[str, Any] | None = None,
    ) -> None:
        """Go on to a node, which is not started yet."""
        self.node, self.edge, self.before, self.error = node, edge, before, error
        self.status, self.pids, self.at = "waiting", [], []

    def given(self) -> dict[str, str]:
        """Tell the next node of the one that has just ended well."""
        return {"n": self.node, "s": self.step_id, "p": self.pids[-1]}


@dataclass(slots=True, kw_only=True)
class Progress:
    """All that a graph remembers between two decisions.

    Attributes:
        step: How many times nodes were started, not counting further attempts.
        number: The number of the next participant.
        fork: The open fork, as its source and the index of its route.
        branches: The paths of the open fork.
        fan: The open fork, when it is a plain one and has no paths; see `graph_fan`.
    """

    main: Path
    step: int = 0
    number: int = 0
    fork: list[Any] | None = None
    branches: list[Path] = field(default_factory=list[Path])
    fan: dict[str, Any] | None = None

    def open_paths(self) -> list[Path]:
        """Give the paths that can move: the branches of an open fork, or the main path."""
        return self.branches if self.fork is not None else [self.main]

    def results_for(self, path: Path) -> dict[str, list[str]]:
        """Give the results a path sees: the main path's, and its own."""
        seen = {**self.main.results, **path.results}
        return {name: given for name, given in seen.items() if given is not None}

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Progress:
        """Read what `to_json` wrote."""
        values: dict[str, Any] = {
            **data,
            "main": Path(**data["main"]),
            "branches": [Path(**item) for item in data["branches"]],
        }
        return cls(**values)
