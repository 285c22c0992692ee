"""What the models of the load say: a function of the conversation alone, for both kinds of model.

A role is the model's id; what it is told ends with the key of its errand. So a turn that is taken
again, by any worker and with any provider, is the same turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Told by the model itself, so that it does not depend on what the tools said.
INPUT_TOKENS, OUTPUT_TOKENS = 7, 3
SMALL = ("a", "b", "c")
LONG_TEXT = "word " * 400


@dataclass(frozen=True)
class Said:
    """One answer.

    Attributes:
        calls: Names and inputs.
        is_slow: Whether the text comes over seconds.
        is_refused: Whether the service refuses the request for good.
    """

    text: str
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    is_slow: bool = False
    is_refused: bool = False


@dataclass(frozen=True)
class Heard:
    """What a model is asked with.

    Attributes:
        role: The model's id.
        users: The texts of the user messages.
        turn: How many answers followed the last of them.
        place: The directory of the load.
    """

    role: str
    users: Sequence[str]
    turn: int
    place: Path

    @property
    def key(self) -> str:
        return self.users[-1].split()[-1]


def mended(place: Path, key: str) -> Path:
    """Give the file whose existence mends the model of a fragile errand."""
    return place / f"mended-{key}"


def _calls(key: str, *names: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {"key": f"{key}.{index}"}) for index, name in enumerate(names)]


def _crew(heard: Heard) -> Said:
    key = heard.key
    if heard.turn == 0:
        return Said("Begin.", _calls(key, "look", "charge", "tally", "look", "tally", "charge"))
    if heard.turn == 1:
        return Said("Go on.", _calls(f"{key}.x", "seal", "tally", "seal"))
    return Said(f"crew {key}")


def _small(heard: Heard) -> Said:
    if heard.turn == 0:
        return Said("Begin.", _calls(heard.key, "look", "charge"))
    return Said(f"small {heard.key}")


def _boss(heard: Heard) -> Said:
    key = heard.key
    if heard.turn == 0:
        spawns = [
            {"kind": "small", "task_name": name, "task": f"small {key}.{name}", "mode": mode}
            for name, mode in zip(SMALL, ("sync", "async", "async"), strict=True)
        ]
        return Said("Begin.", [("spawn_subagent", spawn) for spawn in spawns])
    if heard.turn == 1:
        return Said("Go on.", [("wait_for_subagents", {})])
    return Said(f"boss {key}")


def _asker(heard: Heard) -> Said:
    key = heard.key
    if heard.turn == 0:
        asks = [("small", {"input": f"small {key}.{name}"}) for name in SMALL]
        return Said("Begin.", [*asks, ("look", {"key": key})])
    return Said(f"asker {key}")


def _payer(heard: Heard) -> Said:
    if heard.turn == 0:
        return Said("Begin.", _calls(heard.key, "pay", "pay"))
    return Said(f"payer {heard.key}")


def _triage(heard: Heard) -> Said:
    message = f"billing {heard.key}"
    return Said("Over.", [("handoff_to_agent", {"agent_id": "fire_billing", "message": message})])


def _fragile(heard: Heard) -> Said:
    if heard.turn == 0:
        return Said("Begin.", _calls(heard.key, "charge", "look", "charge"))
    is_mended = mended(heard.place, heard.key).exists()
    return Said(f"fragile {heard.key}", is_refused=not is_mended)


def _stuck(heard: Heard) -> Said:
    return Said("Wait.", _calls(heard.key, "linger"))


ROLES: dict[str, Callable[[Heard], Said]] = {
    "crew": _crew,
    "small": _small,
    "boss": _boss,
    "asker": _asker,
    "payer": _payer,
    "triage": _triage,
    "fragile": _fragile,
    "stuck": _stuck,
    "billing": lambda heard: Said(f"billed {heard.key}"),
    "say": lambda heard: Said(heard.users[-1]),
    "talk": lambda heard: Said(f"heard {len(heard.users)} {heard.key}"),
    "slow": lambda heard: Said(LONG_TEXT, is_slow=True),
    "broken": lambda heard: Said("", is_refused=True),
}


def say(heard: Heard) -> Said:
    """Give what the model says."""
    return ROLES[heard.role](heard)
