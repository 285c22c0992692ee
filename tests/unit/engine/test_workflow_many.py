"""Many children, values and operations of a workflow: in pieces, without running its code again."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost import Workflow
from littleghost.engine import commands as c
from littleghost.engine.replay import MAX_OPERATIONS, MAX_VALUES
from littleghost.engine.steps import CLOSE_PIECE, START_PIECE
from littleghost.errors import AssemblyLimitError, OverloadedError
from littleghost.failure import Failure
from tests.support.cast import Clerk
from tests.support.stage import Stage, failed, only, started

COUNT = START_PIECE + 50


class Asker:
    """A workflow's code that asks many clerks, and counts how often it is run."""

    def __init__(self, count: int = COUNT, *, settle: bool = False) -> None:
        self.runs, self.count, self.settle = 0, count, settle

    def __call__(self, workflow: Any) -> Any:
        self.runs += 1
        asked = [workflow.invoke(Clerk, input=f"say {n}") for n in range(self.count)]
        given = workflow.parallel(*asked, max_concurrency=20, settle=self.settle)
        return [str(item) for item in given] if self.settle else given


def staged(asker: Asker) -> Stage:
    return Stage(lambda self: asker(self))


def join_of(found: list[c.Command]) -> c.Join:
    [join] = [join for item in found if isinstance(item, c.Start) for join in item.joins]
    return join


def told(found: list[c.Command], kind: str) -> list[Any]:
    return [item.data for item in found if isinstance(item, c.Emit) and item.type == kind]


def test_children_are_started_piece_by_piece() -> None:
    stage = staged(asker := Asker())
    first = stage.advance()
    assert started(first) == [f"0.{n}" for n in range(START_PIECE)]
    assert only(first, c.Wake).delay_s == 0
    assert (join_of(first).begun, len(join_of(first).members)) == (0, COUNT)

    second = stage.advance()
    assert started(second) == [f"0.{n}" for n in range(START_PIECE, COUNT)]
    assert join_of(second).begun == START_PIECE
    assert not [item for item in second if isinstance(item, c.Append | c.Wake)]
    assert asker.runs == 1, "the code could only come to where it waits"
    assert len(str(stage.state)) < 200, "what is kept does not grow with the number"


@pytest.mark.parametrize("moves", [False, True])
def test_the_end_is_the_same_when_another_process_goes_on(moves: bool) -> None:
    stage = staged(asker := Asker(CLOSE_PIECE + 10))
    number, stops = 0, 0
    while True:
        if moves:
            stage.become(lambda self: asker(self))
        found = stage.advance()
        stops += len(told(found, "assembly_step_stop"))
        assert len(told(found, "assembly_step_stop")) <= CLOSE_PIECE
        if any(isinstance(item, c.Complete) for item in found):
            break
        for child in reversed(started(found)):
            stage.answer(child, f"answer {child}")
        number += 1
        assert number < 20
    assert only(found, c.Complete).result["output"] == [
        f"answer 0.{n}" for n in range(CLOSE_PIECE + 10)
    ]
    assert stops == CLOSE_PIECE + 10
    assert (asker.runs > 5) is moves


def test_a_failure_ends_it_before_the_rest_is_started() -> None:
    stage = staged(Asker())
    stage.advance()
    stage.answer("0.3", "well")
    stage.refuse("0.7", OverloadedError("busy"))
    found = stage.advance()
    assert started(found) == []
    ids = only(found, c.CancelParticipants).ids
    assert len(ids) == START_PIECE - 2
    assert not {"0.3", "0.7"} & set(ids)
    assert failed(found) == Failure.of(OverloadedError("busy"))
    assert [item["step_id"] for item in told(found, "assembly_step_stop")] == ["0.3"]
    assert len(told(found, "assembly_step_error")) == START_PIECE - 1
    assert stage.state.get("open") is None


def test_bounded_ones_are_started_piece_by_piece_too() -> None:
    def perform(self: Workflow) -> Any:
        asked = [self.invoke(Clerk, input=f"say {n}", timeout_s=60) for n in range(COUNT)]
        return self.parallel(*asked, max_concurrency=COUNT - 10)

    stage = Stage(perform)
    first = stage.advance()
    assert (len(started(first)), only(first, c.Wake).delay_s) == (START_PIECE, 0)
    second = stage.advance()
    assert (len(started(second)), only(second, c.Wake).delay_s) == (40, 60)


def test_settled_ones_are_all_started_whatever_fails() -> None:
    stage = staged(Asker(settle=True))
    for child in started(stage.advance()):
        stage.refuse(child, OverloadedError("busy"))
    rest = started(stage.advance())
    assert len(rest) == COUNT - START_PIECE
    for child in rest:
        stage.answer(child, "well")
    output = only(stage.advance(), c.Complete).result["output"]
    assert sum("Overloaded" in item for item in output) == START_PIECE


def test_what_waits_under_other_code_is_not_taken_for_what_is_open() -> None:
    stage = staged(Asker())
    stage.advance()
    memory = stage.memory
    stage.become(lambda self: Asker(3)(self))
    stage.records[:] = [stage.records[0]]
    stage.state = {}
    first = stage.advance()
    assert len(started(first)) == 3
    # The process that had asked for more comes back to a journal that never heard of it.
    stage.memory = memory
    memory.indexes["0"].seen = 1
    memory.indexes["0"].operations.clear()
    for child in started(first):
        stage.answer(child, "well")
    assert only(stage.advance(), c.Complete).result["output"] == ["well"] * 3


def test_values_are_recorded_before_there_are_too_many() -> None:
    called: list[int] = []

    def perform(self: Workflow) -> Any:
        return sum(self.step(lambda n=n: called.append(n) or n, name=str(n)) for n in range(300))

    stage = Stage(perform)
    first = stage.advance()
    assert len(only(first, c.Append).values) == MAX_VALUES
    assert only(first, c.Wake).delay_s == 0
    assert only(stage.advance(), c.Complete).result["output"] == sum(range(300))
    assert called == list(range(300)), "nothing is made twice"


def test_operations_without_end_are_refused_and_cannot_be_caught() -> None:
    def perform(self: Workflow) -> Any:
        while True:
            try:
                self.uuid()
            except AssemblyLimitError:
                continue

    stage = Stage(perform)
    for _ in range(MAX_OPERATIONS // MAX_VALUES):
        assert not [item for item in stage.advance() if isinstance(item, c.Fail)]
    failure = failed(stage.advance())
    assert failure.code == AssemblyLimitError.code
    assert f"more than {MAX_OPERATIONS} operations" in failure.detail


def test_another_attempt_is_told_of() -> None:
    stage = Stage(
        lambda self: self.invoke(
            Clerk, name="clerk", retries=1, retry_on=OverloadedError, retry_delay_s=2
        )
    )
    stage.advance()
    stage.refuse("0.0", OverloadedError("busy"))
    assert told(stage.advance(), "assembly_step_retry") == [
        {
            "step_id": "0.0",
            "participant": "clerk",
            "attempt": 1,
            "error_type": "OverloadedError",
            "delay": 2,
        }
    ]
    stage.refuse("0.1", OverloadedError("busy"))
    assert told(stage.advance(), "assembly_step_retry") == []
