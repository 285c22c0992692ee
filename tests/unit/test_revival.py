"""The run that goes on from another one, computed from what that one has left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from littleghost.journal.remains import Remains
from littleghost.journal.revival import Revival, revive

OLD, NEW = "lg:{00}:r:old", "lg:{00}:r:new"


def participant(pid: str, kind: str = "agent", **more: Any) -> tuple[str, str]:
    header = {"a": "m:A", "k": kind, "n": "a", "m": f"{OLD}:m:{pid}", "s": f"{OLD}:s:{pid}"}
    up = {"up": pid.rpartition(".")[0]} if "." in pid else {}
    return f"p:{pid}", json.dumps({**header, **up, **more})


def task(tid: str, kind: str = "turn", status: str = "ready", **more: Any) -> tuple[str, str]:
    header = {"k": kind, "p": tid.partition("-")[0], "q": "q", "s": status, "a": 3, "at": 1, "n": 0}
    return f"ot:{tid}", json.dumps({**header, **more})


def join(jid: str, then: str, *members: str, queue: Any = (), **more: Any) -> tuple[str, str]:
    header = {"t": then, "p": jid.partition("-")[0], **more}
    grave = {"h": header, "o": list(members), "q": list(queue) or {}}
    return f"oj:{jid}", json.dumps(grave)


def one(jid: str, then: str, **more: Any) -> tuple[str, str]:
    parent = jid.rpartition(".")[0]
    return f"oj:{jid}", json.dumps({"h": {"t": then, "p": parent, "one": jid, **more}})


def revived(*fields: tuple[str, str], results: Any = (), tails: Any = ()) -> Revival:
    found = revive(
        Remains(key=OLD, fields=dict(fields), results=dict(results), tails=dict(tails)),
        run_id="old",
        new_key=NEW,
        now_ms=99,
    )
    assert found is not None
    return found


def tasks_of(found: Revival) -> dict[str, bool]:
    return {item["id"]: item["ready"] for item in found.tasks}


def test_nothing_goes_on_without_a_task_of_the_root() -> None:
    fields = dict([participant("0"), participant("0.0"), task("0.0-t0"), ("x:0", "{}")])
    old = Remains(key=OLD, fields=fields, results={}, tails={})
    assert revive(old, run_id="old", new_key=NEW, now_ms=99) is None


@pytest.mark.parametrize(
    ("buried", "ready", "kept"),
    [
        (task("0-t2", status="ready"), True, {}),
        (task("0-t2", status="leased", w="w", c="1", z="z", l=2, f=1), True, {}),
        (task("0-t2", status="wait", tm=True, f=2), True, {}),
        (task("0-t2", status="wait"), False, {}),
        (task("0-c1.0", "call"), True, {"o": "old"}),
        (task("0-c1.0", "call", "leased"), True, {"o": "old", "l": 1}),
        (task("0-c1.0", "call", "ready", l=2), True, {"o": "old", "l": 1}),
        (task("0-c1.0", "call", "leased", i=True, l=2), True, {"o": "old", "i": True}),
        (task("0-c1.0", "call", "wait", tm=True, i=True), True, {"o": "old", "i": True}),
        (task("0-c1.0", "call", "leased", o="older", i=True), True, {"o": "older", "i": True}),
        (task("0-a", "advance", "wait", y=True, sg="s", su=1), True, {}),
        (task("0-a", "advance", "leased"), True, {}),
    ],
)
def test_how_tasks_come_back(buried: tuple[str, str], ready: bool, kept: dict[str, Any]) -> None:
    found = revived(participant("0"), ("x:0", "{}"), buried, task("0-x9", "advance"))
    told = next(item for item in found.tasks if item["id"] == buried[0][3:])
    header = told["h"]
    plain = {name: value for name, value in header.items() if name not in ("k", "p", "q", "s")}
    assert (told["ready"], plain) == (ready, kept)


def test_a_call_that_nobody_has_allowed_yet_still_waits_for_that() -> None:
    asked = task("0-c1.0", "call", "wait", tm=True, ap=77, aw=50, fr=True)
    answered = task("0-c1.1", "call", "ready", ap=777, an="{}")
    found = revived(participant("0"), ("x:0", "{}"), asked, answered)
    ready = [(item["ready"], item.get("due")) for item in found.tasks]
    assert ready == [(False, 149), (True, None)]
    assert found.tasks[0]["h"]["ap"] == 149


def test_a_coordinator_of_subagents_goes_on_with_its_agent() -> None:
    found = revived(
        participant("0"), participant("0.9999", "subagents"), participant("0.9999.0"),
        participant("0.9999.1", m=f"{OLD}:m:0.9999.0"), ("x:0", "{}"),
        ("z:0.9999.0", "1,2,completed"), ("f:0.9999.1", "5,{}"), one("0.9999.1", "0.9999-a"),
        ("x:0.9999", '{"ids": {"/boss/a": {"pid": "0.9999.1"}}}'),
        task("0.9999-a", "advance", "wait"), task("0.9999.1-t0"),
        task("0-c0.0", "call", "wait", pk="", i=True), task("0-t1", status="wait"),
    )  # fmt: skip
    assert tasks_of(found) == {
        "0-c0.0": False, "0-t1": False, "0.9999-a": True, "0.9999.1-t0": True,
    }  # fmt: skip
    assert found.cuts == {":m:0.9999.0": 5}, "a subagent goes on with its earlier conversation"


@pytest.mark.parametrize(("end", "ready"), [("1,2,completed", True), ("1,2,failed", False)])
def test_a_call_that_is_anothers_work_waits_for_whoever_goes_on(end: str, ready: bool) -> None:
    found = revived(
        participant("0"), participant("0.7"), ("x:0", "{}"), ("x:0.7", '{"turn": 1}'),
        ("z:0.7", end), one("0.7", "0-c0.7", keep=True),
        task("0-c0.7", "call", "leased", pk="0.7", i=True), task("0.7-t1"),
        results=[("0.7", '{"r": {}}' if ready else '{"x": {}}')],
    )  # fmt: skip
    assert tasks_of(found)["0-c0.7"] is ready
    assert ("0.7-t1" in tasks_of(found)) is not ready
    assert [item["id"] for item in found.joins] == ([] if ready else ["0.7"])
    assert found.gone == ([] if ready else ["0.7"])
    assert ("z:0.7" in found.drop) is not ready


def test_a_batch_goes_on_with_the_calls_that_have_no_result() -> None:
    calls = [f"0-c0.{n}" for n in range(5)]
    found = revived(
        participant("0"), ("x:0", '{"turn": 1}'), ("f:0", '3,{"turn": 1}'),
        join("0-b0", "0-t1", *calls, queue=calls[3:], w=2),
        *(task(name, "call", status, j="0-b0", i=True) for name, status in
          zip(calls[2:], ("leased", "wait", "wait"), strict=True)),
        task("0-t1", status="wait"),
        results=[(calls[0], "#3"), (calls[1], "#4")],
    )  # fmt: skip
    [batch] = found.joins
    assert (batch["left"], batch["order"], batch["q"]) == (calls[2:], calls, calls[4:])
    # One of the places had become free when the run was stopped.
    assert tasks_of(found) == {calls[2]: True, calls[3]: True, calls[4]: False, "0-t1": False}
    assert found.cuts == {":m:0": 3}
    assert found.back == [[calls[0], ":m:0", 3], [calls[1], ":m:0", 4]]


def test_a_batch_that_was_done_starts_its_turn() -> None:
    found = revived(
        participant("0"), ("x:0", "{}"), ("f:0", "3,{}"), join("0-b0", "0-t1", "0-c0.0", "0-c0.1"),
        task("0-t1", status="wait"), results=[("0-c0.0", "#3"), ("0-c0.1", "#4")],
    )  # fmt: skip
    assert [item["left"] for item in found.joins] == [[]]


def test_exclusive_calls_keep_their_order() -> None:
    found = revived(
        participant("0"), ("x:0", "{}"),
        task("0-c0.0", "call", "wait", x=True), task("0-c0.10", "call", "wait", x=True),
        task("0-c0.2", "call", "leased", x=True, hx=True, i=True), task("0-t1", status="wait"),
    )  # fmt: skip
    assert list(tasks_of(found)) == ["0-c0.2", "0-c0.0", "0-c0.10", "0-t1"]
    assert found.holder is None


def test_an_exclusive_call_that_is_anothers_work_holds_up_the_others() -> None:
    found = revived(
        participant("0"), participant("0.0"), ("x:0", "{}"), task("0.0-t0"),
        task("0-c0.0", "call", "wait", x=True, hx=True, pk="0.0", i=True),
    )  # fmt: skip
    assert found.holder == "0-c0.0"


def test_a_failed_child_is_as_it_was_before_it_failed() -> None:
    state = {"n": 3, "open": {"i": 0, "cut": ["0.2"], "steps": [
        {"pids": [f"0.{n}"], "at": [1]} for n in (0, 1, 2)]}}  # fmt: skip
    found = revived(
        participant("0", "workflow"), *(participant(f"0.{n}", j="0-j0") for n in range(3)),
        ("x:0", "{}"), ("f:0", "4," + json.dumps(state)), task("0-a", "advance", "leased"),
        ("z:0.0", "1,2,completed"), ("z:0.1", "1,2,failed"), ("z:0.2", "1,2,cancelled"),
        ("f:0.1", '1,{"turn": 0}'), task("0.1-t0", status="leased"),
        ("x:0.2", '{"turn": 2}'), task("0.2-t2", status="wait", tm=True),
        join("0-j0", "0-a", "0.0", "0.1", "0.2", f=True, w=8),
        ("u:0:input", "7"), ("ev", "9"), ("status", "failed"), ("error", "{}"),
        results=[("0.0", "#2"), ("0.1", "#3")],
        tails={"0": [{"m": 0, "end": [{"p": "0.0"}, {"p": "0.1"}]}]},
    )  # fmt: skip
    assert tasks_of(found) == {"0-a": True, "0.1-t0": True, "0.2-t2": True}
    assert found.joins[0]["left"] == ["0.1", "0.2"]
    assert found.voids == [[":m:0", 3, "0.1"]]
    assert (found.gone, found.back) == (["0.1"], [])
    assert found.cuts == {":m:0": 4, ":m:0.1": 1}
    again = json.loads(found.fields["x:0"])["open"]
    assert (again["cut"], [one["at"] for one in again["steps"]]) == ([], [[1], [99], [99]])
    assert json.loads(found.fields["x:0.1"]) == {"turn": 0}
    assert {"z:0.1", "z:0.2", "u:0:input", "ev", "error", "f:0", "ot:0-a"} <= set(found.drop)
    assert not {"z:0.0", "p:0.0", "status"} & set(found.drop)
    assert "m" not in json.loads(found.fields["p:0.0"]), "it follows from the id"


def test_a_failure_that_was_dealt_with_stays() -> None:
    state = {"active": "b", "pids": ["0.0", "0.1"], "at": [1, 2]}
    found = revived(
        participant("0", "swarm"), participant("0.0"), participant("0.1"), participant("0.2"),
        ("x:0", json.dumps(state)), task("0-a", "advance", "wait"),
        ("z:0.0", "1,2,failed"), ("f:0.0", "1,{}"), task("0.0-t0", status="leased"),
        one("0.0", "0-a"), one("0.1", "0-a"), ("x:0.1", "{}"), task("0.1-t0"),
        results=[("0.0", "#1")],
    )  # fmt: skip
    assert tasks_of(found) == {"0-a": True, "0.1-t0": True}
    assert [item["id"] for item in found.joins] == ["0.1"]
    assert (found.voids, found.gone) == ([], [])
    assert "z:0.0" not in found.drop
    assert "p:0.2" in found.drop, "it began with the decision that is taken back"


def test_what_belongs_to_a_session_is_left_where_it_is() -> None:
    session = {"m": "lg:{00}:s:1:m", "s": "lg:{00}:s:1:s"}
    found = revived(
        participant("0", **session), ("x:0", '{"turn": 2}'), ("f:0", '3,{"turn": 1}'),
        join("0-b0", "0-t1", "0-c0.0", "0-c0.1"), task("0-t1", status="wait"),
        task("0-c0.1", "call", i=True), results=[("0-c0.0", "#3")],
    )  # fmt: skip
    assert (found.keys, found.cuts, found.back) == ([], {}, [])
    assert json.loads(found.fields["p:0"])["m"] == session["m"]
    assert json.loads(found.fields["x:0"]) == {"turn": 1}
