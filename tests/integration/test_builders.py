"""What builders declare runs like classes, in any process that knows the code it refers to."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from littleghost import (
    AgentBuilder,
    GraphBuilder,
    Run,
    SwarmBuilder,
    Workflow,
    WorkflowBuilder,
    registry,
    wiring,
)
from littleghost.errors import DefinitionError, RunNotFoundError
from littleghost.providers.scripted import Call, Reply
from littleghost.wiring import runtime
from tests.faults.fleet import ROOT
from tests.integration import built_app, site_app
from tests.integration.processes import QUIET, site
from tests.integration.scripted import Gate, calls, make_agent, results, terminals, until

pytestmark = [pytest.mark.redis]


def forget() -> None:
    """Be a process that has built nothing; what runs keep is all there is."""
    registry._built.clear()
    registry._recent.clear()


def brain(script: Any) -> str:
    """Connect a scripted model and give its selection."""
    return str(make_agent(script).model)


def support(first: str) -> GraphBuilder:
    """Declare a graph whose parts are builders of every other kind."""
    triage = AgentBuilder("triage").model(brain(lambda request: first))
    to_expert = Reply(
        tool_calls=[Call("handoff_to_agent", {"agent_id": "expert", "message": "Help."})]
    )
    swarm = (
        SwarmBuilder("team")
        .member(AgentBuilder("clerk").model(brain([to_expert] * 9)))
        .member(AgentBuilder("expert").model(brain(lambda request: "expert advice")))
        .start("clerk")
        .handoff("clerk", "expert")
    )
    inner = AgentBuilder("inner", description="Knows.").model(brain(lambda request: "inner truth"))
    asked = calls(("inner", {"input": "What is true?"}))
    respond = (
        AgentBuilder("respond").model(brain(lambda request: _after(request, asked))).tool(inner)
    )
    return (
        GraphBuilder("support")
        .node("triage", triage)
        .node("billing", swarm)
        .node("general", WorkflowBuilder("general").perform(built_app.report))
        .node("respond", respond)
        .start("triage")
        .edge("triage", "billing", when=built_app.is_billing)
        .edge("triage", "general")
        .edge("billing", "respond")
        .edge("general", "respond", input=built_app.told)
        .finish("respond")
    )


def _after(request: Any, first: Reply) -> Any:
    return "all done" if request.messages[-1].role == "tool" else first


@pytest.mark.usefixtures("embedded")
class TestEmbedded:
    def test_all_kinds_inside_each_other(self) -> None:
        run = support("billing").ask("My bill is wrong.")
        assert run.response == "all done", run.error
        assert run.result is not None
        names = [step.participant for step in run.result.steps]
        assert names == ["triage", "billing", "clerk", "expert", "respond"]
        assert run.result.steps[1].output == "expert advice"
        assert support("else").ask("Hello").response == "all done"

    @pytest.mark.parametrize("kind", ["agent", "swarm", "graph"])
    def test_a_worker_makes_the_classes_from_what_the_run_keeps(
        self, kind: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Between two tasks everything built is forgotten, as in a worker that just started."""
        gate = Gate()

        def held(request: Any) -> str:
            gate.enter()
            return "held"

        agent = AgentBuilder("held").model(brain(held))
        other = AgentBuilder("other").model(brain(["second"]))
        builders: dict[str, Any] = {
            "agent": AgentBuilder("outer")
            .model(brain([calls(("held", {"input": "x"})), "second"]))
            .tool(agent),
            "swarm": SwarmBuilder("outer").member(agent).member(other).start("held"),
            "graph": GraphBuilder("outer")
            .node("a", agent)
            .node("b", other)
            .start("a")
            .edge("a", "b")
            .finish("b"),
        }
        before = builders[kind].build()
        run = builders[kind].enqueue("Go")
        gate.wait_for(1)
        forget()
        gate.open()
        with caplog.at_level(logging.WARNING, "littleghost.engine"):
            run.wait(20)
        assert run.response == ("held" if kind == "swarm" else "second"), run.error
        assert registry.find_built(registry.name_of(before)) not in (None, before)
        assert terminals(run) == ["run_stop"]
        assert not caplog.records

    def test_a_call_takes_a_snapshot(self) -> None:
        gate = Gate()

        def held(request: Any) -> str:
            gate.enter()
            return request.messages[0].text

        builder = AgentBuilder("snap").model(brain(held)).system_prompt("First.")
        first = builder.enqueue("Go")
        stream = builder.stream_ask("Go")
        builder.system_prompt("Second.")
        second = builder.enqueue("Go")
        gate.open()
        assert first.wait(20).response == "First."
        list(stream)
        assert stream.run.wait(20).response == "First."
        assert second.wait(20).response == "Second."
        assert first.refresh().record.fingerprint != second.refresh().record.fingerprint

    def test_every_way_of_calling(self) -> None:
        builder = WorkflowBuilder("report").perform(built_app.report)

        async def all_ways() -> list[str | None]:
            run = await builder.aask("one")
            later = await builder.aenqueue("two", lane="batch")
            stream = builder.astream_ask("three")
            kinds = [event.type async for event in stream]
            assert kinds[-1] == "run_stop"
            return [run.response, (await later.wait_async(20)).response]

        assert asyncio.run(all_ways()) == ["Reported: one", "Reported: two"]
        assert [event.type for event in builder.stream_ask("x")][-1] == "run_stop"
        assert Run.get(builder.ask("four").id).response == "Reported: four"

    def test_as_a_tool_of_a_class_whose_definition_the_run_keeps(self) -> None:
        inner = WorkflowBuilder("report", description="Reports.").perform(built_app.report)
        agent = make_agent([calls(("say", {"input": "x"})), "done"], inner.as_tool(name="say"))
        run = agent.ask("Go")
        assert results(run) == [("success", "Reported: x")]
        key, _ = runtime().journal.place(run.id)
        kept = [name for name in runtime().client.hkeys(key) if name.startswith("def:")]
        assert kept == ["def:" + registry.name_of(inner.build())[6:]]

    def test_an_ordinary_run_keeps_and_reads_no_definition(self) -> None:
        run = make_agent(["done"]).ask("Go")
        key, _ = runtime().journal.place(run.id)
        assert [name for name in runtime().client.hkeys(key) if name.startswith("def:")] == []

    def test_what_a_workflow_declares_while_it_runs_is_kept_with_the_run(self) -> None:
        gate = Gate()

        def held(request: Any) -> str:
            gate.enter()
            return f"{request.messages[0].text} {request.messages[-1].text}"

        class LateWorkflow(Workflow):
            def perform(self) -> Any:
                inner = AgentBuilder("late").model(selection).system_prompt(self.input.text)
                first = self.invoke(inner, input="one").output
                return self.invoke(WorkflowBuilder("report").perform(built_app.report), input=first)

        selection = brain(held)
        run = LateWorkflow.enqueue("Late")
        gate.wait_for(1)
        key, _ = runtime().journal.place(run.id)
        kept = [name for name in runtime().client.hkeys(key) if name.startswith("def:")]
        assert len(kept) == 1
        forget()
        gate.open()
        assert run.wait(20).response == "Reported: Late one", run.error

    def test_a_builder_of_a_class(self) -> None:
        agent = make_agent(lambda request: request.messages[0].text, system_prompt="Declared.")
        assert agent.to_builder().ask("Go").response == "Declared."
        assert agent.to_builder().system_prompt("Said.").ask("Go").response == "Said."

    def test_a_wrong_builder_is_refused_before_a_run_exists(self) -> None:
        builder = AgentBuilder("wrong").system_prompt(lambda agent: "").model("words:x")
        with pytest.raises(DefinitionError, match="move it to a module"):
            builder.ask("Go", run_id="never-there")
        with pytest.raises(RunNotFoundError):
            Run.get("never-there")

    def test_a_definition_that_was_changed_ends_the_run(self) -> None:
        gate = Gate()

        def held(request: Any) -> Reply:
            gate.enter()
            return calls("missing")

        builder = AgentBuilder("changed").model(brain(held)).system_prompt("Honest.")
        run = builder.enqueue("Go")
        gate.wait_for(1)
        key, _ = runtime().journal.place(run.id)
        field = "def:" + registry.name_of(builder.build())[6:]
        text = runtime().client.hget(key, field)
        runtime().client.hset(key, field, str(text).replace("Honest", "Forged"))
        del builder
        forget()
        gate.open()
        assert run.wait(20).outcome == "failed"
        assert run.error is not None
        assert run.error.code == "definition"
        assert "changed in Redis" in run.error.detail

    def test_a_definition_whose_module_is_missing_waits_for_another_worker(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        gate = Gate()

        def held(request: Any) -> Reply:
            gate.enter()
            return calls("echo")

        run = AgentBuilder("far").model(brain(held)).tool(site_app.echo).enqueue("Go")
        gate.wait_for(1)
        forget()
        module = sys.modules.pop("tests.integration.site_app")
        try:
            gate.open()
            with caplog.at_level(logging.WARNING, "littleghost.engine"):
                until(
                    lambda: "import the module 'tests.integration.site_app'" in caplog.text,
                    "a worker says what it must import",
                )
            assert not run.refresh().record.is_over
        finally:
            sys.modules["tests.integration.site_app"] = module
        run.cancel()
        run.wait(20)


@pytest.mark.worker
def test_a_worker_that_only_imports_the_module_referred_to(tmp_path: Path) -> None:
    """The builder is made in this process; the worker knows functions, an agent and a tool."""
    with site(tmp_path / "built") as fleet:
        arguments = ("-Q", "lg.turns,lg.tools", "-P", "threads", "-c", "2", *QUIET)
        worker = fleet.worker(*arguments, app="tests.integration.built_app").wait_ready()
        flow = built_flow()
        run = flow.ask("Where is it?")
        assert run.response == "clerk: report on triage", (run.error, worker.text()[-3000:])
        assert "definition" not in worker.text()
        assert run.result is not None
        assert [step.participant for step in run.result.steps] == [
            "triage",
            "report",
            "clerk",
            "respond",
        ]

        # A third process, that knows nothing of it, reads the run.
        code = (
            "import sys, json; from littleghost import Run; run = Run.get(sys.argv[1]);"
            "print(json.dumps([run.response, len(run.result.steps), len(list(run.events())) > 5]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, run.id],
            env={**fleet.environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert json.loads(done.stdout) == ["clerk: report on triage", 4, True]

        listing = "from littleghost.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", listing, "runs", "--agent", "flow"],
            env={**fleet.environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert run.id in done.stdout
        assert " flow " in done.stdout

        # What no worker could look up does not get so far.
        local = make_agent(["x"])
        local.__qualname__ = "here.<locals>.Agent"
        registry.register(local)
        refused = [
            AgentBuilder("x").model("built:x").tool(local),
            AgentBuilder("x").model("built:x").system_prompt(closed_prompt),
        ]
        for builder in refused:
            builder.validate()
            with pytest.raises(DefinitionError, match="move it to a module"):
                builder.enqueue("Go", run_id="refused-at-the-door")
        with pytest.raises(RunNotFoundError):
            Run.get("refused-at-the-door")
        assert os.getpid() != worker.process.pid
        assert not wiring.runtime().is_embedded


def built_flow() -> GraphBuilder:
    clerk = AgentBuilder("clerk").model(built_app.choose).system_prompt(built_app.prompt)
    return (
        GraphBuilder("flow")
        .node("triage", AgentBuilder("triage").model("built:triage").tool(built_app.number))
        .node("report", WorkflowBuilder("report").perform(built_app.ask_clerk))
        .node("respond", clerk, retries=1, retry_on=built_app.BusyError)
        .start("triage")
        .edge("triage", "report", when=built_app.is_triage, input=built_app.told)
        .edge("triage", "respond")
        .edge("report", "respond")
        .finish("respond")
    )


def closed_prompt(agent: Any) -> str:
    return "This module declares neither an assembly nor a tool."
