"""Conversations that go on from run to run: stored, in order, kept apart, always valid."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from littleghost import Run, tool
from littleghost.errors import SessionBusyError
from littleghost.providers.history import answered_turns
from littleghost.providers.scripted import Reply
from littleghost.wiring import Runtime
from tests.integration.scripted import (
    Gate,
    calls,
    is_valid_for_providers,
    kinds,
    last_request,
    make_agent,
    results,
    texts,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


def echo() -> type[Any]:
    return make_agent(lambda request: "re: " + request.messages[-1].text)


def test_a_session_goes_on_where_the_last_run_ended() -> None:
    agent = echo()
    first = agent.ask("one", session_id="s-goes-on")
    second = agent.ask("two", session_id="s-goes-on")

    told = [("user", "one"), ("assistant", "re: one"), ("user", "two")]
    assert texts(last_request(agent))[1:] == told
    assert second.result is not None
    assert texts(second.result.messages) == [*told, ("assistant", "re: two")]
    assert first.result is not None
    assert texts(first.result.messages) == told[:2], "an earlier run shows what it saw"
    assert first.invocation.session_id == second.invocation.session_id == "s-goes-on"


def test_without_a_session_every_run_begins_anew() -> None:
    agent = echo()
    agent.ask("one")
    agent.ask("two")
    assert texts(last_request(agent))[1:] == [("user", "two")]


def test_stored_history_beats_the_callers_and_a_new_session_takes_it() -> None:
    agent = echo()
    history = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]
    agent.ask("one", session_id="s-history", history=history)
    assert [text for _, text in texts(last_request(agent))[1:]] == ["before", "yes", "one"]
    agent.ask("two", session_id="s-history", history=[{"role": "user", "content": "other"}])
    shown = [text for _, text in texts(last_request(agent))[1:]]
    assert shown == ["before", "yes", "one", "re: one", "two"]


def test_actors_never_share_a_session() -> None:
    agent = echo()
    for actor in ("ann", "bob", None, "", "annbob"):
        if actor == "":
            continue
        agent.ask(f"I am {actor}", session_id="s-actors", actor_id=actor)
        assert texts(last_request(agent))[1:] == [("user", f"I am {actor}")]
    agent.ask("again", session_id="s-actors", actor_id="ann")
    assert [text for _, text in texts(last_request(agent))[1:]] == [
        "I am ann",
        "re: I am ann",
        "again",
    ]


def test_state_is_kept_and_the_callers_context_wins() -> None:
    @tool
    def count(tool: Any) -> str:
        """Count."""
        return str(tool.context.state.increment("visits"))

    agent = make_agent([calls("count"), "done"], count)
    first = agent.ask("one", session_id="s-state", context={"plan": "free"})
    second = agent.ask("two", session_id="s-state", context={"plan": "paid", "extra": 1})

    assert results(first) == [("success", "1")]
    assert results(second)[-1] == ("success", "2")
    assert second.result is not None
    assert second.result.state == {"visits": 2, "plan": "paid", "extra": 1}


def test_an_earlier_run_shows_the_state_that_it_left() -> None:
    @tool
    def count(tool: Any) -> str:
        """Count."""
        return str(tool.context.state.increment("visits"))

    agent = make_agent([calls("count"), "done"], count)
    first = agent.ask("one", session_id="s-old-state")
    agent.ask("two", session_id="s-old-state")
    assert Run.get(first.id).result.state == {"visits": 1}  # type: ignore[union-attr]


class TestWaiting:
    """One run at a time; the others wait in the order in which they came, holding no slot (P3)."""

    def test_runs_of_a_session_go_one_after_another_in_order(self, embedded: Runtime) -> None:
        gate = Gate()

        def script(request: Any) -> str:
            text = request.messages[-1].text
            if text == "0":
                gate.enter()
            return f"re: {text}"

        agent = make_agent(script)
        runs = [agent.enqueue(str(number), session_id="s-queue") for number in range(12)]
        gate.wait_for(1)
        assert [run.refresh().record.waits_for_session for run in runs] == [False] + [True] * 11
        assert len(embedded.records.held(embedded.journal.worker_id)) == 1
        other = make_agent(["free"]).ask("Hi", session_id="s-other")
        assert other.response == "free"
        gate.open()
        for run in runs:
            run.wait(20)

        shown = [text for _, text in texts(runs[-1].result.messages)]  # type: ignore[union-attr]
        assert shown == [text for n in range(12) for text in (str(n), f"re: {n}")]

    def test_two_runs_with_tools_never_interleave(self) -> None:
        @tool
        def look(n: int) -> str:
            """Look."""
            return str(n)

        agent = make_agent([calls(("look", {"n": 1}), ("look", {"n": 2})), "done"], look)
        start = threading.Barrier(4)
        runs: list[Run] = []

        def ask() -> None:
            start.wait(10)
            runs.append(agent.ask("Go", session_id="s-tools"))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)

        longest = max((list(run.result.messages) for run in runs), key=len)  # type: ignore[union-attr]
        assert [message.role for message in longest] == [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
        ] * 4
        assert is_valid_for_providers(longest)

    def test_sessions_are_created_at_the_same_moment_without_trouble(self) -> None:
        agent = echo()
        runs = [agent.enqueue("Hi", session_id=f"s-burst-{n}") for n in range(16)]
        assert {run.wait(20).response for run in runs} == {"re: Hi"}

    def test_a_waiting_run_can_be_cancelled_and_the_next_one_goes(self) -> None:
        gate = Gate()

        def script(request: Any) -> str:
            if request.messages[-1].text == "0":
                gate.enter()
            return "ok"

        agent = make_agent(script)
        first, second, third = (agent.enqueue(str(n), session_id="s-cancel") for n in range(3))
        gate.wait_for(1)
        assert second.cancel().outcome == "cancelled"
        gate.open()
        assert first.wait(20).outcome == third.wait(20).outcome == "completed"
        assert [text for _, text in texts(third.result.messages)] == ["0", "ok", "2", "ok"]  # type: ignore[union-attr]
        assert "model_start" not in kinds(second)

    def test_a_waiting_runs_deadline_ends_it(self) -> None:
        gate = Gate()

        def script(request: Any) -> str:
            if request.messages[-1].text == "0":
                gate.enter()
            return "ok"

        agent = make_agent(script)
        first = agent.enqueue("0", session_id="s-deadline")
        gate.wait_for(1)
        second = agent.ask("1", session_id="s-deadline", deadline_at=timedelta(seconds=0.3))
        assert (second.outcome, second.response) == ("partial", "")
        gate.open()
        assert first.wait(20).outcome == "completed"

    def test_too_many_waiting_runs_are_refused(self, embedded: Runtime) -> None:
        gate = Gate()

        def script(_request: Any) -> str:
            gate.enter()
            return "ok"

        agent = make_agent(script)
        few = embedded.settings.with_(session_waiting=2)
        before, embedded.settings = embedded.settings, few
        try:
            runs = [agent.enqueue(str(n), session_id="s-full") for n in range(3)]
            with pytest.raises(SessionBusyError) as caught:
                agent.enqueue("4", session_id="s-full")
        finally:
            embedded.settings = before
        assert caught.value.field == "session_id"
        gate.open()
        assert {run.wait(20).outcome for run in runs} == {"completed"}


def test_what_the_model_thought_is_not_sent_again_in_later_runs() -> None:
    agent = make_agent([Reply(text="yes", reasoning="secret thought")])
    agent.ask("one", session_id="s-reasoning")
    agent.ask("two", session_id="s-reasoning")
    assert "secret thought" not in repr(last_request(agent))
    assert len(answered_turns(last_request(agent))) == 4
