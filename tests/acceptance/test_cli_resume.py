"""The verbs that go on from a run in another one."""

from __future__ import annotations

import pytest

from littleghost.cli import exits
from tests.acceptance.conftest import SHOP, Place
from tests.acceptance.test_cli_people import facts, said, waiting

pytestmark = pytest.mark.worker


def test_a_cancelled_run_goes_on_where_it_was(fleet: Place) -> None:
    old = waiting(fleet, "PayerAgent", "1")
    said(fleet, "cancel", old, "--yes")
    new = said(fleet, "retry", old, "-q").strip()
    assert said(fleet, "respond", old, "--approve", code=exits.FAILED)
    said(fleet, "respond", new, "--approve")
    assert "paid 1" in said(fleet, "tail", new)
    told = facts(fleet, "show", new)
    assert (told["status"], told["retry_of"], told["response"]) == ("completed", old, "paid 1")
    assert f"retry of    {old}" in said(fleet, "show", new)
    assert facts(fleet, "show", old)["status"] == "cancelled"


def test_a_run_that_ended_well_is_not_retried(fleet: Place) -> None:
    run_id = facts(fleet, "run", f"{SHOP}:EchoAgent", "hi")["id"]
    told = said(fleet, "retry", run_id, code=exits.FAILED)
    assert told.count("\n") == 1
    assert "completed" in told


def test_a_fork_asks_something_else_on_the_same_history(fleet: Place) -> None:
    old = facts(fleet, "run", f"{SHOP}:EchoAgent", "hi")["id"]
    new = said(fleet, "fork", "-A", SHOP, old, "and now?", "--run-id", "my-fork", "-q").strip()
    assert "you said and now?" in said(fleet, "tail", new)
    told = facts(fleet, "show", new)
    assert told["forked_from"] == old
    texts = [message["content"][0]["text"] for message in told["participants"][0]["messages"]]
    assert texts == ["hi", "you said hi", "and now?", "you said and now?"]
    assert "exists already" in said(
        fleet, "fork", "-A", SHOP, old, "x", "--run-id", new, code=exits.USAGE
    )
    again = said(fleet, "fork", "-A", SHOP, old, "--at", "0-t0", "--follow")
    assert "you said hi" in again


@pytest.mark.parametrize("arguments", [("fork", "x"), ("retry",)])
def test_an_unknown_run_is_not_found(fleet: Place, arguments: tuple[str, ...]) -> None:
    verb, *rest = arguments
    assert "no run" in said(fleet, verb, "01-nothing-like-this", *rest, code=exits.NOT_FOUND)


def test_a_point_that_is_none_is_refused(fleet: Place) -> None:
    old = facts(fleet, "run", f"{SHOP}:EchoAgent", "hi")["id"]
    assert "0-t9" in said(fleet, "fork", "-A", SHOP, old, "x", "--at", "0-t9", code=exits.USAGE)
