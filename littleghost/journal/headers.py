"""Writes and reads the headers of participants; what follows from something else is left out.

A run may have thousands of participants, so what each header takes counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from littleghost.json_values import dumps

# Data of the application, kept as text inside a header: the scripts' JSON keeps neither empty lists
# nor all digits of a number.
_OPAQUE = ("cx", "set", "gr")


def parent_of(participant: str) -> str | None:
    """Give the participant that an id stands below, or None for the root."""
    return participant.rpartition(".")[0] or None


def write_header(participant: str, header: Mapping[str, Any]) -> str:
    """Write a participant's header.

    Args:
        header: Its facts. Of lists and states (`m`, `s`) only those that have a name of their own.
    """
    short = dict(header)
    if short.get("up") == parent_of(participant):
        short.pop("up", None)
    step, path = short.get("step"), short.get("path")
    if step is not None:
        whole = _step(participant)
        short["step"] = {
            name: value for name, value in step.items() if whole.get(name, ...) != value
        }
        if path and path[-1] == (inside := _inside(path[-1], step)):
            short["in"] = [inside["assembly_id"], inside["assembly_kind"]]
            short["path"] = path[:-1]
    if not short.get("path"):
        short.pop("path", None)
    return dumps(short)


def read_header(key: str, participant: str, text: str) -> dict[str, Any]:
    """Read a participant's header, with its list `m`, its working state `s` and its parent `up`.

    Args:
        key: The key of the run's record.
    """
    header: dict[str, Any] = {
        "m": f"{key}:m:{participant}",
        "s": f"{key}:s:{participant}",
        **json.loads(text),
    }
    parent = parent_of(participant)
    if parent is not None:
        header.setdefault("up", parent)
    if "step" in header:
        header["step"] = {**_step(participant), **header["step"]}
    if "in" in header:
        assembly, kind = header.pop("in")
        told = {"assembly_id": assembly, "assembly_kind": kind}
        header["path"] = [*header.get("path", ()), _inside(told, header["step"])]
    return header


def read_participant(participant: str, text: str) -> dict[str, Any]:
    """Read a participant's header for its work, with the application's data in it."""
    header = read_header("", participant, text)
    for name in _OPAQUE:
        if name in header:
            header[name] = json.loads(header[name])
    return header


def opaque(value: Mapping[str, Any] | None) -> str | None:
    """Write data of the application as a header keeps it."""
    return None if value is None else dumps(value)


def _step(participant: str) -> dict[str, Any]:
    """Give what most steps say."""
    return {"id": participant, "attempt": 1, "predecessors": [], "branch": None}


def _inside(told: Any, step: Mapping[str, Any]) -> dict[str, Any]:
    """Give the place of a step in the path of its participant."""
    around = cast("Mapping[str, Any]", told)
    return {
        "assembly_id": around.get("assembly_id"),
        "assembly_kind": around.get("assembly_kind"),
        "participant": step.get("name"),
        "step_id": step.get("id"),
        "branch_id": step.get("branch"),
    }
