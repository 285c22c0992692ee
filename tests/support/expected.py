"""What must be seen of a run, as the reference says it.

Where the promise leaves open which of several things is first, it says so (`Ambiguous`, `loose`,
several `before`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# The way to a participant: for each step on it the composite's attempt, name, branch, and how many
# of the same were before.
Key: TypeAlias = tuple[Any, ...]


class Ambiguous(Exception):  # noqa: N818 - it is no error
    """What must come out depends on which of several is first."""


@dataclass(frozen=True)
class Done:
    """A participant gave this back; `shown` is a step's output when that is something else."""

    output: Any
    shown: Any = None
    to: str = ""

    @property
    def text(self) -> str:
        if isinstance(self.output, str):
            return self.output
        return json.dumps(self.output, separators=(",", ":"), ensure_ascii=False)


class Failed(Exception):  # noqa: N818 - named like Done
    """A participant failed with an error of this class; `own`: the workflow's code raised it."""

    def __init__(self, error: type[BaseException], *, own: bool = False) -> None:
        super().__init__(error.__name__)
        self.error, self.own = error, own


@dataclass(eq=False, kw_only=True)
class Entry:
    """Something that must be seen; a loose one may be missing, or cut short."""

    key: Key
    loose: bool = False


@dataclass(eq=False, kw_only=True)
class Expected(Entry):
    """A step. `before` lists every possible set of predecessors."""

    parent: Key | None
    kind: str
    branch: str | None
    before: set[tuple[Key, ...]]
    attempts: list[str | None] = field(default_factory=list[Any])
    output: Any = None


@dataclass(eq=False, kw_only=True)
class Calls(Entry):
    """The tool calls of one agent, and its answered model requests."""

    names: tuple[str, ...] = ()
    turns: int = 0
    helped: bool = False


@dataclass(eq=False, kw_only=True)
class Made(Entry):
    """A value of a workflow's own that was made."""

    var: str


@dataclass(frozen=True)
class Scope:
    """Where a participant is: its key, the number of its attempt, the step around its children."""

    key: Key
    attempt: int
    home: Key | None
