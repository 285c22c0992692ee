"""An assembly as another agent's tool: a participant of the same run, waited for without a slot."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost import Workflow, tool
from littleghost.errors import InvalidRequestError
from littleghost.providers.scripted import Reply
from littleghost.usage import Usage
from littleghost.wiring import Runtime
from tests.integration.scripted import calls, kinds, make_agent, results, terminals

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]


def test_a_child_does_a_tools_work_in_a_conversation_of_its_own(embedded: Runtime) -> None:
    researcher = make_agent([Reply(text="Lighthouses are tall.", usage=Usage(input=7, output=3))])
    writer = make_agent(
        [
            Reply(
                text="I ask.",
                tool_calls=calls(("research", {"input": "lighthouses"})).tool_calls,
                usage=Usage(input=5, output=2),
            ),
            Reply(text="They are tall.", usage=Usage(input=9, output=4)),
        ],
        researcher.as_tool(name="research", description="Find something out."),
    )

    run = writer.ask("Write about lighthouses.", context={"account": "acme"})

    assert run.response == "They are tall."
    assert results(run) == [("success", "Lighthouses are tall.")]
    # Its tokens count, which is what the run costs.
    assert run.usage == Usage(input=21, output=9)
    [request] = researcher.brain.requests
    assert [message.text for message in request.messages if message.role == "user"] == [
        "lighthouses"
    ]
    assert terminals(run) == ["run_stop"]
    inner = [
        event.data["source"]
        for event in run.events()
        if event.type == "agent_stream" and event.data["source"]["assembly_path"]
    ]
    assert {source["agent_id"] for source in inner} == {researcher.id()}
    assert inner[0]["assembly_path"][0]["assembly_kind"] == "tool"
    assert kinds(run).count("model_stop") == 3


def test_several_children_work_at_once_and_answer_in_the_models_order() -> None:
    helper = make_agent(lambda request: f"re: {request.messages[-1].text}")
    asked = [("help", {"input": f"q{number}"}) for number in range(12)]
    boss = make_agent([calls(*asked), "done"], helper.as_tool(name="help"))

    run = boss.ask("go")

    assert results(run) == [("success", f"re: q{number}") for number in range(12)]


def test_a_child_sees_a_copy_of_the_callers_state_and_changes_nothing_there() -> None:
    @tool(idempotent=True)
    def peek(tool: Any) -> str:
        """Look at the state."""
        tool.context.state.increment("seen")
        return f"{tool.context.state['account']} {dict(tool.invocation.context)}"

    child = make_agent([calls("peek"), "looked"], peek)
    parent = make_agent(
        [calls(("child", {"input": "look"})), calls("peek"), "end"],
        child.as_tool(name="child"),
        peek,
    )

    run = parent.ask("go", context={"account": "acme"})

    assert results(run)[0] == ("success", "looked")
    assert run.result is not None
    assert run.result.state == {"account": "acme", "seen": 1}


def test_a_child_that_fails_is_an_error_the_model_sees_without_its_detail() -> None:
    def refuse(_: Any) -> Reply:
        raise InvalidRequestError("the secret is 1234")

    child = make_agent(refuse)
    parent = make_agent(
        [calls(("child", {"input": "x"})), "I could not."], child.as_tool(name="child")
    )

    run = parent.ask("go")

    assert (run.outcome, run.response) == ("completed", "I could not.")
    assert results(run) == [("error", "Tool failed (InvalidRequestError)")]


def test_a_wrong_input_starts_no_child() -> None:
    child = make_agent(["never"])
    parent = make_agent([calls(("child", {"text": "x"})), "end"], child.as_tool(name="child"))

    run = parent.ask("go")

    [(status, content)] = results(run)
    assert status == "error"
    assert "input is required" in content
    assert not child.brain.requests


def test_children_may_have_children_of_their_own() -> None:
    last = make_agent(["the bottom"])
    middle = make_agent([calls(("last", {"input": "b"})), "the middle"], last.as_tool(name="last"))
    first = make_agent(
        [calls(("middle", {"input": "a"})), "the top"], middle.as_tool(name="middle")
    )

    run = first.ask("go")

    assert run.response == "the top"
    assert results(run) == [("success", "the middle")]


def test_a_child_that_gives_a_value_is_told_as_json() -> None:
    class ValueWorkflow(Workflow):
        def perform(self) -> Any:
            return {"said": [self.input.text, True]}

    parent = make_agent(
        [calls(("flow", {"input": "it's"})), "end"], ValueWorkflow.as_tool(name="flow")
    )

    assert results(parent.ask("go")) == [("success", '{"said":["it\'s",true]}')]


def test_a_cancel_reaches_a_child() -> None:
    child = make_agent([Reply(text="word " * 500, chunk_chars=5, chunk_delay_s=0.02)])
    parent = make_agent([calls(("child", {"input": "x"})), "end"], child.as_tool(name="child"))
    run = parent.enqueue("go")
    next(event for event in run.events() if event.text)

    run.cancel("enough").wait(10)

    assert run.outcome == "cancelled"
    assert terminals(run) == ["run_cancel"]
