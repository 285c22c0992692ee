"""Failing model requests: tried again as timers, never past the deadline (P3, P6)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Any

import pytest

from littleghost import Limits, Run, models, tool
from littleghost.errors import (
    InvalidRequestError,
    OverloadedError,
    RateLimitedError,
    StreamError,
)
from littleghost.providers.scripted import Reply
from littleghost.wiring import Runtime
from tests.integration.scripted import kinds, make_agent, results, terminals, until
from tests.unit.providers.wire_server import (
    DONE,
    Exchange,
    WireServer,
    case_chunks,
    event,
    load_case,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]

SOON_S = 0.02


def failing(*errors: Exception, text: str = "answer at last", after_chars: int = 0) -> Any:
    """Make an agent whose first requests fail."""
    left = list(errors)

    def script(_request: object) -> Reply:
        if left:
            return Reply(text="false start", error=left.pop(0), error_after_chars=after_chars)
        return Reply(text=text)

    return make_agent(script)


def retries(run: Run) -> list[dict[str, Any]]:
    return [
        dict(event.inner["data"]) for event in run.events() if event.inner_type == "model_retry"
    ]


def test_a_passing_failure_is_tried_again_after_the_wait_the_service_asked_for() -> None:
    error = RateLimitedError("slow down", status=429, retry_after_s=SOON_S)
    run = failing(error, error).ask("Go")

    assert run.response == "answer at last"
    first, second = retries(run)
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert first["error_class"] == "RateLimitedError"
    assert first["http_status"] == 429
    assert SOON_S <= first["delay"] <= SOON_S * 1.3
    assert "slow down" not in repr(first)
    assert kinds(run).count("model_start") == 3
    assert kinds(run).count("model_stop") == 1


def test_without_a_hint_the_wait_doubles_and_the_run_waits_as_a_timer(embedded: Runtime) -> None:
    """P3: the task holds nothing while it waits, and a cancel ends it there."""
    run = failing(*[OverloadedError("busy", status=503)] * 9).enqueue("Go")
    until(lambda: retries_so_far(run) >= 2, "the second wait has begun")
    delays = [data["delay"] for data in live_retries(run)]
    assert 1 <= delays[0] <= 1.25
    assert 2 <= delays[1] <= 2.5
    record = run.refresh().record
    [task] = record.tasks.values()
    assert (task["s"], task["f"]) == ("wait", 2)
    assert embedded.records.held(embedded.journal.worker_id) == []

    run.cancel()
    assert run.wait(5).outcome == "cancelled"
    assert terminals(run) == ["run_cancel"]


def live_retries(run: Run) -> list[dict[str, Any]]:
    """Give the retries so far of a run that goes on."""
    from littleghost.wiring import runtime

    tail = runtime().tail(run.id)
    page = tail.read(0, 1)
    return [stored["d"] for _, stored in page if stored["type"] == "model_retry"]


def retries_so_far(run: Run) -> int:
    return len(live_retries(run))


def test_a_retry_withdraws_the_text_of_the_attempt_before_it() -> None:
    error = StreamError("broke off", retry_after_s=SOON_S)
    run = failing(error, text="true text", after_chars=11).ask("Go")

    events = list(run.events())
    seen = [event.inner_type for event in events]
    retry = seen.index("model_retry")
    assert "".join(event.text for event in events[:retry]) == "false start"
    assert "".join(event.text for event in events[retry:]) == "true text"
    assert retries(run)[0]["partial_text"] == "false start"
    assert run.response == "true text"


def test_withdrawn_text_is_no_part_of_a_partial_response() -> None:
    error = StreamError("broke off", retry_after_s=0.1)
    left = [error] * 2

    def script(_request: object) -> Reply:
        if left:
            return Reply(text="false start", error=left.pop(), error_after_chars=11)
        return Reply(text="word " * 500, chunk_chars=5, chunk_delay_s=0.02)

    run = make_agent(script).ask("Go", deadline_at=timedelta(seconds=0.9))
    assert run.outcome == "partial"
    assert run.response.startswith("word")
    assert "false" not in run.response


def test_a_lasting_failure_ends_the_run_after_the_allowed_retries() -> None:
    def script(_request: object) -> Reply:
        return Reply(error=OverloadedError("busy", status=529, retry_after_s=SOON_S))

    agent = make_agent(script, limits=Limits(max_model_retries=2))
    run = agent.ask("Go")
    assert run.error is not None
    assert (run.outcome, run.error.code) == ("failed", "overloaded")
    assert len(agent.brain.requests) == 3
    assert len(retries(run)) == 2


def test_what_cannot_succeed_is_not_tried_again() -> None:
    agent = failing(InvalidRequestError("no", status=400))
    run = agent.ask("Go")
    assert run.error is not None
    assert run.error.code == "invalid_request"
    assert len(agent.brain.requests) == 1


def test_every_turn_has_retries_of_its_own() -> None:
    @tool
    def step() -> str:
        """Step."""
        return "stepped"

    failed: set[int] = set()

    def script(request: Any) -> Reply:
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn not in failed:
            failed.add(turn)
            return Reply(error=OverloadedError("busy", retry_after_s=SOON_S))
        from tests.integration.scripted import calls

        return calls("step") if turn < 3 else Reply(text="done")

    run = make_agent(script, step, limits=Limits(max_model_retries=1)).ask("Go")
    assert run.response == "done"
    assert len(retries(run)) == 4
    assert results(run) == [("success", "stepped")] * 3


class TestDeadline:
    """The deadline does not depend on what a service does."""

    DEADLINE_S = 1.0

    @pytest.fixture
    def serve(self) -> Iterator[Any]:
        with ExitStack() as stack:

            def start(answer: Any, **options: Any) -> type[Any]:
                server = stack.enter_context(WireServer(answer))
                name = f"wire-{server.port}"
                models().connect(
                    name, "openai_compatible", base_url=server.url, api_key="k", **options
                )
                return make_agent([], model=f"{name}:m", server=server)

            yield start
            models().close()

    def check(self, agent: Any, code: str = "deadline_exceeded") -> Run:
        started = time.monotonic()
        run = agent.ask("Go", deadline_at=timedelta(seconds=self.DEADLINE_S))
        took = time.monotonic() - started
        assert run.error is not None
        assert run.error.code == code
        assert took < self.DEADLINE_S + 1
        return run

    def test_a_silent_service_is_left_at_the_deadline(self, serve: Any) -> None:
        """Three attempts of 0.4 s each and the waits between them would take longer."""
        agent = serve(lambda exchange: exchange.wait_for_hang_up(), read_timeout_s=0.4)
        run = self.check_ends(agent)
        assert run.outcome in ("partial", "failed")

    def check_ends(self, agent: Any) -> Run:
        started = time.monotonic()
        run = agent.ask("Go", deadline_at=timedelta(seconds=self.DEADLINE_S))
        assert time.monotonic() - started < self.DEADLINE_S + 1
        assert run.error is not None
        assert run.error.code in ("deadline_exceeded", "timeout")
        return run

    def test_a_service_that_only_sends_comments_is_left_at_the_deadline(self, serve: Any) -> None:
        def drip(exchange: Exchange) -> None:
            exchange.head()
            with suppress(OSError):
                while True:
                    exchange.chunk(b": ping\n\n")
                    time.sleep(0.05)

        run = self.check(serve(drip))
        assert run.outcome == "partial"

    def test_a_long_retry_after_is_not_waited_for(self, serve: Any) -> None:
        def refuse(exchange: Exchange) -> None:
            exchange.whole(429, b'{"error": {"message": "slow"}}', {"retry-after": "60"})

        started = time.monotonic()
        run = serve(refuse).ask("Go", deadline_at=timedelta(seconds=10))
        assert time.monotonic() - started < 3
        assert run.error is not None
        assert run.error.code == "rate_limited"

    def test_a_healthy_stream_is_cut_by_no_other_limit(self, serve: Any) -> None:
        def stream(exchange: Exchange) -> None:
            exchange.head()
            for _ in range(12):
                exchange.chunk(event({"content": "word "}))
                time.sleep(0.1)
            exchange.chunk(event(finish="stop") + DONE)
            exchange.end()

        run = serve(stream, read_timeout_s=0.6).ask("Go", deadline_at=timedelta(seconds=30))
        assert (run.outcome, run.response) == ("completed", "word " * 12)


def test_a_name_that_no_service_would_take_back_is_sent_in_a_form_that_it_takes() -> None:
    """The whole way: wire, journal, wire."""
    case = load_case("tool-unknown-and-illegal-name")

    @tool
    def ping() -> str:
        """Ping."""
        return "pong"

    def answer(exchange: Exchange) -> None:
        exchange.head()
        if len(exchange.json["messages"]) > 2:
            exchange.chunk(event({"content": "done"}) + event(finish="stop") + DONE)
        else:
            for chunk in case_chunks(case):
                exchange.chunk(chunk)
        exchange.end()

    with WireServer(answer) as server:
        models().connect("illegal", "openai_compatible", base_url=server.url, api_key="k")
        run = make_agent([], ping, model="illegal:m").ask("Go")
        models().close()

    assert run.response == "done", run.error
    (status, text), good = results(run)
    assert status == "error"
    assert "ping" in text
    assert good == ("success", "pong")
    second = server.exchanges[1].json["messages"]
    [asked] = [message for message in second if message["role"] == "assistant"]
    answers = {m["tool_call_id"]: m["content"] for m in second if m["role"] == "tool"}
    import re

    for call in asked["tool_calls"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"])
        assert call["id"] in answers
