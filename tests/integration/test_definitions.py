"""A worker with another version of a definition, or none, says so; it never goes on silently."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from littleghost import Agent, Run, registry, tool
from tests.integration.processes import QUIET, site
from tests.integration.scripted import Gate, calls, make_agent, results, terminals, until
from tests.integration.site_app import SiteAgent

pytestmark = [pytest.mark.redis, pytest.mark.worker]


def changed(agent: type[Any], **attributes: Any) -> type[Any]:
    """Give a class the registered name of another, as a deploy does."""
    body = {"model": agent.model, "__module__": agent.__module__, **attributes}
    return type(agent.__name__, (Agent,), body)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, "littleghost.engine"):
        yield caplog


@pytest.mark.usefixtures("embedded")
def test_a_changed_definition_goes_on_with_one_log_line(log: pytest.LogCaptureFixture) -> None:
    gate = Gate()

    @tool
    def hold(n: int) -> str:
        """Wait for the deploy."""
        gate.enter()
        return str(n)

    agent = make_agent([calls(("hold", {"n": 1})), calls(("hold", {"n": 2})), "done"], hold)
    run = agent.enqueue("Go")
    gate.wait_for(1)
    changed(agent, system_prompt="Another prompt.", tools=[hold])
    gate.open()

    assert run.wait(20).response == "done"
    assert agent.brain.requests[-1].messages[0].text == "Another prompt."
    lines = [record.getMessage() for record in log.records if run.id in record.getMessage()]
    assert len(lines) == 1
    assert agent.fingerprint() in lines[0]
    assert agent.__name__ in lines[0]


@pytest.mark.usefixtures("embedded")
def test_a_pending_call_to_a_tool_that_is_gone_gets_an_error_result() -> None:
    gate = Gate()
    called: list[str] = []

    @tool(exclusive=True)
    def first() -> str:
        """Wait for the deploy."""
        gate.enter()
        return "first"

    @tool
    def second() -> str:
        """Be removed."""
        called.append("second")
        return "second"

    agent = make_agent([calls("first", "second"), "done"], first, second)
    run = agent.enqueue("Go")
    gate.wait_for(1)
    changed(agent, tools=[first])
    gate.open()

    assert run.wait(20).response == "done"
    done, gone = results(run)
    assert done == ("success", "first")
    assert gone == ("error", "Unknown tool: second. Available tools: first")
    assert called == []
    assert [spec.name for spec in agent.brain.requests[-1].tools] == ["first"]


@pytest.mark.usefixtures("embedded")
def test_a_run_waits_for_a_worker_that_knows_its_assembly(log: pytest.LogCaptureFixture) -> None:
    """P9: a name is looked up, never imported. P5: the run waits as a timer, and goes on."""
    gate = Gate()

    @tool
    def hold() -> str:
        """Wait for the deploy."""
        gate.enter()
        return ""

    agent = make_agent([calls("hold"), "done"], hold)
    run = agent.enqueue("Go")
    gate.wait_for(1)
    name = registry.name_of(agent)
    registry._assemblies.pop(name)
    gate.open()
    until(lambda: name in log.text, "a worker says that it does not know it")
    until(lambda: _state(run) == "wait", "the turn waits")
    registry._assemblies[name] = agent

    assert run.wait(20).response == "done"
    assert terminals(run) == ["run_stop"]


def _state(run: Run) -> str:
    [task] = run.refresh().record.tasks.values()
    return str(task["s"])


def test_the_policy_decides_what_a_fleet_does(tmp_path: Path) -> None:
    """Two workers with another prompt than this caller: one warns, one refuses."""
    for policy in ("warn", "refuse"):
        with site(tmp_path / policy, LITTLEGHOST_DEFINITION_MISMATCH=policy) as fleet:
            arguments = ("-Q", "lg.turns,lg.tools", "-P", "threads", "-c", "2", *QUIET)
            worker = fleet.worker(*arguments, SITE_PROMPT="Another prompt.").wait_ready()
            runs = [SiteAgent.ask(f"echo {number}") for number in range(3)]
            text = worker.text()
            if policy == "warn":
                assert {run.outcome for run in runs} == {"completed"}
                assert text.count("going on with this worker's") == 1
                continue
            for run in runs:
                assert run.error is not None
                assert (run.outcome, run.error.code) == ("failed", "definition_changed")
                assert SiteAgent.fingerprint() in run.error.detail
                assert terminals(run) == ["run_error"]
                assert "definition" not in run.error.message
