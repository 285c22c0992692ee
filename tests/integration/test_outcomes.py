"""How runs end: one terminal event, safe words for callers, the truth for developers (P5, P8)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from littleghost import Run, Tool, ToolError, tool
from littleghost.errors import (
    AuthenticationError,
    BlockingCallError,
    CancelledError,
    CleanupError,
    DeadlineExceededError,
    InvalidRequestError,
    OutputLimitError,
)
from littleghost.providers.scripted import Reply
from tests.integration.scripted import Gate, calls, kinds, make_agent, results, terminals, until

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]

SECRET = "postgres://admin:hunter2@10.0.0.7/prod"


def last(run: Run) -> dict:
    return dict(list(run.events())[-1].data)


class TestFailed:
    """An error ends the run; the caller gets a safe sentence and, apart from it, the truth."""

    def test_the_error_has_code_message_type_detail_and_traceback(self) -> None:
        error = InvalidRequestError(f"bad field; {SECRET}", status=400)
        run = make_agent([Reply(error=error)]).ask("Go")

        assert (run.outcome, run.response, run.result) == ("failed", "", None)
        assert run.is_failed
        assert run.error is not None
        assert run.error.code == "invalid_request"
        assert run.error.type == "InvalidRequestError"
        assert run.error.detail == f"bad field; {SECRET}"
        assert "Traceback" in run.error.traceback
        assert SECRET not in run.error.message

    def test_the_stream_never_sees_the_detail(self) -> None:
        """P8."""
        run = make_agent([Reply(error=AuthenticationError(SECRET, status=401))]).ask("Go")
        events = list(run.events())

        assert SECRET not in repr([event.to_json() for event in events])
        assert terminals(run) == ["run_error"]
        assert kinds(run)[-2:] == ["invocation_error", "run_error"]
        data = last(run)
        assert set(data) == {"outcome", "error", "message", "cleanup_failed"}
        assert data["outcome"] == "failed"
        assert data["cleanup_failed"] is False
        assert data["error"]["code"] == "auth"
        assert data["message"] == data["error"]["message"]

    def test_an_error_of_no_known_kind_ends_the_run_as_well(self) -> None:
        def script(_request: object) -> str:
            raise ZeroDivisionError(SECRET)

        run = make_agent(script).ask("Go")
        assert run.error is not None
        assert (run.error.code, run.error.type) == ("error", "ZeroDivisionError")
        assert run.error.detail == SECRET
        assert SECRET not in run.error.message

    def test_an_error_that_cannot_say_itself_ends_the_run_as_well(self) -> None:
        class SilentError(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        def script(_request: object) -> str:
            raise SilentError

        run = make_agent(script).enqueue("Go").wait(10)
        assert run.error is not None
        assert run.error.type == "SilentError"

    @pytest.mark.parametrize("attribute", ["system_prompt", "model"])
    def test_a_method_of_the_agent_that_raises_in_the_worker_ends_the_run(
        self, attribute: str
    ) -> None:
        agent = make_agent(["never"])
        asked: list[int] = []
        selection = agent.model

        def choose(self: object) -> str:
            asked.append(1)
            if attribute == "system_prompt" or len(asked) > 1:
                raise LookupError(SECRET)
            return selection

        setattr(agent, attribute, choose)
        run = agent.ask("Go")
        assert run.error is not None
        assert (run.outcome, run.error.type) == ("failed", "LookupError")
        assert terminals(run) == ["run_error"]

    @pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
    def test_an_exception_that_is_no_error_still_ends_the_run(
        self, error: type[BaseException]
    ) -> None:
        """P5: whatever the model's adapter raises, the task lets go of its lease."""

        def script(_request: object) -> str:
            raise error

        run = make_agent(script).enqueue("Go").wait(10)
        assert run.error is not None
        assert (run.outcome, run.error.type) == ("failed", error.__name__)


class TestPartial:
    """A deadline ends the run with what it had said."""

    def test_the_newest_text_is_the_response(self) -> None:
        agent = make_agent([Reply(text="word " * 2000, chunk_chars=5, chunk_delay_s=0.02)])
        run = agent.ask("Go", deadline_at=timedelta(seconds=0.6))

        assert run.is_partial
        assert run.response.startswith("word word")
        assert run.result is None
        assert run.error is not None
        assert run.error.code == "deadline_exceeded"
        assert terminals(run) == ["run_partial"]
        data = last(run)
        assert set(data) == {"outcome", "response", "error"}
        assert data["response"] == run.response

    def test_without_text_in_progress_the_last_whole_message_counts(self) -> None:
        gate = Gate()

        @tool
        def hold() -> str:
            """Wait for the test."""
            gate.enter()
            return "held"

        agent = make_agent([calls("hold", text="I am looking"), "done"], hold)
        run = agent.ask("Go", deadline_at=timedelta(seconds=0.5))
        gate.open()
        assert (run.outcome, run.response) == ("partial", "I am looking")


class TestCancelled:
    """A cancelled run has no response."""

    def test_cancel_ends_the_run_and_is_idempotent(self) -> None:
        agent = make_agent([Reply(text="word " * 2000, chunk_chars=5, chunk_delay_s=0.02)])
        run = agent.enqueue("Go")
        until(lambda: any(event.text for event in run.events()), "text comes")
        assert run.cancel("changed my mind").status in ("stopping", "cancelled")
        run.wait(10)

        assert (run.outcome, run.response) == ("cancelled", "")
        assert run.error is not None
        assert (run.error.code, run.error.detail) == ("cancelled", "changed my mind")
        assert terminals(run) == ["run_cancel"]
        assert last(run) | {"error": 0} == {"outcome": "cancelled", "response": "", "error": 0}
        assert run.cancel("again").outcome == "cancelled"
        assert run.error.detail == "changed my mind"

    def test_a_run_that_has_ended_stays_as_it_is(self) -> None:
        run = make_agent(["done"]).ask("Go")
        assert run.cancel("too late").outcome == "completed"
        assert terminals(run) == ["run_stop"]


@pytest.mark.parametrize(
    ("error", "outcome", "code", "terminal"),
    [
        (CancelledError("stop it"), "cancelled", "cancelled", "run_cancel"),
        (DeadlineExceededError("too slow"), "partial", "deadline_exceeded", "run_partial"),
        (CleanupError("cannot close"), "failed", "cleanup", "run_error"),
    ],
)
def test_a_tools_control_error_ends_the_run(
    error: Exception, outcome: str, code: str, terminal: str
) -> None:
    @tool
    def control() -> str:
        """Raise."""
        raise error

    run = make_agent([calls("control"), "never"], control).ask("Go")
    assert run.error is not None
    assert (run.outcome, run.error.code) == (outcome, code)
    assert terminals(run) == [terminal]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(text="so far", finish="length"), "output_limit"),
        (Reply(text="", finish="length"), "output_limit"),
        (Reply(text="", finish="content_filter"), "protocol"),
    ],
)
def test_an_answer_that_was_cut_fails_the_run(reply: Reply, code: str) -> None:
    run = make_agent([reply]).ask("Go")
    assert run.error is not None
    assert (run.outcome, run.error.code) == ("failed", code)


def test_an_output_limit_has_its_own_sentence() -> None:
    run = make_agent([Reply(text="so far", finish="length")]).ask("Go")
    assert run.error is not None
    assert "narrow the request" in run.error.message
    assert run.error.type == OutputLimitError.__name__


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_answer_completes_the_run(text: str) -> None:
    run = make_agent([Reply(text=text)]).ask("Go")
    assert (run.outcome, run.response.strip()) == ("completed", "")


def test_a_tools_error_is_no_matter_of_the_run() -> None:
    @tool
    def refuse() -> str:
        """Refuse."""
        raise ToolError("closed on Sundays")

    run = make_agent([calls("refuse"), "then Monday"], refuse).ask("Go")
    assert (run.outcome, run.error) == ("completed", None)


def test_a_tool_that_cannot_be_closed_fails_the_run_after_its_work() -> None:
    class Leaky(Tool):
        """Do something."""

        def call(self, input: dict) -> str:
            return "did it"

        def close(self) -> None:
            raise OSError(SECRET)

    run = make_agent([calls("leaky"), "never"], Leaky).ask("Go")
    assert run.error is not None
    assert (run.outcome, run.error.code) == ("failed", "cleanup")
    assert SECRET not in run.error.message
    assert SECRET in run.error.traceback


def test_waiting_inside_a_tool_is_refused_and_enqueueing_works() -> None:
    """P3."""
    helper = make_agent(["helped"])
    caught: list[BaseException] = []
    started: list[str] = []

    @tool
    def delegate() -> str:
        """Start another run."""
        for wait in (
            lambda: helper.ask("Help"),
            lambda: helper.stream_ask("Help"),
            lambda: Run.get(started[0]).wait(),
            lambda: list(Run.get(started[0]).events()),
        ):
            if not started:
                started.append(helper.enqueue("Help").id)
            with pytest.raises(BlockingCallError) as error:
                wait()
            caught.append(error.value)
        return started[0]

    run = make_agent([calls("delegate"), "done"], delegate).ask("Go")
    assert run.response == "done"
    assert results(run) == [("success", started[0])]
    assert len(caught) == 4
    for error in caught:
        assert "enqueue()" in str(error)
        assert "tool" in str(error)
    assert Run.get(started[0]).wait(20).response == "helped"


def test_a_stream_is_told_when_cleaning_up_failed() -> None:
    @tool
    def control() -> str:
        """Raise."""
        raise CleanupError("cannot close")

    run = make_agent([calls("control"), "never"], control).ask("Go")
    assert last(run)["cleanup_failed"] is True
