"""The three ways to call an agent, blocking and not, and the handle on a run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

from littleghost import Run
from littleghost.errors import DuplicateRunError, RunNotFoundError, WaitTimeoutError
from littleghost.providers.scripted import Reply
from littleghost.wiring import Runtime
from tests.faults.fleet import ROOT
from tests.integration.scripted import Gate, calls, make_agent, run_keys, texts

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]

IN_ANOTHER_PROCESS = """
import json, sys
from littleghost import Run
run = Run.get(sys.argv[1]).wait(20)
print(json.dumps({
    "outcome": run.outcome, "response": run.response, "state": dict(run.result.state),
    "actor": run.invocation.actor_id, "context": dict(run.invocation.context),
    "usage": run.usage.to_json(), "messages": [item.to_json() for item in run.result.messages],
    "events": [event.to_json() for event in run.events()],
}))
"""


def test_ask_gives_the_run_after_its_end() -> None:
    agent = make_agent(["Hello there"])
    run = agent.ask("Hi", actor_id="ann", context={"account": 7}, metadata={"from": "web"})

    assert (run.outcome, run.response, run.status) == ("completed", "Hello there", "completed")
    assert run.is_finished
    assert run.is_completed
    assert [run.is_failed, run.is_partial, run.is_cancelled] == [False] * 3
    assert run.error is None
    assert run.usage.output == 2
    assert run.result is not None
    assert run.result.text == run.result.output == "Hello there"
    assert run.result.stop_reason == "stop"
    assert texts(run.result.messages) == [("user", "Hi"), ("assistant", "Hello there")]
    assert run.result.state == {"account": 7}
    assert run.invocation.actor_id == "ann"
    assert run.invocation.metadata == {"from": "web"}
    assert run.duration_s is not None
    assert run.assembly.endswith(agent.__qualname__)
    assert repr(run) == f"<Run {run.id} completed>"


def test_enqueue_returns_before_the_run_ends_and_refresh_shows_its_progress() -> None:
    gate = Gate()

    def hold() -> str:
        """Wait for the test."""
        gate.enter()
        return "held"

    from littleghost import tool

    agent = make_agent([calls("hold"), "done"], tool(hold))
    run = agent.enqueue("Go")
    gate.wait_for(1)

    assert not run.is_finished
    assert run.outcome is None
    assert run.result is None
    assert run.response == ""
    assert run.duration_s is None
    assert run.refresh().status == "running"
    gate.open()
    assert run.wait(20).response == "done"


def test_stream_ask_gives_every_event_and_the_terminal_one_last() -> None:
    agent = make_agent([Reply(text="one two three", chunk_chars=4)])
    stream = agent.stream_ask("Count")
    events = list(stream)

    assert "".join(event.text for event in events) == "one two three"
    assert (
        [event.type for event in events if event.is_terminal] == [events[-1].type] == ["run_stop"]
    )
    assert stream.run.outcome == "completed"
    assert list(stream) == events, "a stream can be read again"


def test_the_async_twins_do_the_same() -> None:
    agent = make_agent(["Hello"])

    async def all_three() -> tuple[Run, Run, list[str], Run | None]:
        asked = await agent.aask("Hi")
        enqueued = await agent.aenqueue("Hi")
        await enqueued.wait_async(20)
        stream = agent.astream_ask("Hi")
        seen = [event.inner_type async for event in stream]
        return asked, enqueued, seen, stream.run

    asked, enqueued, seen, streamed = asyncio.run(all_three())
    assert asked.response == enqueued.response == "Hello"
    assert seen[0] == "run_start"
    assert seen[-1] == "run_stop"
    assert streamed is not None
    assert streamed.response == "Hello"


def test_an_async_stream_that_is_never_read_starts_no_run_and_leaves_no_coroutine() -> None:
    agent = make_agent(["Hello"])
    stream = agent.astream_ask("Hi")
    assert stream.run is None
    del stream
    assert not agent.brain.requests


def test_another_process_finds_the_run_and_sees_the_same(embedded: Runtime) -> None:
    agent = make_agent(["Grüße 🦀"])
    run = agent.ask("Hi", actor_id="ann", context={"account": 7})
    environment = {
        **os.environ,
        "LITTLEGHOST_REDIS_URL": str(embedded.settings.redis_url),
        "LITTLEGHOST_PARTITIONS": "1",
    }
    answer = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, run.id],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    seen = json.loads(answer.stdout)

    assert run.result is not None
    assert seen == {
        "outcome": "completed",
        "response": "Grüße 🦀",
        "state": {"account": 7},
        "actor": "ann",
        "context": {"account": 7},
        "usage": run.usage.to_json(),
        "messages": [message.to_json() for message in run.result.messages],
        "events": [event.to_json() for event in run.events()],
    }


@pytest.mark.parametrize("is_async", [False, True])
def test_a_wait_that_runs_out_leaves_the_run_going(is_async: bool) -> None:
    gate = Gate()

    def script(_request: object) -> str:
        gate.enter()
        return "late answer"

    run = make_agent(script).enqueue("Go")
    with pytest.raises(WaitTimeoutError, match=run.id):
        asyncio.run(run.wait_async(0.1)) if is_async else run.wait(0.1)
    assert run.refresh().status in ("queued", "running")
    gate.open()
    assert run.wait(20).response == "late answer"


@pytest.mark.parametrize(
    "run_id", ["nothing", "00-nothing", "", "a b", "\ud800", "../x", "x" * 500]
)
def test_an_unknown_run_is_not_found_whatever_its_id_looks_like(run_id: str) -> None:
    with pytest.raises(RunNotFoundError):
        Run.get(run_id)


def test_waiting_for_an_unknown_run_says_so() -> None:
    with pytest.raises(RunNotFoundError):
        Run("00-nothing").wait(1)
    with pytest.raises(RunNotFoundError):
        Run("00-nothing").cancel()


@pytest.mark.parametrize("other", [{}, {"session_id": "another"}])
def test_a_run_id_is_taken_once(other: dict[str, str]) -> None:
    agent = make_agent(["one"])
    run = agent.ask("x", run_id=f"taken-once-{len(other)}", **other)
    before = run_keys()
    with pytest.raises(DuplicateRunError) as caught:
        agent.enqueue("y", run_id=run.id, **other)
    assert caught.value.field == "run_id"
    assert run_keys() == before
    assert run.refresh().response == "one"


def test_nothing_about_one_request_stays_on_the_class() -> None:
    """Fifty calls of one class at once each get their own answer."""

    def script(request: object) -> str:
        return "to " + request.messages[-1].text  # type: ignore[attr-defined]

    agent = make_agent(script)
    runs = [agent.enqueue(f"caller {number}") for number in range(50)]
    for number, run in enumerate(runs):
        assert run.wait(20).response == f"to caller {number}"


def test_the_batch_lane_is_carried_by_queues_of_its_own(embedded: Runtime) -> None:
    agent = make_agent(["ok"])
    run = agent.ask("Hi", lane="batch")
    assert run.response == "ok"
    delivered = embedded.client.hgetall("lg:{00}:delivered")
    assert "lg.turns.batch" in delivered
