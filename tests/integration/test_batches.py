"""Several tool calls of one answer: at once, in order, counted, each once (P2)."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from littleghost import Limits, tool
from littleghost.providers.scripted import Call, Reply
from tests.integration.scripted import (
    WAIT_S,
    Gate,
    calls,
    kinds,
    make_agent,
    results,
    until,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


def numbered(count: int, name: str = "work") -> Reply:
    return calls(*((name, {"n": n}) for n in range(count)))


@pytest.mark.parametrize("count", [8, 12])
def test_eight_calls_run_at_once_and_never_more(count: int) -> None:
    together = threading.Barrier(8)
    lock = threading.Lock()
    running: list[int] = []
    most: list[int] = []

    @tool
    def work(n: int) -> str:
        """Work."""
        with lock:
            running.append(n)
            most.append(len(running))
        if n < 8:
            together.wait(WAIT_S)
        with lock:
            running.remove(n)
        return str(n)

    run = make_agent([numbered(count), "done"], work).ask("Go")
    assert results(run) == [("success", str(n)) for n in range(count)]
    assert max(most) == 8


def test_results_stand_in_the_models_order_and_events_in_that_of_completion() -> None:
    done = [threading.Event() for _ in range(4)]

    @tool
    def work(n: int) -> str:
        """Wait for the call behind this one."""
        if n < 3:
            assert done[n + 1].wait(WAIT_S)
        return str(n)

    agent = make_agent([numbered(4), "done"], work)
    run = agent.enqueue("Go")
    stopped: list[str] = []
    for event in run.events():
        if event.inner_type == "tool_stop":
            stopped.append(event.inner["data"]["result"]["content"])
            done[int(stopped[-1])].set()
    assert stopped == ["3", "2", "1", "0"]
    assert [text for _, text in results(run.refresh())] == ["0", "1", "2", "3"]
    seen = kinds(run)
    first_stop = seen.index("tool_stop")
    assert seen[first_stop - 4 : first_stop] == ["tool_start"] * 4


def test_the_width_of_a_batch_can_be_set() -> None:
    lock, most, running = threading.Lock(), [0], [0]
    pair = threading.Barrier(2)

    @tool
    def work(n: int) -> str:
        """Work in pairs."""
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        pair.wait(WAIT_S)
        with lock:
            running[0] -= 1
        return str(n)

    limits = Limits(max_parallel_calls=2)
    run = make_agent([numbered(6), "done"], work, limits=limits).ask("Go")
    assert len(results(run)) == 6
    assert most == [2]


class TestExclusive:
    def test_one_exclusive_call_makes_the_whole_batch_run_one_by_one_in_order(self) -> None:
        lock, log, running = threading.Lock(), [], [0]

        def record(name: str) -> str:
            with lock:
                running[0] += 1
                log.append((name, running[0]))
            with lock:
                running[0] -= 1
            return name

        @tool
        def plain(n: int) -> str:
            """Do."""
            return record(f"plain {n}")

        @tool(exclusive=True)
        def sole(n: int) -> str:
            """Do alone."""
            return record(f"sole {n}")

        names = [("plain", 0), ("sole", 1), ("plain", 2), ("sole", 3), ("plain", 4)]
        batch = calls(*((name, {"n": n}) for name, n in names))
        run = make_agent([batch, "done"], plain, sole).ask("Go")
        assert log == [(f"{name} {n}", 1) for name, n in names]
        assert [text for _, text in results(run)] == [f"{name} {n}" for name, n in names]

    def test_exclusive_calls_of_different_runs_do_not_wait_for_each_other(self) -> None:
        both = threading.Barrier(2)

        @tool(exclusive=True)
        def sole() -> str:
            """Meet the other run."""
            both.wait(WAIT_S)
            return "met"

        agent = make_agent([calls("sole"), "done"], sole)
        runs = [agent.enqueue("Go"), agent.enqueue("Go")]
        assert [results(run.wait(20)) for run in runs] == [[("success", "met")]] * 2

    def test_a_failing_exclusive_call_lets_the_next_one_go(self) -> None:
        @tool(exclusive=True)
        def sole(n: int) -> str:
            """Fail at first."""
            if n == 0:
                raise RuntimeError
            return str(n)

        run = make_agent([numbered(3, "sole"), "done"], sole).ask("Go")
        assert results(run) == [
            ("error", "Tool failed (RuntimeError)"),
            ("success", "1"),
            ("success", "2"),
        ]


def test_one_failing_call_does_not_stop_the_others() -> None:
    gate = Gate()

    @tool
    def work(n: int) -> str:
        """Fail once."""
        if n == 1:
            raise RuntimeError
        gate.enter(n)
        return str(n)

    run = make_agent([numbered(3), "done"], work).enqueue("Go")
    until(lambda: "tool_stop" in [event.inner_type for event in _so_far(run)], "one has failed")
    gate.open()
    assert [status for status, _ in results(run.wait(20))] == ["success", "error", "success"]


def _so_far(run: Any) -> list[Any]:
    events = []
    for event in run.events():
        events.append(event)
        if event.inner_type == "tool_stop":
            break
    return events


class TestLimits:
    def test_a_batch_that_passes_the_limit_is_not_run_at_all(self) -> None:
        done: list[int] = []

        @tool
        def work(n: int) -> str:
            """Work."""
            done.append(n)
            return str(n)

        limits = Limits(max_tool_calls=4)
        agent = make_agent([numbered(3), numbered(2), "never"], work, limits=limits)
        run = agent.ask("Go")
        assert run.error is not None
        assert run.error.code == "max_tool_calls"
        assert sorted(done) == [0, 1, 2]
        assert Counter(kinds(run))["tool_start"] == 3
        assert "more tool calls" in run.error.message

    def test_exactly_the_limit_is_allowed(self) -> None:
        @tool
        def work(n: int) -> str:
            """Work."""
            return str(n)

        limits = Limits(max_tool_calls=4, max_turns=3)
        agent = make_agent([numbered(3), numbered(1), "done"], work, limits=limits)
        assert agent.ask("Go").response == "done"

    def test_none_is_no_limit(self) -> None:
        @tool
        def work(n: int) -> str:
            """Work."""
            return str(n)

        limits = Limits(max_tool_calls=None, max_turns=None)
        script = [numbered(1) for _ in range(110)]
        run = make_agent([*script, "done"], work, limits=limits).ask("Go")
        assert run.response == "done"
        assert len(results(run)) == 110

    def test_calls_of_a_cut_answer_are_not_run_and_the_model_may_ask_again(self) -> None:
        done: list[int] = []

        @tool
        def work(n: int) -> str:
            """Work."""
            done.append(n)
            return str(n)

        cut = Reply(tool_calls=[Call("work", {"n": 0})], finish="length")
        run = make_agent([cut, numbered(1), "done"], work).ask("Go")
        assert done == [0]
        (status, text), good = results(run)
        assert status == "error"
        assert "cut" in text
        assert good == ("success", "0")


def test_a_call_with_finish_stop_runs_all_the_same() -> None:
    """Some services say stop where they mean tool_calls."""

    @tool
    def work(n: int) -> str:
        """Work."""
        return str(n)

    reply = Reply(tool_calls=[Call("work", {"n": 1})], finish="stop")
    run = make_agent([reply, "done"], work).ask("Go")
    assert results(run) == [("success", "1")]


def test_a_wide_batch_ends_with_every_result_in_its_place() -> None:
    @tool
    def work(n: int) -> str:
        """Work."""
        return str(n)

    run = make_agent([numbered(200), "done"], work).ask("Go")
    assert [text for _, text in results(run)] == [str(n) for n in range(200)]


def test_limits_end_a_run_with_a_code_of_their_own() -> None:
    @tool
    def again() -> str:
        """Do it again."""
        return "again"

    run = make_agent(lambda _: calls("again"), again, limits=Limits(max_turns=3)).ask("Go")
    assert run.error is not None
    assert (run.outcome, run.error.code) == ("failed", "max_turns")
    assert kinds(run).count("model_stop") == 3
    assert "more steps" in run.error.message
