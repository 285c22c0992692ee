"""What the coordinator of an agent's subagents remembers, and what it answers to the model.

The state is JSON: `{"read": records looked at, "n": number of the next child, "turns": begun so
far, "ids": {identity: …}, "waits": […], "asks": {call: …}, "talks": {identity: [[place, pid], …]}}`
with the open waits and interjections, and what each identity was asked and who answered it.
Messages are not in it: they stay in the coordinator's list, and the state holds their places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from littleghost.errors import DefinitionError

# Where a child's newest text is noted, in the coordinator's working state, and where the
# conversations of earlier runs are.
PROGRESS, KEPT = "progress/", "kept/"
ROOT_PATH = "/root"
MAX_PATH = 1_024
# The scope whose conversations outlast the run: that of the run's own agent.
DURABLE = "0"

FAILED = "The subagent's turn failed. Spawn a new one if the work is still needed."
ENDED = "The subagent has failed or was cancelled earlier. Spawn a new one."
GONE = "The subagent's kind is not available any more."

_MOST = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentLimits:
    """What an agent's subagents may use up, all together.

    Attributes:
        concurrent: Turns at the same time.
        identities: Subagents that there may be.
        turns: Turns that may begin; None for no limit.
        queued: Messages that may wait for one subagent.
        interjections: Messages that may be put into one turn.
        message_chars: The longest message to a subagent.
        response_chars: Where a subagent's answer is cut.
        progress_chars: Where what it is saying just now is cut.
        wait_s: Seconds that `wait_for_subagents` waits.
    """

    concurrent: int = 8
    identities: int = 20
    turns: int | None = 100
    queued: int = 8
    interjections: int = 8
    message_chars: int = 50_000
    response_chars: int = 100_000
    progress_chars: int = 160
    wait_s: float = 30.0

    def __post_init__(self) -> None:
        problems: list[str] = []
        for name in self.__slots__:
            value: Any = getattr(self, name)
            kinds = int | float if name == "wait_s" else int
            is_number = isinstance(value, kinds) and not isinstance(value, bool)
            if not (is_number and 0 < value <= _MOST) and not (value is None and name == "turns"):
                problems.append(f"{name} is {value!r}")
        if problems:
            raise DefinitionError(
                f"subagent limits: {', '.join(problems)}; use whole numbers above 0 "
                "(wait_s: seconds above 0; turns: or None)"
            )


@dataclass(slots=True, kw_only=True)
class Identity:
    """One subagent: a conversation, and the messages that wait for it.

    Attributes:
        id: Its path: that of its agent, and its own name behind it.
        kind: Its kind; empty for a tool whose context is preserved.
        scope: Whose it is: "0" for the run's own agent and its subagents' subagents, whose
            conversations outlast the run; else something that no other agent of the run has.
        assembly: The registered name of what works for it.
        status: queued, running, idle, failed or cancelled; the last two for good.
        turns: How many turns it has begun, those of earlier runs included.
        queue: Places of the requests that wait.
        now: Place of the request it works on, or None.
        pid: The participant that works on it, or None.
        last: The participant of the newest good answer in this run, or None.
        size: How many records its conversation has after that.
        said: The newest good answer of an earlier run, cut.
        first: Place of its first request in this run.
        updated: When something happened to it, in the journal's milliseconds.
        persist: Whether its conversation outlasts the run, in a session.
        asked: How many messages were put into the running turn.
        resumed: Whether it goes on with a conversation of an earlier run or turn of its agent.
        broken: Whether a turn failed after the newest good one, and left its conversation unusable.
    """

    id: str
    kind: str
    assembly: str
    scope: str = DURABLE
    status: str = "idle"
    turns: int = 0
    queue: list[int] = field(default_factory=list[int])
    now: int | None = None
    pid: str | None = None
    last: str | None = None
    size: int = 0
    said: str = ""
    first: int | None = None
    updated: int = 0
    persist: bool = True
    asked: int = 0
    broken: bool = False
    resumed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form; the journal tells by it of what is cancelled."""
        return {**asdict(self), "key": self.digest}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Identity:
        """Read the JSON form."""
        return cls(**{name: value for name, value in data.items() if name != "key"})

    @property
    def is_over(self) -> bool:
        """Whether it takes no more messages."""
        return self.status in ("failed", "cancelled")

    @property
    def is_working(self) -> bool:
        """Whether it has something to do."""
        return self.status in ("queued", "running")

    @property
    def takes_room(self) -> bool:
        """Whether it is one of the identities that there may be; one never made is none."""
        return bool(self.kind and self.first is not None and (self.turns or not self.is_over))

    @property
    def digest(self) -> str:
        """What its conversation is kept under; its path is the model's text and may be long."""
        return hashlib.sha256(f"{self.scope}\0{self.id}".encode()).hexdigest()[:32]

    def kept(self, said: str) -> dict[str, Any]:
        """Give what is kept of it between runs, besides the conversation."""
        return {
            "id": self.id,
            "kind": self.kind,
            "assembly": self.assembly,
            "scope": self.scope,
            "turns": self.turns,
            "said": said[:2_000],
            "updated": self.updated,
        }


def path_of(header: Mapping[str, Any]) -> str:
    """Give an agent's own path among subagents."""
    mine = (header.get("gr") or {}).get("subagent") or {}
    return str(mine.get("id") or ROOT_PATH)


def scope_of(header: Mapping[str, Any]) -> str:
    """Say to whom the conversations of a coordinator belong; see `Identity.scope`."""
    return str((header.get("gr") or {}).get("scope") or header.get("up", ""))


def restored(working: Mapping[str, Any], parent_path: str, scope: str) -> dict[str, Identity]:
    """Give the identities of earlier runs or turns that belong to an agent, oldest first.

    Args:
        working: The coordinator's working state, values parsed.
        parent_path: The agent's own path.
        scope: The agent's scope.
    """
    found: list[Identity] = []
    for key, value in working.items():
        if not key.startswith(KEPT) or not isinstance(value, Mapping):
            continue
        path = str(value.get("id", ""))
        if path.rpartition("/")[0] != parent_path or value.get("scope") != scope:
            continue
        found.append(
            Identity(
                id=path,
                kind=str(value.get("kind", "")),
                assembly=str(value.get("assembly", "")),
                scope=scope,
                turns=int(value.get("turns", 0)),
                said=str(value.get("said", "")),
                updated=int(value.get("updated", 0)),
                resumed=True,
            )
        )
    return {item.id: item for item in sorted(found, key=lambda item: item.updated)}


def below(working: Mapping[str, Any], path: str, scope: str) -> dict[str, str]:
    """Give what is kept of an identity and of those below it: keys by path."""
    return {
        str(value["id"]): key.removeprefix(KEPT)
        for key, value in working.items()
        if key.startswith(KEPT) and isinstance(value, Mapping) and value.get("scope") == scope
        and f"{value.get('id', '')}/".startswith(f"{path}/")
    }  # fmt: skip


def orphans(working: Mapping[str, Any], path: str, scope: str) -> dict[str, str]:
    """Give what is kept below identities of an agent of which nothing was kept: keys by path."""
    known, found = below(working, path, scope), dict[str, str]()
    for name in sorted(known):
        above = name.rpartition("/")[0]
        if name != path and above != path and (above not in known or above in found):
            found[name] = known[name]
    return found


def failed(error: str, **more: Any) -> dict[str, Any]:
    """Answer that something failed."""
    return {"status": "failed", "error": error, **more}


def full(limit: str, count: int | None, message: str) -> dict[str, Any]:
    """Answer that a limit is reached."""
    return {"status": "capacity_reached", "limit": {limit: count}, "message": message}


def invalid(message: str) -> dict[str, Any]:
    """Answer that the request makes no sense."""
    return {"status": "invalid_request", "message": message}


def cut(text: str, limit: int) -> tuple[str, bool]:
    """Cut text at a number of characters, and say whether something was cut off."""
    return (text, False) if len(text) <= limit else (text[:limit], True)


def page(items: Sequence[Identity], limit: int, cursor: str | None) -> tuple[list[Identity], str]:
    """Give the newest of some identities behind a cursor, and the cursor behind them.

    Raises:
        ValueError: There is no such cursor.
    """
    order = sorted(items, key=lambda item: (-item.updated, item.id))
    start = 0
    if cursor:
        marks = [item.digest for item in order]
        if cursor not in marks:
            raise ValueError("no such cursor; list from the beginning")
        start = marks.index(cursor) + 1
    shown = order[start : start + limit]
    more = len(order) > start + len(shown)
    return shown, shown[-1].digest if shown and more else ""
