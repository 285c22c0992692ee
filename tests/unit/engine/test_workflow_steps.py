"""The children of a workflow: widths, attempts, bounds, and stopping them before deciding."""

from __future__ import annotations

from typing import Any

from littleghost import Workflow
from littleghost.engine import commands as c
from littleghost.errors import AssemblyStepTimeoutError, OverloadedError, RateLimitedError
from littleghost.failure import Failure
from tests.support.cast import Clerk
from tests.support.stage import Stage, failed, only, started

SECOND = 1_000


def kinds(commands: list[c.Command]) -> list[str]:
    return [item.type for item in commands if isinstance(item, c.Emit)]


def records(commands: list[c.Command]) -> list[c.Append]:
    return [item for item in commands if isinstance(item, c.Append)]


def patient(self: Workflow) -> Any:
    asked = self.invoke(
        Clerk, timeout_s=10, retries=1, retry_on=AssemblyStepTimeoutError, retry_delay_s=5
    )
    try:
        return asked.output
    except AssemblyStepTimeoutError:
        return "gave up"


def test_a_late_child_is_stopped_before_anything_is_decided() -> None:
    stage = Stage(patient)
    assert only(stage.advance(), c.Wake).delay_s == 10
    stage.now_ms += 10 * SECOND
    found = stage.advance()
    assert only(found, c.CancelParticipants).ids == ("0.0",)
    assert started(found) == []
    assert records(found) == [], "the child may still answer beside this commit"

    found = stage.advance()
    assert started(found) == ["0.1"]
    task = next(t for item in found if isinstance(item, c.Start) for t in item.tasks)
    assert task.delay_s == 5
    assert only(found, c.Wake).delay_s == 15, "its time begins when it may start"
    assert "assembly_step_error" in kinds(found)


def test_a_child_that_answers_while_it_is_being_stopped_counts() -> None:
    stage = Stage(patient)
    stage.advance()
    stage.now_ms += 10 * SECOND
    stage.advance()
    stage.answer("0.0", "just in time")
    assert only(stage.advance(), c.Complete).result["output"] == "just in time"


def test_after_the_last_attempt_the_timeout_is_raised_and_stays() -> None:
    def perform(self: Workflow) -> Any:
        return patient(self) + self.invoke(Clerk).output

    stage = Stage(perform)
    stage.advance()
    for _ in range(2):
        stage.now_ms += 20 * SECOND
        stage.advance()
        found = stage.advance()
    assert started(found) == ["0.2"]
    stage.answer("0.2", "!")
    assert only(stage.advance(), c.Complete).result["output"] == "gave up!"


def test_only_listed_errors_are_tried_again() -> None:
    def perform(self: Workflow) -> Any:
        return self.invoke(Clerk, retries=5, retry_on=RateLimitedError)

    stage = Stage(perform)
    stage.advance()
    stage.refuse("0.0", RateLimitedError("slow down"))
    assert started(stage.advance()) == ["0.1"]
    stage.refuse("0.1", OverloadedError("busy"))
    assert failed(stage.advance()).code == "overloaded"


def bounded(width: int, **options: Any) -> Any:
    def perform(self: Workflow) -> Any:
        asked = [self.invoke(Clerk, input=f"say {n}", timeout_s=60) for n in range(4)]
        return self.parallel(*asked, max_concurrency=width, **options)

    return perform


def test_bounded_children_start_as_the_width_allows() -> None:
    stage = Stage(bounded(2))
    assert started(stage.advance()) == ["0.0", "0.1"]
    stage.answer("0.1", "b")
    found = stage.advance()
    assert started(found) == ["0.2"]
    assert records(found) == []
    stage.answer("0.0", "a")
    assert started(stage.advance()) == ["0.3"]
    stage.answer("0.3", "d")
    assert started(stage.advance()) == []
    stage.answer("0.2", "c")
    assert only(stage.advance(), c.Complete).result["output"] == ["a", "b", "c", "d"]


def test_the_first_failure_stops_the_others_and_is_raised() -> None:
    stage = Stage(bounded(2))
    stage.advance()
    stage.refuse("0.1", OverloadedError("busy"))
    found = stage.advance()
    assert only(found, c.CancelParticipants).ids == ("0.0",)
    assert records(found) == []
    found = stage.advance()
    assert failed(found) == Failure.of(OverloadedError("busy"))
    assert kinds(found).count("assembly_step_error") == 2
    assert stage.state.get("open") is None


def test_settled_children_do_not_stop_each_other() -> None:
    def perform(self: Workflow) -> Any:
        asked = [self.invoke(Clerk, input=f"say {n}") for n in range(3)]
        return [
            one.output if one.error is None else type(one.error).__name__
            for one in self.parallel(*asked, settle=True)
        ]

    stage = Stage(perform)
    join = next(j for i in stage.advance() if isinstance(i, c.Start) for j in i.joins)
    assert not join.fail_fast
    stage.answer("0.0", "a")
    stage.refuse("0.1", OverloadedError("busy"))
    stage.answer("0.2", "c")
    found = stage.advance()
    assert only(found, c.Complete).result["output"] == ["a", "OverloadedError", "c"]
    assert not [item for item in found if isinstance(item, c.CancelParticipants)]


def test_steps_follow_the_newest_one_that_ended() -> None:
    def perform(self: Workflow) -> Any:
        first = self.invoke(Clerk, input="one").output
        self.parallel(self.invoke(Clerk, input=first), self.invoke(Clerk, input="three"))
        return self.invoke(Clerk, input="four")

    def steps(found: list[c.Command]) -> list[list[str]]:
        started = [p for item in found if isinstance(item, c.Start) for p in item.participants]
        return [list((p.step or {})["predecessors"]) for p in started]

    stage = Stage(perform)
    assert steps(stage.advance()) == [[]]
    stage.answer("0.0", "two")
    assert steps(stage.advance()) == [["0.0"], ["0.0"]]
    stage.answer("0.1", "x")
    stage.answer("0.2", "y")
    assert steps(stage.advance()) == [["0.2"]]


def test_what_goes_on_after_a_failure_follows_the_step_that_failed() -> None:
    def perform(self: Workflow) -> Any:
        asked = [self.invoke(Clerk, input=f"say {n}") for n in range(3)]
        try:
            self.parallel(*asked, max_concurrency=2)
        except OverloadedError:
            return self.invoke(Clerk, input="four")

    stage = Stage(perform)
    stage.advance()
    stage.refuse("0.0", OverloadedError("busy"))
    [start] = [item for item in stage.advance() if isinstance(item, c.Start) and item.participants]
    assert (start.participants[0].step or {})["predecessors"] == ["0.0"]


def test_the_state_stays_small_however_long_the_workflow_is() -> None:
    def perform(self: Workflow) -> Any:
        for n in range(50):
            assert self.invoke(Clerk, input=f"say {n}").output == "x" * 1_000
        return "done"

    stage = Stage(perform)
    stage.advance()
    sizes: list[int] = []
    for n in range(49):
        stage.answer(f"0.{n}", "x" * 1_000)
        stage.advance()
        sizes.append(len(repr(stage.state)))
    assert max(sizes) < 200
