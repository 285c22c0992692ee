"""Replaying a workflow's code: what is recorded answers, and nothing else fits."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from littleghost import Workflow, registry
from littleghost.engine import commands as c
from littleghost.errors import (
    AssemblyError,
    DefinitionError,
    InvocationError,
    RateLimitedError,
    ReplayError,
)
from littleghost.failure import Failure
from littleghost.messages import assistant, user
from littleghost.workflow import StepFailedError
from tests.support.cast import Clerk
from tests.support.stage import Stage, failed, only, started


def test_recorded_values_stay_what_they_were_and_cannot_be_changed() -> None:
    seen: list[Any] = []

    def perform(self: Workflow) -> Any:
        drawn = [self.random(), self.uuid(), self.now(), self.step(lambda: {"list": []})]
        seen.append(deepcopy(drawn))
        drawn[3]["list"].append("changed")
        return self.invoke(Clerk).output and "done"

    stage = Stage(perform)
    stage.advance()
    stage.now_ms += 5_000
    stage.answer("0.0", "hello")
    stage.advance()
    assert seen[0][:3] == seen[1][:3]
    assert seen[1][3] == {"list": []}, "a value that the code changed is recorded as it was"


def test_children_start_when_they_are_read_and_unread_ones_never() -> None:
    def perform(self: Workflow) -> Any:
        self.invoke(Clerk, input="never")
        first = self.invoke(Clerk, input="one", name="first")
        second = self.invoke(Clerk, input="two")
        return second.output + first.output + second.output

    stage = Stage(perform)
    assert started(stage.advance()) == ["0.0"]
    assert started(stage.advance()) == [], "woken for nothing, it starts nothing again"
    stage.answer("0.0", "b")
    assert started(stage.advance()) == ["0.1"]
    stage.answer("0.1", "a")
    result = only(stage.advance(), c.Complete).result
    assert result["output"] == "bab"
    assert stage.records[result["message"]] == assistant("bab")


def test_a_mismatch_names_both_sides_and_cannot_be_caught() -> None:
    stage = Stage(lambda self: self.invoke(Clerk, input="one", name="first"))
    stage.advance()
    stage.answer("0.0", "hello")

    def other(self: Workflow) -> Any:
        try:
            self.step(len, "text", name="measure")
        except ReplayError:
            return "all is well"

    stage.become(other)
    failure = failed(stage.advance())
    assert failure.code == "replay"
    name = registry.name_of(Clerk)
    assert f"operation 0 is recorded as invoke of first ({name}, input " in failure.detail
    assert "perform now asks for step measure" in failure.detail


def test_code_after_what_is_recorded_may_change_but_not_less_be_done() -> None:
    stage = Stage(lambda self: self.step(str.upper, "a") + self.invoke(Clerk).output)
    stage.advance()
    stage.answer("0.0", "b")
    kept = list(stage.records), dict(stage.state)

    stage.become(lambda self: self.step(str.upper, "a") + self.invoke(Clerk).output + "!")
    assert only(stage.advance(), c.Complete).result["output"] == "Ab!"

    stage.records, stage.state = kept
    stage.become(lambda self: self.step(str.upper, "a"))
    failure = failed(stage.advance())
    assert failure.code == "replay"
    assert "perform now returns" in failure.detail


def test_an_input_that_varies_is_a_mismatch() -> None:
    words = iter(["one", "two"])
    stage = Stage(lambda self: self.invoke(Clerk, input=next(words)))
    stage.advance()
    stage.answer("0.0", "hello")
    assert failed(stage.advance()).code == "replay"


def test_swallowing_what_unwinds_the_code_changes_nothing() -> None:
    def perform(self: Workflow) -> Any:
        try:
            return self.invoke(Clerk).output
        except BaseException:
            return self.step(str.upper, "swallowed")

    stage = Stage(perform)
    assert started(stage.advance()) == ["0.0"]
    stage.answer("0.0", "hello")
    assert only(stage.advance(), c.Complete).result["output"] == "hello"


def test_a_failed_step_fails_the_same_way_again() -> None:
    calls: list[int] = []

    def act() -> None:
        calls.append(1)
        raise KeyError("missing") if len(calls) == 1 else AssertionError("called again")

    def perform(self: Workflow) -> Any:
        with pytest.raises(StepFailedError, match="KeyError: 'missing'") as caught:
            self.step(act)
        assert caught.value.failure.type == "KeyError"
        return self.invoke(Clerk)

    stage = Stage(perform)
    stage.advance()
    stage.answer("0.0", "hello")
    assert only(stage.advance(), c.Complete)
    assert len(calls) == 1


def test_a_step_cannot_wait_for_others() -> None:
    stage = Stage(lambda self: self.step(lambda: self.invoke(Clerk).output))
    assert AssemblyError.code == failed(stage.advance()).code


@pytest.mark.parametrize(
    ("error", "raised"),
    [(RateLimitedError("slow down"), RateLimitedError), (LookupError("no"), StepFailedError)],
)
def test_a_child_s_failure_is_raised_and_stays_what_it_was(error: Exception, raised: type) -> None:
    seen: list[BaseException] = []

    def perform(self: Workflow) -> Any:
        try:
            return self.invoke(Clerk).output
        except AssertionError:
            raise
        except Exception as caught:
            seen.append(caught)
            raise

    stage = Stage(perform)
    stage.advance()
    stage.refuse("0.0", error)
    assert failed(stage.advance()) == Failure.of(error)
    assert type(seen[0]) is raised


def test_sleeping_takes_no_slot_and_ends_with_time() -> None:
    def perform(self: Workflow) -> Any:
        self.sleep(60)
        return "awake"

    stage = Stage(perform)
    assert only(stage.advance(), c.Wake).delay_s == 60
    stage.now_ms += 20_000
    assert only(stage.advance(), c.Wake).delay_s == 40
    stage.now_ms += 40_000
    assert only(stage.advance(), c.Complete).result["output"] == "awake"


def test_history_context_and_settings_are_inherited_and_narrowed() -> None:
    def perform(self: Workflow) -> Any:
        return self.parallel(
            self.invoke(Clerk),
            self.invoke(Clerk, input="own", history=(), context={"a": 1}, settings={"top_k": 1}),
        )

    stage = Stage(perform, user("before"), assistant("yes"), user("go"))
    found = stage.advance()
    one, two = (p for item in found if isinstance(item, c.Start) for p in item.participants)
    assert [len(one.records), len(two.records)] == [3, 1]
    assert (one.context, two.context, two.settings) == ({}, {"a": 1}, {"top_k": 1})
    join = next(j for item in found if isinstance(item, c.Start) for j in item.joins)
    assert (join.width, join.fail_fast, join.members) == (8, True, ("0.0", "0.1"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda self: self.parallel(),
        lambda self: self.parallel(self.invoke(Clerk), max_concurrency=0),
        lambda self: self.parallel(*[self.invoke(Clerk)] * 2),
        lambda self: self.parallel("clerk"),
        lambda self: self.sleep(float("nan")),
        lambda self: self.invoke(Clerk, context={"a": object()}),
        lambda self: self.invoke(Clerk, history="text"),
        lambda self: self.invoke(Clerk, input=""),
    ],
)
def test_wrong_arguments_are_refused(wrong: Callable[[Any], Any]) -> None:
    assert failed(Stage(wrong).advance()).code == InvocationError.code


@pytest.mark.parametrize(
    "wrong", [lambda self: self.invoke("x"), lambda self: self.invoke(Clerk, retries=1)]
)
def test_wrong_declarations_are_refused(wrong: Callable[[Any], Any]) -> None:
    assert failed(Stage(wrong).advance()).code == DefinitionError.code


def _deep(levels: int) -> Any:
    return [_deep(levels - 1)] if levels else "x"


@pytest.mark.parametrize(
    "returned",
    [None, object(), {1: "a"}, float("nan"), "x" * 1_000_001, _deep(70), [0] * 100_001,
     ["x" * 1_000_001], b"bytes", {"a": {1, 2}}],
)  # fmt: skip
def test_what_is_no_answer_fails_the_workflow(returned: Any) -> None:
    assert failed(Stage(lambda self: returned).advance()).code == "protocol"


@pytest.mark.parametrize("returned", [{"a": [1, None]}, [], 0, 1.5, False, ["x"]])
def test_json_is_an_answer(returned: Any) -> None:
    result = only(Stage(lambda self: returned).advance(), c.Complete).result
    assert result["output"] == result["value"] == returned
    assert result["stop_reason"] == "structured_result"


def test_a_child_of_another_workflow_is_no_answer() -> None:
    kept: list[Any] = []
    Stage(lambda self: kept.append(self.invoke(Clerk))).advance()
    assert failed(Stage(lambda self: kept[0]).advance()).code == "protocol"


class TestDeclarations:
    def test_perform_must_be_written(self) -> None:
        empty = type("EmptyWorkflow", (Workflow,), {})
        with pytest.raises(DefinitionError, match=r"EmptyWorkflow\.perform is missing"):
            empty.check()

    def test_perform_must_be_ordinary(self) -> None:
        async def perform(self: Any) -> None: ...

        eager = type("EagerWorkflow", (Workflow,), {"perform": perform})
        with pytest.raises(DefinitionError, match=r"EagerWorkflow\.perform must be an ordinary"):
            eager.check()

    def test_outside_of_perform_nothing_can_be_read(self) -> None:
        flow = Stage(lambda self: "x").assembly()
        with pytest.raises(AssemblyError, match=r"now\(\) works inside of perform only"):
            flow.now()
