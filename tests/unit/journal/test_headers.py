"""Headers of participants: short when written, whole when read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from littleghost.journal.headers import (
    opaque,
    parent_of,
    read_header,
    read_participant,
    write_header,
)

KEY = "lg:{00}:r:1"
names = st.text(max_size=4)
ids = st.lists(st.integers(0, 99), max_size=3).map(lambda tail: ".".join(map(str, [0, *tail])))
steps = st.fixed_dictionaries(
    {
        "name": names,
        "id": ids,
        "attempt": st.integers(1, 3),
        "predecessors": st.lists(ids, max_size=2),
        "branch": st.none() | names,
    }
)
places = st.fixed_dictionaries(
    {
        "assembly_id": names,
        "assembly_kind": names,
        "participant": names,
        "step_id": ids,
        "branch_id": st.none() | names,
    }
)


def place_of(step: dict[str, Any], around: str = "flow") -> dict[str, Any]:
    return {
        "assembly_id": around,
        "assembly_kind": "workflow",
        "participant": step["name"],
        "step_id": step["id"],
        "branch_id": step["branch"],
    }


@given(ids, st.none() | steps, st.lists(places, max_size=2), st.booleans(), st.none() | ids)
def test_what_is_written_is_read(
    pid: str, step: Any, path: list[Any], is_inside: bool, parent: str | None
) -> None:
    header: dict[str, Any] = {"a": "m:A", "k": "agent", "n": "a"}
    if parent is not None:
        header["up"] = parent
    if step is not None:
        header["step"] = step
        path = [*path, place_of(step)] if is_inside else path
    if path:
        header["path"] = path
    read = read_header(KEY, pid, write_header(pid, header))
    up = parent or parent_of(pid)
    assert read == {
        **header, "m": f"{KEY}:m:{pid}", "s": f"{KEY}:s:{pid}", **({"up": up} if up else {})
    }  # fmt: skip


def test_what_follows_from_something_else_takes_no_room() -> None:
    step = {"name": "leaf", "id": "0.7", "attempt": 1, "predecessors": [], "branch": None}
    header = {"a": "m:A", "k": "agent", "n": "leaf", "up": "0", "step": step}
    text = write_header("0.7", {**header, "path": [place_of(step)]})
    assert json.loads(text) == {
        "a": "m:A", "k": "agent", "n": "leaf", "step": {"name": "leaf"}, "in": ["flow", "workflow"]
    }  # fmt: skip


def test_lists_of_another_name_stay() -> None:
    text = write_header("0", {"a": "m:A", "k": "agent", "n": "a", "m": "s:1:m", "s": "s:1:s"})
    read = read_header(KEY, "0", text)
    assert (read["m"], read["s"]) == ("s:1:m", "s:1:s")
    assert "up" not in read


@pytest.mark.parametrize("value", [{}, {"list": [], "number": 0.1, "text": '"\\'}])
def test_data_of_the_application_stays_as_it_is(value: dict[str, Any]) -> None:
    text = write_header("0.1", {"a": "m:A", "k": "agent", "n": "a", "cx": opaque(value)})
    assert read_participant("0.1", text)["cx"] == value
