"""What tools are given, which ones there are, and when they are closed."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from littleghost import Tool, tool
from littleghost.wiring import Runtime
from tests.integration.scripted import calls, make_agent, results

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


class Probe(Tool):
    """Remember what was given."""

    seen: list[Tool] = []  # noqa: RUF012

    def call(self, input: dict[str, Any]) -> str:
        type(self).seen.append(self)
        return "ok"


@pytest.fixture(autouse=True)
def forget() -> None:
    Probe.seen.clear()


def test_a_tool_gets_its_run_its_invocation_and_its_agent() -> None:
    agent = make_agent([calls("probe"), "done"], Probe)
    run = agent.ask(
        "Go",
        actor_id="ann",
        session_id="room",
        context={"account": 7},
        metadata={"page": "/help"},
        interface="web",
        deadline_at=timedelta(seconds=60),
    )
    [probe] = Probe.seen

    assert isinstance(probe.agent, agent)
    assert probe.agent.run is probe.run
    assert probe.run.id == run.id
    assert probe.run.session_id == "room"
    assert probe.run.actor_id == probe.invocation.actor_id == "ann"
    assert probe.run.assembly == run.assembly
    assert probe.invocation.context == {"account": 7}
    assert probe.invocation.interface == "web"
    assert probe.invocation.message.text == "Go"
    assert probe.context.metadata == {"page": "/help"}
    assert probe.context.state["account"] == 7
    assert probe.context.remaining_s() is not None
    assert 0 < (probe.remaining_s() or 0) <= 60
    assert (probe.remaining_s(5) or 0) <= 5
    assert not probe.cancellation.is_cut
    with pytest.raises(TypeError):
        probe.invocation.context["account"] = 8
    with pytest.raises(AttributeError):
        _ = probe.invocation.unheard_of


def test_every_call_has_an_instance_and_an_idempotency_key_of_its_own() -> None:
    run = make_agent([calls("probe", "probe"), calls("probe"), "done"], Probe).ask("Go")
    assert len({id(probe) for probe in Probe.seen}) == 3
    keys = {probe.idempotency_key for probe in Probe.seen}
    assert len(keys) == 3
    assert all(run.id in key for key in keys)


def test_the_idempotency_key_is_the_same_on_every_attempt(embedded: Runtime) -> None:
    """P7: the call is given back while it runs, as by a worker that stops, and made again."""
    keys: list[str] = []
    again = threading.Event()

    @tool(idempotent=True)
    def charge(tool: Any) -> str:
        """Charge."""
        keys.append(tool.idempotency_key)
        if len(keys) == 1:
            run_id, task_id = tool.run.id, tool.idempotency_key.rpartition(":")[2]
            journal = embedded.journal
            assert journal.release(run_id, task_id, journal.worker_id, lost=True)
            assert again.wait(20)
        else:
            again.set()
        return f"attempt {len(keys)}"

    run = make_agent([calls("charge"), "done"], charge).ask("Go")
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert results(run) == [("success", "attempt 2")]


def test_a_call_that_may_not_be_repeated_is_not_and_the_model_is_told(embedded: Runtime) -> None:
    """P7."""
    made: list[str] = []

    @tool
    def charge(tool: Any) -> str:
        """Charge."""
        made.append(tool.idempotency_key)
        journal, task_id = embedded.journal, tool.idempotency_key.rpartition(":")[2]
        assert journal.release(tool.run.id, task_id, journal.worker_id, lost=True)
        return "charged"

    run = make_agent([calls("charge"), "done"], charge).ask("Go")
    assert len(made) == 1
    [(status, text)] = results(run)
    assert status == "error"
    assert "unknown" in text


def test_what_a_tool_sees_is_not_what_the_model_sees() -> None:
    agent = make_agent([calls("probe"), "done"], Probe)
    agent.ask("Go", actor_id="ann-secret", context={"k": "context-secret"}, metadata={"m": "meta"})
    for request in agent.brain.requests:
        shown = repr(request)
        assert "ann-secret" not in shown
        assert "context-secret" not in shown
        assert "meta'" not in shown


def test_the_prompt_and_the_model_may_be_methods_of_one_run() -> None:
    agent = make_agent(["hi"])
    selection = agent.model
    chosen = type(
        "ChosenAgent",
        (agent,),
        {
            "model": lambda self: selection if self.invocation.context["vip"] else "nowhere:m",
            "system_prompt": lambda self: f"You serve {self.run.actor_id}.",
        },
    )
    assert chosen.ask("Go", actor_id="ann", context={"vip": True}).response == "hi"
    assert agent.brain.requests[-1].messages[0].text == "You serve ann."


@pytest.mark.parametrize("prompt", ["", "  \n", lambda self: None, lambda self: ""])
def test_a_blank_prompt_is_no_prompt(prompt: Any) -> None:
    agent = make_agent(["hi"], system_prompt=prompt)
    assert agent.ask("Go").response == "hi"
    assert [message.role for message in agent.brain.requests[0].messages] == ["user"]


def test_settings_of_the_call_beat_those_of_the_agent() -> None:
    from littleghost import Limits

    limits = Limits(model_settings={"temperature": 1, "top_p": 0.5})
    agent = make_agent(["hi"], limits=limits)
    agent.ask("Go", settings={"temperature": 0})
    assert agent.brain.requests[0].settings == {"temperature": 0, "top_p": 0.5}
