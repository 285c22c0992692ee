"""Subagents in real runs: they nest, overlap, remember, outlast a run, and end with their agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from littleghost import (
    Agent,
    Graph,
    Limits,
    Member,
    Subagent,
    SubagentLimits,
    Swarm,
    Workflow,
    tool,
)
from littleghost.engine.interjection import FRAME
from littleghost.engine.subagent_state import ROOT_PATH
from littleghost.errors import DefinitionError, InvalidRequestError
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.run import Run
from littleghost.usage import Usage
from littleghost.wiring import runtime
from tests.integration.scripted import (
    WAIT_S,
    Gate,
    calls,
    last_request,
    make_agent,
    results,
    results_in,
    run_keys,
    terminals,
    texts,
    until,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]
USAGE = Usage(input=3, output=2)


def path(*names: str) -> str:
    return "/".join([ROOT_PATH, *names])


def spawn(name: str, task: str = "", mode: str = "sync", kind: str = "diver") -> Any:
    given = {"kind": kind, "task_name": name, "task": task or f"do {name}", "mode": mode}
    return ("spawn_subagent", given)


def send(name: str, message: str, mode: str = "sync") -> Any:
    given = {"subagent_id": path(name), "message": message, "mode": mode}
    return ("send_message_to_subagent", given)


def interject(name: str, message: str = "psst") -> Any:
    return ("interject_subagent", {"subagent_id": path(name), "message": message})


WAIT = "wait_for_subagents"


def told(run: Run) -> list[Any]:
    """Give what the control tools answered: data, or text of an error."""
    return [
        json.loads(content) if status == "success" else content for status, content in results(run)
    ]


def echo(**attributes: Any) -> type[Any]:
    return make_agent(
        lambda request: Reply(text="re: " + request.messages[-1].text, usage=USAGE), **attributes
    )


def captain(script: Any, *divers: Any, **attributes: Any) -> type[Any]:
    found = [Subagent(agent, kind="diver" if n == 0 else f"diver{n}")
             for n, agent in enumerate(divers)]  # fmt: skip
    return make_agent(script, subagents=found, **attributes)


def happenings(run: Run) -> list[Any]:
    return [event.data["event"] for event in run.events() if event.type == "subagent"]


def starts_of(run: Run) -> list[str]:
    """Give what the agents of a run were asked, as their events say."""
    return [
        event.data["input"]["content"][0]["text"]
        for event in run.events()
        if event.inner_type == "invocation_start"
    ]


def conversation(agent: type[Any]) -> list[tuple[str, str]]:
    """Give what the newest request held, without the system prompt."""
    return texts(last_request(agent))[1:]


# One run.


def test_a_subagent_knows_only_its_task_and_its_answer_comes_back() -> None:
    diver = echo(description="Dives.")
    boss = captain([calls(spawn("tides", "When is high tide?"), usage=USAGE),
                    Reply(text="At noon.", usage=USAGE)], diver)  # fmt: skip
    run = boss.ask("Ask the diver.", context={"account": "acme"})
    assert run.response == "At noon."
    [answer] = told(run)
    assert answer == {
        "status": "finished",
        "subagent_id": path("tides"),
        "kind": "diver",
        "turn": 1,
        "response": "re: When is high tide?",
    }
    assert conversation(diver) == [("user", "When is high tide?")]
    offered = {spec.name: spec for spec in boss.brain.requests[0].tools}
    assert "- diver: Dives." in offered["spawn_subagent"].description
    assert not diver.brain.requests[0].tools
    assert terminals(run) == ["run_stop"]
    assert run.result is not None
    assert list(run.result.steps) == []


def test_sync_spawns_of_one_answer_overlap() -> None:
    together = threading.Barrier(3)

    def dive(request: ModelRequest) -> str:
        together.wait(WAIT_S)
        return request.messages[-1].text

    boss = captain([calls(*map(spawn, "abc")), "done"], make_agent(dive))
    run = boss.ask("go")
    assert [answer["response"] for answer in told(run)] == ["do a", "do b", "do c"]


def test_async_ones_work_while_the_agent_goes_on_and_are_waited_for() -> None:
    gate = Gate()

    def dive(request: ModelRequest) -> str:
        gate.enter()
        return "deep"

    def lead(request: ModelRequest) -> Reply | str:
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn == 2:
            gate.open()
        answers = [calls(spawn("a", mode="async"), spawn("b", mode="async")),
                   calls(("list_subagents", {})), calls(WAIT), "end"]  # fmt: skip
        return answers[turn]

    run = captain(lead, make_agent(dive)).ask("go")
    first, second, listed, waited = told(run)
    assert [first["status"], second["status"]] == ["working", "working"]
    assert [item["status"] for item in listed["subagents"]] == ["working", "working"]
    assert waited["status"] == "finished"
    assert [(item["subagent_id"], item["response"]) for item in waited["subagents"]] == [
        (path("a"), "deep"),
        (path("b"), "deep"),
    ]


def test_waiting_is_over_after_its_time_though_one_still_works() -> None:
    gate = Gate()
    slow = make_agent(lambda request: gate.enter() or "late")

    def lead(request: ModelRequest) -> Reply | str:
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn == 2:
            gate.open()
        return [calls(spawn("a", mode="async")), calls(WAIT), calls(WAIT), "end"][turn]

    limits = SubagentLimits(wait_s=0.2)
    waits = [item["status"] for item in told(captain(lead, slow, subagent_limits=limits).ask("go"))]
    assert waits[1] == "still_working"
    assert waits[2] in ("finished", "still_working")


@tool(idempotent=True)
def sound(tool: Any) -> str:
    """Measure how deep it is."""
    tool.context.state.increment("measured")
    return f"{tool.context.state['measured']} fathoms for {tool.context.state['ship']}"


def test_a_followup_remembers_answers_tool_results_and_state() -> None:
    def dive(request: ModelRequest) -> Reply | str:
        if request.messages[-1].role == "tool":
            return "measured"
        return calls("sound")

    diver = make_agent(dive, sound)
    boss = captain([calls(spawn("a", "first")), calls(send("a", "second")), "end"], diver)
    run = boss.ask("go", context={"ship": "Ann"})
    assert [(answer["turn"], answer["status"]) for answer in told(run)] == [
        (1, "finished"),
        (2, "finished"),
    ]
    assert results_in(last_request(diver)) == [
        ("success", "1 fathoms for Ann"),
        ("success", "2 fathoms for Ann"),
    ]
    assert [text for role, text in conversation(diver) if role == "user"] == ["first", "second"]
    assert starts_of(run) == ["go", "first", "second"]


def test_a_failing_subagent_is_an_answer_without_detail_and_the_agent_goes_on() -> None:
    def dive(request: ModelRequest) -> str:
        raise InvalidRequestError("the secret is 1234")

    diver = make_agent(dive)
    run = captain([calls(spawn("a")), calls(send("a", "again")), "I could not."], diver).ask("go")
    assert run.response == "I could not."
    assert [answer["status"] for answer in told(run)] == ["failed", "failed"]
    assert "1234" not in json.dumps(told(run))
    assert len(diver.brain.requests) == 1
    [failed] = [item for item in happenings(run) if item["event"] == "turn_failed"]
    assert failed["error_type"] == "InvalidRequestError"


def test_two_levels_nest_with_their_paths() -> None:
    last = echo()
    middle = captain([calls(spawn("deep", "the bottom")), "middle"], last)
    run = captain([calls(spawn("a")), "top"], middle).ask("go")
    assert run.response == "top"
    ids = [item["subagent_id"] for item in happenings(run) if item["event"] == "spawned"]
    assert ids == [path("a"), path("a", "deep")]
    assert conversation(last) == [("user", "the bottom")]
    finished = [(item["tool_name"], item["subagent_id"]) for item in happenings(run)
                if item["event"] == "tool_finished"]  # fmt: skip
    assert finished == [("spawn_subagent", path("a"))]


@pytest.mark.parametrize("inside", [False, True])
def test_a_followup_of_a_subagent_finds_its_own_subagents_again(inside: bool) -> None:
    last = echo()

    def lead(request: ModelRequest) -> Reply | str:
        if request.messages[-1].role == "tool":
            return "done"
        if request.messages[-1].text == "first":
            return calls(spawn("deep", "remember 7"))
        given = {"subagent_id": path("a", "deep"), "message": "which?", "mode": "sync"}
        return calls(("send_message_to_subagent", given))

    middle = captain(lead, last)
    boss = captain([calls(spawn("a", "first")), calls(send("a", "second")), "end"], middle)

    class AskingWorkflow(Workflow):
        def perform(self) -> Any:
            return self.invoke(boss)

    # One that is not the run's own agent keeps them in the run, though that has a session.
    run = (AskingWorkflow if inside else boss).ask("go", session_id=f"s-sub-deep-{inside}")
    assert run.response == "end"
    assert is_kept(run, path("a", "deep")) is not inside
    assert conversation(last) == [
        ("user", "remember 7"),
        ("assistant", "re: remember 7"),
        ("user", "which?"),
    ]


def test_all_tokens_count() -> None:
    diver = captain([calls(spawn("deep"), usage=USAGE), Reply(text="x", usage=USAGE)], echo())
    boss = captain([calls(spawn("a"), usage=USAGE), Reply(text="y", usage=USAGE)], diver)
    run = boss.ask("go")
    used = run.record.usage_of
    assert {name: count.output for name, count in used.items()} == {
        "0": 4,
        "0.9999.0": 4,
        "0.9999.0.9999.0": 2,
    }
    assert run.usage == Usage(input=15, output=10)


def test_events_tell_what_happens_but_nothing_that_was_said() -> None:
    diver = make_agent([Reply(text="a secret thought", tool_calls=[Call("sound")]), "a secret"],
                       sound)  # fmt: skip
    run = captain([calls(spawn("a", "secret task")), "end"], diver).ask("go", context={"ship": "x"})
    found = happenings(run)
    assert [item["event"] for item in found] == [
        "spawned",
        "message_queued",
        "turn_started",
        "activity",
        "tool_started",
        "tool_finished",
        "activity",
        "turn_finished",
    ]
    assert "secret" not in json.dumps(found)
    assert {(item["subagent_id"], item["kind"], item["conversation_id"]) for item in found} == {
        (path("a"), "diver", found[0]["conversation_id"])
    }
    assert found[4]["tool_name"] == "sound"


def test_wrong_input_of_a_control_tool_is_told_to_the_model() -> None:
    wrong = [
        ("spawn_subagent", {"kind": "pilot", "task_name": "a", "task": "x", "mode": "sync"}),
        ("spawn_subagent", {"kind": "diver", "task_name": "A b", "task": "x", "mode": "sync"}),
        ("spawn_subagent", {"kind": "diver", "task_name": "a", "task": "x", "mode": "later"}),
        ("send_message_to_subagent", {"subagent_id": "x"}),
        (WAIT, {"subagent_ids": []}),
        ("list_subagents", {"limit": 101}),
        interject("nobody"),
    ]
    diver = echo()
    run = captain([calls(*wrong), "end"], diver).ask("go")
    assert [status for status, _ in results(run)] == ["error"] * len(wrong)
    assert not diver.brain.requests
    assert "0.9999.0" not in run.record.participants


def test_nesting_ends_at_a_depth_and_the_run_goes_on() -> None:
    def lead(request: ModelRequest) -> Reply | str:
        if request.messages[-1].role == "tool":
            return request.messages[-1].content[0].content  # type: ignore[union-attr]
        return calls(spawn("x"))

    # An agent cannot name itself in its own body, so a method names it.
    found: list[Any] = []
    agent = make_agent(lead, subagents=lambda self: [Subagent(found[0], kind="diver")])
    found.append(agent)
    run = agent.ask("go")
    assert run.is_completed, run.error
    assert len([item for item in happenings(run) if item["event"] == "turn_started"]) == 16
    [failed] = [item for item in happenings(run) if item["event"] == "factory_failed"]
    assert failed["subagent_id"].count("/x") == 17


def test_a_method_lists_the_kinds_of_a_run() -> None:
    diver = echo()

    def kinds(self: Any) -> list[Any]:
        return [Subagent(diver, kind="diver")] if self.invocation.context["dives"] else []

    boss = make_agent(lambda request: str([spec.name for spec in request.tools]), subagents=kinds)
    assert "spawn_subagent" in boss.ask("go", context={"dives": True}).response
    assert boss.ask("go", context={"dives": False}).response == "[]"


# Wrong declarations.


def test_everything_wrong_with_a_declaration_is_told_at_once() -> None:
    class ShipAgent(Agent, abstract=True):
        pass

    diver = echo()
    kinds = [Subagent(diver, kind="a b"), "x", Workflow, diver, diver, ShipAgent,
             Subagent(diver, kind="d", description=7)]  # fmt: skip
    boss = make_agent(["x"], subagents=kinds)
    with pytest.raises(DefinitionError) as caught:
        boss.enqueue("go")
    for text in ("'a b'", "'x' is no agent", "Workflow", "declared twice", "abstract", "no text"):
        assert text in str(caught.value)


@pytest.mark.parametrize("kinds", ["diver", 7, {"a": 1}])
def test_what_is_no_list_is_refused(kinds: Any) -> None:
    with pytest.raises(DefinitionError, match="use a list"):
        make_agent(["x"], subagents=kinds).enqueue("go")


def test_names_of_the_control_tools_are_taken() -> None:
    @tool
    def list_subagents() -> str:
        """Own."""
        return ""

    with pytest.raises(DefinitionError, match="list_subagents"):
        make_agent(["x"], list_subagents, subagents=[echo()]).enqueue("go")


def test_wrong_limits_are_refused() -> None:
    with pytest.raises(DefinitionError, match="SubagentLimits"):
        make_agent(["x"], subagents=[echo()], subagent_limits={"turns": 3}).enqueue("go")


# Speaking to one that works.


class Holding:
    """A diver whose tool waits until a message for it has come; `script` answers afterwards."""

    def __init__(self, script: Callable[[ModelRequest], Reply | str]) -> None:
        self.gate = gate = Gate()

        @tool(idempotent=True)
        def hold() -> str:
            """Wait."""
            gate.enter()
            return "held"

        def dive(request: ModelRequest) -> Reply | str:
            turn = sum(message.role == "assistant" for message in request.messages)
            return calls("hold") if turn == 0 else script(request)

        self.agent = make_agent(dive, hold)

    def _lead(self, request: ModelRequest) -> Reply | str:
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn == 1:
            self.gate.wait_for(1)
        plan = [calls(spawn("a", mode="async")), calls(interject("a", "faster!")), calls(WAIT)]
        return [*plan, "end"][turn]

    def ask(self) -> Run:
        """Have a captain speak to it while its tool works."""
        run = captain(self._lead, self.agent).enqueue("go")
        self.gate.wait_for(1)
        client, key = runtime().client, runtime().journal.place(run.id)[0] + ":b"
        until(lambda: client.hexists(key, "0.9999.0"), "a message for the diver")
        self.gate.open()
        return run.wait(WAIT_S)


def test_what_is_said_to_a_working_subagent_is_answered_with_its_text() -> None:
    diver = Holding(lambda request: "I hurry.")
    run = diver.ask()
    _, answer, waited = told(run)
    answer.pop("progress", None)
    assert answer == {
        "status": "interjection_delivered",
        "subagent_id": path("a"),
        "kind": "diver",
        "turn": 1,
        "response": "I hurry.",
        "response_disposition": "text_only",
    }
    assert waited["subagents"][0]["response"] == "I hurry."
    assert conversation(diver.agent)[-1] == ("user", FRAME + "faster!")


def test_a_subagent_may_answer_and_go_on() -> None:
    def dive(request: ModelRequest) -> Reply | str:
        if request.messages[-1].role == "user":
            return Reply(text="One moment.", tool_calls=[Call("hold")])
        return "Done."

    diver = Holding(dive)
    _, answer, waited = told(diver.ask())
    assert (answer["response"], answer["response_disposition"], answer["status"]) == (
        "One moment.",
        "text_with_tool_calls",
        "interjection_delivered",
    )
    assert waited["subagents"][0]["response"] == "Done."


def test_one_that_ends_before_it_answers_is_an_error_and_no_hang() -> None:
    def dive(request: ModelRequest) -> Reply | str:
        raise InvalidRequestError("no")

    diver = Holding(dive)
    run = diver.ask()
    _, (status, text), _ = results(run)
    assert (status, text) == ("error", f"{path('a')} ended before it could answer.")
    assert run.response == "end"


# Where they end.


class Endless:
    """A diver that speaks until it is cut."""

    def __init__(self) -> None:
        self.is_cut, self.speaks = threading.Event(), threading.Event()
        self.agent = make_agent(lambda request: self.endless())
        self.agent.brain.stream = self._watched(self.agent.brain.stream)

    @staticmethod
    def endless() -> Reply:
        return Reply(text="deeper " * 2_000, chunk_chars=7, chunk_delay_s=0.02)

    def _watched(self, stream: Any) -> Any:
        def watched(*args: Any) -> Iterator[Any]:
            self.speaks.set()
            try:
                yield from stream(*args)
            finally:
                self.is_cut.set()

        return watched

    def left_by(self, text: str) -> type[Any]:
        """Give a captain that starts the diver, and says a text while that speaks."""

        def lead(request: ModelRequest) -> Reply | str:
            if request.messages[-1].role == "user":
                return calls(spawn("a", mode="async"))
            assert self.speaks.wait(WAIT_S)
            return text

        return captain(lead, self.agent)


def test_an_agent_that_finishes_ends_those_that_still_work() -> None:
    diver = Endless()
    run = diver.left_by("I do not wait.").ask("go")
    assert run.response == "I do not wait."
    assert diver.is_cut.wait(5), "the model call went on"
    told_last = happenings(run)[-1]
    assert (told_last["event"], told_last["status"]) == ("cancelled", "cancelled")
    assert told_last["conversation_id"] == happenings(run)[0]["conversation_id"]
    before = run.record.events
    assert run.refresh().record.events == before, "nothing is told after the end"
    assert terminals(run) == ["run_stop"]
    assert not run.record.tasks
    client, (key, _) = runtime().client, runtime().journal.place(run.id)
    assert all(client.ttl(name) > 0 for name in client.scan_iter(f"{key}*"))


def test_a_workflows_agent_that_finishes_ends_its_own() -> None:
    diver, gate = Endless(), Gate()
    boss = diver.left_by("quick")

    class OuterWorkflow(Workflow):
        def perform(self) -> Any:
            said = self.invoke(boss).output
            self.step(lambda: gate.enter())
            return said

    run = OuterWorkflow.enqueue("go")
    gate.wait_for(1)
    assert diver.is_cut.wait(5)
    assert run.refresh().record.ends["0.0.9999.0"][2] == "cancelled"
    gate.open()
    assert happenings(run)[-1]["event"] == "cancelled"
    assert run.wait(WAIT_S).response == "quick", run.error


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_cancel_reaches_them(mode: str) -> None:
    diver = Endless()
    run = captain([calls(spawn("a", mode=mode)), calls(WAIT), "end"], diver.agent).enqueue("go")
    next(event for event in run.events() if event.text)
    run.cancel("enough").wait(10)
    assert (run.outcome, terminals(run)) == ("cancelled", ["run_cancel"])
    assert diver.is_cut.wait(5)
    assert not run.record.tasks


def test_a_deadline_reaches_them() -> None:
    diver = Endless()
    boss = captain([calls(spawn("a")), "end"], diver.agent)
    run = boss.ask("go", deadline_at=timedelta(seconds=1))
    assert (run.outcome, terminals(run)) == ("partial", ["run_partial"])
    assert diver.is_cut.wait(5)
    assert run.response == "", "what a subagent says is not the agent's answer"


# Outlasting a run.


def remembering(**attributes: Any) -> tuple[type[Any], type[Any]]:
    """Give a captain that does what it is told, and its diver."""

    def lead(request: ModelRequest) -> Reply | str:
        if request.messages[-1].role != "user":
            return "ok"
        verb, *rest = request.messages[-1].text.split()
        if verb == "list":
            return calls(("list_subagents", {}))
        return calls(*((spawn if verb == "spawn" else send)(name, f"hi {name}") for name in rest))

    diver = make_agent(dive_or_fail, subagents=attributes.pop("below", ()))
    persist = attributes.pop("persist", True)
    kinds = [Subagent(diver, kind="diver", persist=persist)]
    return make_agent(lead, subagents=kinds, **attributes), diver


def dive_or_fail(request: ModelRequest) -> Reply | str:
    text = request.messages[-1].text
    if "bad" in text:
        raise InvalidRequestError("no")
    return "re: " + text


def spoken(name: str) -> list[tuple[str, str]]:
    return [("user", f"hi {name}"), ("assistant", f"re: hi {name}")]


def last(run: Run) -> Any:
    return told(run)[-1]


def test_a_later_run_of_the_session_goes_on_with_a_conversation() -> None:
    boss, diver = remembering()
    boss.ask("spawn a b", session_id="s-sub")
    listed = last(boss.ask("list", session_id="s-sub"))
    assert len(diver.brain.requests) == 2, "listing restores nothing"
    assert {item["subagent_id"]: item["status"] for item in listed["subagents"]} == {
        path("a"): "idle",
        path("b"): "idle",
    }
    run = boss.ask("send a", session_id="s-sub")
    assert (last(run)["turn"], last(run)["response"]) == (2, "re: hi a")
    assert conversation(diver) == [*spoken("a"), ("user", "hi a")]
    assert {item["resumed"] for item in happenings(run) if item["event"] == "turn_started"} == {
        True
    }
    assert last(boss.ask("spawn a", session_id="s-sub"))["status"] == "invalid_request"
    boss.ask("send a", session_id="s-sub")
    assert conversation(diver) == [*spoken("a"), *spoken("a"), ("user", "hi a")]
    assert starts_of(run) == ["send a", "hi a"]


def test_others_see_nothing_of_it() -> None:
    boss, _ = remembering()
    boss.ask("spawn a", session_id="s-sub-own", actor_id="ann")
    for who in ({"session_id": "s-sub-own", "actor_id": "bob"}, {"session_id": "s-sub-own"},
                {"session_id": "s-sub-else", "actor_id": "ann"}, {}):  # fmt: skip
        assert last(boss.ask("list", **who))["subagents"] == []
    assert len(last(boss.ask("list", session_id="s-sub-own", actor_id="ann"))["subagents"]) == 1


def test_what_does_not_persist_ends_with_its_run() -> None:
    boss, _ = remembering(persist=False)
    boss.ask("spawn a", session_id="s-sub-not")
    assert last(boss.ask("list", session_id="s-sub-not"))["subagents"] == []


def test_failed_turns_are_not_kept() -> None:
    boss, diver = remembering()
    boss.ask("spawn bad", session_id="s-sub-bad")
    assert last(boss.ask("list", session_id="s-sub-bad"))["subagents"] == []
    boss.ask("spawn a", session_id="s-sub-bad")

    def fail(request: ModelRequest) -> str:
        raise InvalidRequestError("no")

    diver.brain._script, before = fail, diver.brain._script
    assert last(boss.ask("send a", session_id="s-sub-bad"))["status"] == "failed"
    diver.brain._script = before
    assert last(boss.ask("send a", session_id="s-sub-bad"))["turn"] == 2
    assert conversation(diver) == [*spoken("a"), ("user", "hi a")]


def test_the_newest_are_kept() -> None:
    boss, _ = remembering(subagent_limits=SubagentLimits(identities=2))
    boss.ask("spawn a b", session_id="s-sub-many")
    boss.ask("spawn c", session_id="s-sub-many")
    listed = last(boss.ask("list", session_id="s-sub-many"))
    names = [item["subagent_id"] for item in listed["subagents"]]
    assert names[0] == path("c")
    assert len(names) == 2
    client = runtime().client
    [session] = {key for key in run_keys() if key.endswith(":k") and client.hlen(key) == 2
                 and any(path("c") in fact for fact in client.hvals(key))}  # fmt: skip
    assert len(list(client.scan_iter(f"{session}:*"))) == 2
    assert all(client.ttl(key) > 0 for key in client.scan_iter(f"{session}*"))


def is_kept(run: Run, name: str) -> bool:
    """Say whether the run's session keeps a conversation of a subagent of that path."""
    client = runtime().client
    session = client.hget(runtime().journal.place(run.id)[0], "session")
    return any(f'"{name}"' in fact for fact in client.hvals(f"{session}:k"))


def test_nothing_stays_below_a_subagent_that_was_cancelled() -> None:
    def middle(request: ModelRequest) -> Reply:
        is_asked = request.messages[-1].role == "user"
        return calls(spawn("deep", "x")) if is_asked else Endless.endless()

    gate = Gate()

    @tool(idempotent=True)
    def hold() -> str:
        """Wait."""
        gate.enter()
        return "0"

    plan: list[Any] = [calls(spawn("a", mode="async")), calls("hold"), "end"]
    boss = captain(plan, captain(middle, echo()), tools=[hold])
    run = boss.enqueue("go", session_id="s-sub-orphan")
    until(lambda: is_kept(run, path("a", "deep")), "the deep one's conversation")
    gate.open()
    run.wait(WAIT_S)
    plan[:] = [calls(("list_subagents", {})), "end"]
    assert last(boss.ask("go", session_id="s-sub-orphan"))["subagents"] == []
    assert not is_kept(run, path("a", "deep"))


def test_a_kind_that_is_declared_no_more_is_an_answer() -> None:
    boss, diver = remembering()
    boss.ask("spawn a", session_id="s-sub-kind")
    other = make_agent(boss.brain._script, subagents=[Subagent(diver, kind="pilot")])
    told_of = last(other.ask("send a", session_id="s-sub-kind"))
    assert (told_of["status"], "not available" in told_of["error"]) == ("failed", True)


def test_agents_beside_each_other_have_their_own_subagents_of_one_name() -> None:
    one, two = echo(), echo()
    first = captain([calls(spawn("a", "one")), calls(send("a", "more")), "first"], one)
    second = captain([calls(spawn("a", "two")), calls(send("a", "more")), "second"], two)

    class BothWorkflow(Workflow):
        def perform(self) -> Any:
            return self.parallel(self.invoke(first), self.invoke(second))

    for _ in range(2):
        run = BothWorkflow.ask("go", session_id="s-sub-both")
        assert run.is_completed, run.error
        assert conversation(one) == [("user", "one"), ("assistant", "re: one"), ("user", "more")]
        assert conversation(two) == [("user", "two"), ("assistant", "re: two"), ("user", "more")]


# Tools whose context is preserved.


def test_a_tool_with_context_goes_on_with_its_conversation_in_order() -> None:
    diver = echo()
    notes = diver.as_tool(name="notes", preserve_context=True)
    a, b, c, d = (("notes", {"input": text}) for text in "abcd")
    boss = make_agent([calls(a), calls(b), calls(c, d), "end"], notes)
    run = boss.ask("go")
    assert results(run) == [("success", f"re: {text}") for text in "abcd"]
    said = conversation(diver)
    assert said[:4] == [
        ("user", "a"),
        ("assistant", "re: a"),
        ("user", "b"),
        ("assistant", "re: b"),
    ]
    # Those of one answer come in any order, but one after the other.
    assert {said[4][1], said[6][1]} == {"c", "d"}
    assert said[5] == ("assistant", f"re: {said[4][1]}")
    assert happenings(run) == []
    again = make_agent([calls(("notes", {"input": "d"})), "end"], notes)
    again.ask("go")
    assert conversation(diver) == [("user", "d")], "it lasts for a run"


def test_a_failed_call_of_a_tool_with_context_is_left_out() -> None:
    diver = make_agent(dive_or_fail)
    boss = make_agent(
        [calls(("notes", {"input": "a"})), calls(("notes", {"input": "bad"})),
         calls(("notes", {"input": "c"})), "end"],
        diver.as_tool(name="notes", preserve_context=True),
    )  # fmt: skip
    assert results(boss.ask("go"))[1] == ("error", "Tool failed (InvalidRequestError)")
    assert conversation(diver) == [("user", "a"), ("assistant", "re: a"), ("user", "c")]


def test_a_workflow_as_a_tool_with_context_gets_its_history() -> None:
    class CountingWorkflow(Workflow):
        def perform(self) -> Any:
            return {"seen": [message.text for message in self.history], "now": self.input.text}

    boss = make_agent(
        [calls(("flow", {"input": "a"})), calls(("flow", {"input": "b"})), "end"],
        CountingWorkflow.as_tool(name="flow", preserve_context=True),
    )
    first, second = (json.loads(text) for _, text in results(boss.ask("go")))
    assert first == {"seen": [], "now": "a"}
    assert second == {"seen": ["a", '{"seen":[],"now":"a"}'], "now": "b"}


def test_subagents_of_a_tool_with_context_are_its_own() -> None:
    below = echo()
    middle = captain([calls(spawn("a", "mine")), "ok"], below)
    boss = captain(
        [calls(spawn("a", "yours"), ("notes", {"input": "x"})), "end"], echo(),
        tools=[middle.as_tool(name="notes", preserve_context=True)],
    )  # fmt: skip
    run = boss.ask("go")
    assert [status for status, _ in results(run)] == ["success", "success"]
    assert conversation(below) == [("user", "mine")]


# Together with the rest.


def test_a_person_allows_a_subagents_tool() -> None:
    done: list[str] = []

    @tool(requires_approval=True)
    def dredge(place: str) -> str:
        """Dig."""
        done.append(place)
        return f"dug at {place}"

    diver = make_agent([calls(("dredge", {"place": "here"})), "dug"], dredge)
    run = captain([calls(spawn("a")), "end"], diver).enqueue("go")
    [item] = until(lambda: run.refresh().pending, "a question")
    assert (item.arguments, done) == ({"place": "here"}, [])
    run.approve(item.id)
    assert run.wait(WAIT_S).response == "end"
    assert done == ["here"]
    assert last(run)["response"] == "dug"


def test_a_swarms_member_a_graphs_node_and_a_workflows_child_have_subagents() -> None:
    diver = echo()
    boss = captain([calls(spawn("a"), usage=USAGE), Reply(text="both", usage=USAGE)], diver)

    class CrewSwarm(Swarm):
        members = (boss, Member(echo()))
        start = boss

    class ShipGraph(Graph):
        nodes = {"crew": CrewSwarm}  # noqa: RUF012
        start = finish = "crew"

    class FleetWorkflow(Workflow):
        def perform(self) -> Any:
            return self.invoke(ShipGraph).output

    run = FleetWorkflow.ask("go")
    assert run.response == "both", run.error
    assert [item["event"] for item in happenings(run)][-1] == "turn_finished"
    assert run.result is not None
    # Each step's tokens are those of all below it.
    assert {step.usage.output for step in run.result.steps} == {6}
    stops = [event.data["usage"]["output"] for event in run.events()
             if event.type == "assembly_step_stop"]  # fmt: skip
    assert stops == [6] * len(run.result.steps)


def test_an_agent_whose_turns_are_used_up_fails_with_all_of_them() -> None:
    diver = Endless()

    @tool
    def watch() -> str:
        """Wait until the diver speaks."""
        return str(diver.speaks.wait(WAIT_S))

    plan = [calls(spawn("a", mode="async"), "watch"), "never"]
    boss = captain(plan, diver.agent, tools=[watch], limits=Limits(max_turns=1))
    run = boss.ask("go")
    assert (run.outcome, diver.is_cut.wait(5)) == ("failed", True)
    assert terminals(run) == ["run_error"]


@pytest.mark.parametrize("inside", [False, True])
def test_a_coordinator_that_cannot_go_on_fails_its_agent_and_hangs_nothing(inside: bool) -> None:
    gate = Gate()
    diver = make_agent(lambda request: gate.enter() or "late")
    boss = captain([calls(spawn("a")), "end"], diver)

    class CarefulWorkflow(Workflow):
        def perform(self) -> Any:
            try:
                return self.invoke(boss).output
            except Exception as error:
                return f"caught {type(error).__name__}"

    run = (CarefulWorkflow if inside else boss).enqueue("go")
    gate.wait_for(1)
    client, (key, _) = runtime().client, runtime().journal.place(run.id)
    coordinator = "0.0.9999" if inside else "0.9999"
    client.hset(f"{key}:b", coordinator, json.dumps([json.dumps({"q": {"do": "dance"}})]))
    gate.open()
    run.wait(WAIT_S)
    if inside:
        assert run.response.startswith("caught"), run.error
    else:
        assert run.is_failed
    assert len(terminals(run)) == 1
    assert not run.record.tasks
