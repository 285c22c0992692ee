"""Workflows on the embedded runtime: returns, nesting, failures, repeated attempts, sessions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from littleghost import Workflow
from littleghost.errors import InvalidRequestError, OverloadedError
from littleghost.limits import Limits
from littleghost.providers.scripted import Reply
from littleghost.wiring import Runtime
from tests.integration.scripted import event_data, kinds, make_agent, terminals, texts, until

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]
_numbers = itertools.count()


def flow(perform: Callable[[Any], Any], **attributes: Any) -> type[Any]:
    """Make a workflow class."""
    body = {"perform": perform, "__module__": __name__, **attributes}
    return type(f"Flow{next(_numbers)}Workflow", (Workflow,), body)


def test_a_child_that_is_returned_unread_gives_the_answer_and_streams() -> None:
    research = make_agent(["Tides come twice a day."])
    writer = make_agent(["A poem about tides."])

    def perform(self: Workflow) -> Any:
        found = self.invoke(research, name="research").output
        return self.invoke(writer, input=f"{self.input.text}: {found}", name="writer")

    run = flow(perform).ask("Write")
    assert (run.outcome, run.response) == ("completed", "A poem about tides.")
    assert run.result is not None
    assert (run.result.output, run.result.stop_reason) == ("A poem about tides.", "stop")
    assert texts(writer.brain.requests[0].messages)[1:] == [
        ("user", "Write: Tides come twice a day.")
    ]
    assert kinds(run).count("assembly_step_start") == kinds(run).count("assembly_step_stop") == 2
    assert kinds(run).count("text_delta") >= 2
    assert terminals(run) == ["run_stop"]


@pytest.mark.parametrize(
    ("returned", "output", "text"),
    [("plain", "plain", "plain"), ({"n": [1]}, {"n": [1]}, '{"n":[1]}'), (0, 0, "0"), ("", "", "")],
)
def test_text_and_json_are_answers(returned: Any, output: Any, text: str) -> None:
    run = flow(lambda self: returned).ask("Go")
    assert run.result is not None
    assert (run.result.output, run.response) == (output, text)
    assert run.result.message.text == text


def test_a_consumed_child_may_be_returned() -> None:
    child = make_agent(["once"])

    def perform(self: Workflow) -> Any:
        asked = self.invoke(child)
        assert asked.output == asked.result.text == "once"
        return asked

    assert flow(perform).ask("Go").response == "once"
    assert len(child.brain.requests) == 1


def test_a_workflow_in_a_workflow_passes_values_on() -> None:
    child = make_agent(["leaf"])

    def inner(self: Workflow) -> Any:
        assert dict(self.context) == {"a": 1}, "what was not passed on is not seen"
        return {"said": self.invoke(child).output, "asked": self.input.text}

    nested = flow(inner)

    def outer(self: Workflow) -> Any:
        value = self.invoke(nested, input="deeper", context={"a": self.context["a"]}).output
        return {"inner": value, "seen": sorted(self.context)}

    run = flow(outer).ask("Go", context={"a": 1, "b": 2})
    assert run.result is not None, run.error
    assert run.result.output == {
        "inner": {"said": "leaf", "asked": "deeper"},
        "seen": ["a", "b"],
    }


def test_a_failure_nobody_catches_is_the_run_s() -> None:
    bad = make_agent([Reply(error=InvalidRequestError("wrong"))])
    run = flow(lambda self: self.invoke(bad)).ask("Go")
    assert run.error is not None
    assert (run.outcome, run.error.code, run.error.detail) == (
        "failed", "invalid_request", "wrong",
    )  # fmt: skip
    assert terminals(run) == ["run_error"]


def test_an_error_of_its_own_code_fails_the_run() -> None:
    run = flow(lambda self: 1 / 0).ask("Go")
    assert run.error is not None
    assert (run.error.code, run.error.type) == ("error", "ZeroDivisionError")


def test_the_first_failure_of_several_is_raised_and_the_others_are_told_of() -> None:
    bad = make_agent([Reply(error=InvalidRequestError("wrong"))])
    good = make_agent(["good"])

    def settled(self: Workflow) -> Any:
        one, two = self.parallel(self.invoke(good), self.invoke(bad), settle=True)
        return f"{one.output} {one.error} {two.output} {type(two.error).__name__}"

    assert flow(settled).ask("Go").response == "good None None InvalidRequestError"
    strict = flow(lambda self: self.parallel(self.invoke(bad), self.invoke(bad))).ask("Go")
    assert strict.error is not None
    assert strict.error.code == "invalid_request"


def test_a_failed_attempt_is_followed_by_another() -> None:
    replies = iter([Reply(error=OverloadedError("busy")), Reply(text="at last")])
    moody = make_agent(lambda request: next(replies), limits=Limits(max_model_retries=0))

    def perform(self: Workflow) -> Any:
        return self.invoke(moody, retries=2, retry_on=OverloadedError, retry_delay_s=0.01)

    run = flow(perform).ask("Go")
    assert run.response == "at last", run.error
    assert [data["terminal"] for data in event_data(run, "assembly_step_error")] == [False]
    [retry] = event_data(run, "assembly_step_retry")
    assert {"attempt": 1, "delay": 0.01, "error_type": "OverloadedError"}.items() <= retry.items()


def test_what_is_recorded_stays_when_an_attempt_is_repeated(embedded: Runtime) -> None:
    child = make_agent(["heard"])
    made: list[Any] = []

    def act(run_id: str) -> int:
        made.append(len(made))
        if len(made) == 1:
            journal = embedded.journal
            assert journal.release(run_id, "0-a", journal.worker_id, lost=True)
        return len(made)

    def perform(self: Workflow) -> Any:
        drawn = {
            "step": self.step(act, self.run.id),
            "now": self.now().isoformat(),
            "random": self.random(),
            "uuid": str(self.uuid()),
        }
        assert self.invoke(child).output == "heard"
        self.sleep(0.01)
        again.append(drawn)
        return drawn

    again: list[Any] = []
    run = flow(perform).ask("Go")
    assert run.result is not None, run.error
    assert run.result.output["step"] == 2, "the first attempt was not recorded"
    assert len(made) == 2
    assert again[-1] == run.result.output


def test_a_session_remembers_what_was_asked_and_answered() -> None:
    def perform(self: Workflow) -> Any:
        return f"{len(self.history)} before {self.input.text}"

    asked = flow(perform)
    session = f"session-{next(_numbers)}"
    assert asked.ask("one", session_id=session).response == "0 before one"
    assert asked.ask("two", session_id=session).response == "2 before two"


def test_waiting_for_a_run_inside_is_refused() -> None:
    other = make_agent(["never"])
    run = flow(lambda self: other.ask("Go").response).ask("Go")
    assert run.error is not None
    assert run.error.code == "blocking_call"


def test_a_sleeping_workflow_can_be_cancelled() -> None:
    def perform(self: Workflow) -> Any:
        self.sleep(3600)
        return "never"

    run = flow(perform).enqueue("Go")
    until(lambda: run.refresh().record.tasks.get("0-a", {}).get("s") == "wait", "it sleeps")
    assert run.cancel("enough").wait(10).outcome == "cancelled"


def test_a_deadline_ends_it_whatever_it_waits_for() -> None:
    def perform(self: Workflow) -> Any:
        self.sleep(3600)
        return "never"

    run = flow(perform).ask("Go", deadline=timedelta(seconds=0.3))
    assert run.outcome == "partial"


def test_a_child_that_takes_too_long_is_stopped() -> None:
    def endless(self: Workflow) -> Any:
        self.sleep(3600)
        return "never"

    slow = flow(endless)
    run = flow(lambda self: self.invoke(slow, timeout_s=0.05)).ask("Go")
    assert run.error is not None
    assert run.error.code == "assembly_step_timeout"
    assert run.duration_s is not None
    assert run.duration_s < 10
