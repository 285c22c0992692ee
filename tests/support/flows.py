"""Workflows of the tests' own, with the cast as their children."""

from __future__ import annotations

from typing import Any

from littleghost import Workflow
from littleghost.errors import (
    AssemblyStepTimeoutError,
    InvalidRequestError,
    SignalTimeoutError,
)
from tests.support.cast import EFFECTS, Clerk


class SequenceWorkflow(Workflow):
    """Asks two clerks, the second about the first one's answer."""

    def perform(self) -> Any:
        first = self.invoke(Clerk, input="text", name="first").output
        return self.invoke(Clerk, input=f"say {first}", name="second")


class ParallelWorkflow(Workflow):
    """Asks three clerks, two at once."""

    def perform(self) -> Any:
        asked = [self.invoke(Clerk, input=f"say {word}") for word in ("one", "two", "three")]
        return {"said": self.parallel(*asked, max_concurrency=2)}


class CatchingWorkflow(Workflow):
    """Goes on when a child fails, alone and beside others."""

    def perform(self) -> Any:
        try:
            said = self.invoke(Clerk, input="bad").output
        except InvalidRequestError as error:
            said = type(error).__name__
        try:
            self.parallel(
                self.invoke(Clerk, input="say one"),
                self.invoke(Clerk, input="bad"),
                self.invoke(Clerk, input="say two"),
                max_concurrency=1,
            )
        except InvalidRequestError:
            said += " twice"
        return self.invoke(Clerk, input=f"say {said}").output


class SleepingWorkflow(Workflow):
    """Sleeps between two clerks, and remembers a step."""

    def perform(self) -> Any:
        first = self.invoke(Clerk, input="say before").output
        self.sleep(0.02)
        word = self.step(str.upper, "after")
        return first + " " + self.invoke(Clerk, input=f"say {word}").output


class RetryingWorkflow(Workflow):
    """Tries a failing clerk twice beside one that does not fail."""

    def perform(self) -> Any:
        bad = self.invoke(
            Clerk, input="bad", retries=1, retry_on=InvalidRequestError, retry_delay_s=60
        )
        good = self.invoke(Clerk, input="say good")
        one, other = self.parallel(bad, good, settle=True)
        return f"{type(one.error).__name__} {other.output}"


class OuterWorkflow(Workflow):
    """Has a workflow do its work."""

    def perform(self) -> Any:
        return self.invoke(SequenceWorkflow)


class MemoWorkflow(Workflow):
    """Says whether what it drew before a child is what it has after it."""

    def perform(self) -> Any:
        drawn = f"{self.random()} {self.uuid()} {self.now().isoformat()} {self.step(count)}"
        said = self.invoke(Clerk, input=f"say {drawn}").output
        return {"same": said == drawn, "context": dict(self.context)}


class EndlessWorkflow(Workflow):
    """Does not end in any test's time."""

    def perform(self) -> Any:
        self.sleep(3600)
        return "too late"


class BoundedWorkflow(Workflow):
    """Gives up on a child twice, and on a pair of which one fails; what it stops are workflows."""

    def perform(self) -> Any:
        endless = self.invoke(
            EndlessWorkflow, timeout_s=0.01, retries=1, retry_on=AssemblyStepTimeoutError
        )
        try:
            said = endless.output
        except AssemblyStepTimeoutError:
            said = "too slow"
        try:
            self.parallel(
                self.invoke(EndlessWorkflow, timeout_s=60),
                self.invoke(Clerk, input="bad"),
                self.invoke(Clerk, input="text"),
                max_concurrency=2,
            )
        except InvalidRequestError as error:
            said += f", {error}"
        return said


class WaitingWorkflow(Workflow):
    """Waits for a signal that comes before, one that comes after, and one that does not come."""

    def perform(self) -> Any:
        first = self.wait_for("go")
        said = self.invoke(Clerk, input=f"say {first['n']}").output
        second = self.wait_for("go", timeout_s=3600)
        try:
            self.wait_for("never", timeout_s=0.001)
        except SignalTimeoutError as error:
            return f"{said} {second} {error.code}"
        return "a signal that nobody sent"


def count() -> int:
    """Leave a trace and give a number that is never the same."""
    EFFECTS["step"] += 1
    return EFFECTS["step"]
