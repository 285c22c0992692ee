"""What tools keep while a run goes on: nothing is lost, a repeated call changes nothing (P2)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from littleghost import ToolError, tool
from littleghost.wiring import Runtime
from tests.integration.scripted import WAIT_S, calls, make_agent, results

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


def counting(count: int, *names: str) -> Any:
    return calls(*((name, {"n": n}) for n in range(count) for name in names))


def test_parallel_tools_lose_nothing() -> None:
    together = threading.Barrier(8)

    @tool
    def note(n: int, tool: Any) -> str:
        """Change the state, all at once."""
        state = tool.context.state
        together.wait(WAIT_S)
        state.increment("count")
        state.increment("sum", n)
        state.append("seen", n)
        state[f"key {n}"] = {"n": n}
        return str(state["count"])

    run = make_agent([counting(8, "note"), "done"], note).ask("Go", context={"count": 100})
    assert run.result is not None
    state = run.result.state
    assert state["count"] == 108
    assert state["sum"] == 28
    assert sorted(state["seen"]) == list(range(8))
    assert [state[f"key {n}"] for n in range(8)] == [{"n": n} for n in range(8)]
    assert [text for _, text in results(run)] == ["101"] * 8, "each saw the state of its start"


def test_a_call_that_is_repeated_changes_the_state_once(embedded: Runtime) -> None:
    """P2: the first attempt's changes are dropped with its late result."""
    attempts: list[int] = []
    second = threading.Event()

    @tool(idempotent=True)
    def add(tool: Any) -> str:
        """Add."""
        attempts.append(len(attempts))
        number = len(attempts)
        tool.context.state.increment("count")
        tool.context.state.append("attempts", number)
        if number == 1:
            journal, task_id = embedded.journal, tool.idempotency_key.rpartition(":")[2]
            assert journal.release(tool.run.id, task_id, journal.worker_id, lost=True)
            assert second.wait(WAIT_S)
        else:
            second.set()
        return "added"

    run = make_agent([calls("add"), "done"], add).ask("Go")
    assert run.result is not None
    assert len(attempts) == 2
    assert run.result.state == {"count": 1, "attempts": [2]}


def test_a_tool_sees_what_earlier_calls_left_and_keeps_its_own_apart() -> None:
    seen: list[Any] = []

    @tool
    def left(tool: Any) -> str:
        """Leave."""
        tool.state.increment("visits")
        tool.context.state["shared"] = "from left"
        seen.append(("left", dict(tool.state), dict(tool.context.state)))
        return ""

    @tool
    def right(tool: Any) -> str:
        """Look."""
        seen.append(("right", dict(tool.state), dict(tool.context.state)))
        return ""

    run = make_agent([calls("left"), calls("left"), calls("right"), "done"], left, right).ask("Go")
    assert seen == [
        ("left", {"visits": 1}, {"shared": "from left"}),
        ("left", {"visits": 2}, {"shared": "from left"}),
        ("right", {}, {"shared": "from left"}),
    ]
    assert run.result is not None
    assert run.result.state == {"shared": "from left"}


def test_a_failed_call_keeps_what_it_did_before() -> None:
    @tool
    def stumble(tool: Any) -> str:
        """Stumble."""
        tool.context.state["began"] = True
        raise ToolError("stumbled")

    run = make_agent([calls("stumble"), "done"], stumble).ask("Go")
    assert run.result is not None
    assert run.result.state == {"began": True}


def test_values_keep_their_types_and_keys_may_be_deleted() -> None:
    value = {"big": 2**70, "pi": 3.5, "none": None, "list": [1, [2]], "text": "ü 🦀", "no": False}

    @tool
    def put(tool: Any) -> str:
        """Put."""
        tool.context.state["value"] = value
        tool.context.state["gone"] = 1
        tool.context.state.increment("big", 2**70)
        return ""

    @tool
    def take(tool: Any) -> str:
        """Take."""
        assert tool.context.state["value"] == value
        del tool.context.state["gone"]
        tool.context.state.increment("big")
        return ""

    run = make_agent([calls("put"), calls("take"), "done"], put, take).ask("Go")
    assert run.result is not None
    assert results(run) == [("success", ""), ("success", "")]
    assert dict(run.result.state)["value"] == value
    assert "gone" not in run.result.state


@pytest.mark.parametrize("bad", [float("nan"), {1: 2}, object(), b"x", "x" * (2 << 20)])
def test_what_is_no_json_is_refused_where_it_is_written(bad: Any) -> None:
    """P12: the tool fails, the state stays as it was, the run goes on."""

    @tool
    def put(tool: Any) -> str:
        """Put."""
        tool.context.state["fine"] = 1
        tool.context.state["bad"] = bad
        return ""

    run = make_agent([calls("put"), "done"], put).ask("Go")
    assert run.result is not None
    assert results(run) == [("error", "Tool failed (ValueError)")]
    assert run.result.state == {"fine": 1}
