"""What stops one participant stops only that: its model call is cut, and the run goes on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from littleghost import Workflow
from littleghost.errors import AssemblyStepTimeoutError
from littleghost.providers.scripted import Reply
from tests.integration.scripted import make_agent, terminals

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


def test_a_step_that_takes_too_long_is_cut_while_its_model_is_asked() -> None:
    asked = threading.Event()

    def answer(request: Any) -> Reply:
        asked.set()
        # Nothing is said before that, so nothing but the stop can cut it.
        return Reply(text="late", delay_s=30)

    slow = make_agent(answer)

    class ImpatientWorkflow(Workflow):
        def perform(self) -> Any:
            try:
                return self.invoke(slow, timeout_s=0.5).output
            except AssemblyStepTimeoutError:
                self.sleep(0.5)
                return "went on"

    run = ImpatientWorkflow.ask("go", deadline_at=None)
    assert asked.is_set()
    assert (run.outcome, run.response) == ("completed", "went on"), run.error
    assert terminals(run) == ["run_stop"]
