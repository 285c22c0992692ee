"""Messages to an agent at work: when it gets them, how it answers, who of several is meant."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from littleghost import Edge, Graph, Limits, Member, Message, Run, Swarm, Workflow, tool
from littleghost.engine.interjection import FRAME
from littleghost.errors import (
    InterjectionError,
    InvocationError,
    RunNotFoundError,
    RunOverError,
    WaitTimeoutError,
)
from littleghost.journal import inbox
from littleghost.messages import Image, Text, ToolUse
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply
from littleghost.reach import Interjection
from littleghost.wiring import Runtime
from tests.integration.scripted import (
    Gate,
    calls,
    is_valid_for_providers,
    kinds,
    last_request,
    make_agent,
    results,
    terminals,
    texts,
    until,
)

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]
_numbers = itertools.count()


def heard(request: ModelRequest) -> str:
    """Give the newest user text, without the frame."""
    users = [message.text for message in request.messages if message.role == "user"]
    return users[-1].removeprefix(FRAME)


def is_answered(request: ModelRequest) -> bool:
    """Whether the newest user message has an answer already."""
    return [m.role for m in request.messages if m.role in ("user", "assistant")][-1] != "user"


class Busy:
    """An agent whose call of `work` waits for a gate; it answers each message by `re: message`."""

    def __init__(self, **attributes: Any) -> None:
        self.gate = Gate()
        gate = self.gate

        @tool(idempotent=True)
        def work() -> str:
            """Work."""
            gate.enter()
            return "worked"

        self.agent = make_agent(self._script, work, **attributes)

    def _script(self, request: ModelRequest) -> Reply:
        said = heard(request)
        if said.endswith("Go") and not is_answered(request):
            return calls("work")
        return Reply(text="done" if said.endswith("Go") else f"re: {said}")

    def start(self, **fields: Any) -> Run:
        run = self.agent.enqueue("Go", **fields)
        self.gate.wait_for(1)
        return run


def delivered(run: Run) -> list[Mapping[str, Any]]:
    return [
        event.inner["data"]
        for event in run.events()
        if event.inner_type == "agent_interjection_delivered"
    ]


def requests(agent: Any) -> list[list[tuple[str, str]]]:
    """Give what the model was asked each time, without the system prompt."""
    return [
        [(role, text) for role, text in texts(request.messages) if role != "system"]
        for request in agent.brain.requests
    ]


# Delivery and answer.


def test_the_agent_gets_it_before_its_next_request_and_answers() -> None:
    busy = Busy()
    run = busy.start()
    sent = run.interject("What are you doing?", id="m1")
    assert (sent.run, sent.id, sent.participant) == (run, "m1", "0")
    busy.gate.open()
    answer = sent.wait(20)

    assert (answer.text, answer.tool_calls) == ("re: What are you doing?", ())
    assert answer.interjection_ids == ("m1",)
    assert run.wait(20).response == "re: What are you doing?"
    assert requests(busy.agent)[-1] == [
        ("user", "Go"),
        ("assistant", ""),
        ("tool", ""),
        ("user", FRAME + "What are you doing?"),
    ]
    assert is_valid_for_providers(last_request(busy.agent))
    assert run.result is not None
    assert texts(run.result.messages)[-2:] == [
        ("user", "What are you doing?"),
        ("assistant", "re: What are you doing?"),
    ], "the conversation holds what was said, without the frame"
    assert delivered(run) == [{"interjection_ids": ["m1"], "batch_key": None}]
    order = kinds(run)
    assert order.index("agent_interjection_delivered") < len(order) - 1 - order[::-1].index(
        "model_start"
    )
    assert terminals(run) == ["run_stop"]


def test_an_answer_may_call_tools_and_the_work_goes_on() -> None:
    busy = Busy()

    def script(request: ModelRequest) -> Reply:
        if heard(request) == "Go":
            return busy._script(request)
        if not is_answered(request):
            return Reply(text="Yes, faster.", tool_calls=[Call("work", {})])
        return Reply(text="done, faster")

    busy.agent.brain._script = script
    run = busy.start()
    sent = run.interject("Faster!")
    busy.gate.open()
    answer = sent.wait(20)
    assert answer.text == "Yes, faster."
    assert [use.name for use in answer.tool_calls] == ["work"]
    assert isinstance(answer.tool_calls[0], ToolUse)
    assert run.wait(20).response == "done, faster"
    assert results(run) == [("success", "worked")] * 2


def test_a_late_one_makes_an_agent_that_is_just_finishing_take_another_turn() -> None:
    """It comes while the last answer streams."""
    runs: list[Run] = []
    sent: list[Interjection] = []
    started = Gate()

    def script(request: ModelRequest) -> Reply:
        if heard(request) == "Go":
            started.enter()
            sent.append(runs[0].interject("One thing more"))
            return Reply(text="This is my last answer.", chunk_chars=4)
        return Reply(text="And that.")

    agent = make_agent(script)
    runs.append(agent.enqueue("Go"))
    started.open()
    run = runs[0].wait(20)
    assert run.response == "And that."
    assert sent[0].wait(5).text == "And that."
    assert run.result is not None
    assert texts(run.result.messages) == [
        ("user", "Go"),
        ("assistant", "This is my last answer."),
        ("user", "One thing more"),
        ("assistant", "And that."),
    ]
    assert kinds(run).count("model_stop") == 2
    assert kinds(run).count("invocation_stop") == 1
    assert terminals(run) == ["run_stop"]


def test_one_that_comes_when_no_turn_is_left_does_not_harm_the_run() -> None:
    runs: list[Run] = []
    sent: list[Interjection] = []
    started = Gate()

    def script(request: ModelRequest) -> Reply:
        started.enter()
        sent.append(runs[0].interject("One thing more"))
        return Reply(text="My only answer.")

    runs.append(make_agent(script, limits=Limits(max_turns=1)).enqueue("Go"))
    started.open()
    assert runs[0].wait(20).response == "My only answer.", runs[0].error
    with pytest.raises(RunOverError, match="ended without an answer"):
        sent[0].wait(5)
    assert not sent[0].withdraw()


def test_each_is_delivered_alone_unless_neighbours_share_a_batch_key() -> None:
    busy = Busy()
    run = busy.start()
    keys = {"a": None, "b": None, "c": "k", "d": "k", "e": "l", "f": "k"}
    sent = {text: run.interject(text, id=text, batch_key=key) for text, key in keys.items()}
    busy.gate.open()
    together = [("a",), ("b",), ("c", "d"), ("e",), ("f",)]
    for ids in together:
        for name in ids:
            assert sent[name].wait(20).interjection_ids == ids
            assert sent[name].wait(20).text == f"re: {ids[-1]}"
    run.wait(20)
    assert [tuple(item["interjection_ids"]) for item in delivered(run)] == together
    assert [item["batch_key"] for item in delivered(run)] == [None, None, "k", "l", "k"]
    pair = requests(busy.agent)[3][-2:]
    assert pair == [("user", FRAME + "c"), ("user", FRAME + "d")]


def test_the_frame_reaches_the_model_once_for_each_message() -> None:
    busy = Busy()
    run = busy.start()
    for text in ("a", "b"):
        run.interject(text)
    busy.gate.open()
    run.wait(20)
    for asked in requests(busy.agent):
        users = [text for role, text in asked if role == "user"]
        assert [text.count(FRAME) for text in users] == [0, 1, 1][: len(users)]


def test_pictures_and_json_are_messages_too() -> None:
    busy = Busy()
    run = busy.start()
    image = Image(b"\x89PNG", "image/png")
    sent = run.interject(Message("user", (Text("Look"), image), {"from": "ann"}))
    run.interject({"role": "user", "content": [{"type": "text", "text": "And this"}]})
    busy.gate.open()
    sent.wait(20)
    run.wait(20)
    assert run.result is not None
    shown = next(m for m in run.result.messages if m.text == "Look")
    assert shown.content[1] == image
    assert shown.metadata["from"] == "ann"


def test_the_answer_is_there_for_who_wants_no_agent_events() -> None:
    busy = Busy()
    run = busy.start(include_agent_events=False)
    sent = run.interject("Hello?")
    busy.gate.open()
    assert sent.wait(20).text == "re: Hello?"
    run.wait(20)
    assert "model_stop" not in kinds(run)


def test_it_can_be_awaited() -> None:
    busy = Busy()
    run = busy.start()
    sent = run.interject("Hello?")
    busy.gate.open()
    assert asyncio.run(sent.wait_async(20)).text == "re: Hello?"
    run.wait(20)


def test_nobody_waits_for_an_answer_inside_of_a_task() -> None:
    seen: list[str] = []

    @tool
    def ask_itself() -> str:
        """Ask."""
        from littleghost.errors import BlockingCallError

        sent = runs[0].interject("Are you there?")
        try:
            sent.wait(1)
        except BlockingCallError as error:
            seen.append(error.code)
        return "asked"

    runs: list[Run] = []
    gate = Gate()

    def script(request: ModelRequest) -> Reply:
        gate.enter()
        return calls("ask_itself") if not is_answered(request) else Reply(text="done")

    agent = make_agent(script, ask_itself)
    runs.append(agent.enqueue("Go"))
    gate.open()
    until(lambda: seen, "the tool was refused")
    runs[0].cancel().wait(20)
    assert set(seen) == {"blocking_call"}


# Receipts.


def test_the_same_id_is_one_message_and_never_another() -> None:
    busy = Busy()
    run = busy.start()
    first = run.interject("Hello", id="m1", batch_key="k")
    again = run.interject("Hello", id="m1", batch_key="k")
    assert (again.id, again.participant, again.after) == ("m1", "0", first.after)
    for text, key in (("Other", "k"), ("Hello", None)):
        with pytest.raises(InterjectionError, match="another message with the id 'm1'"):
            run.interject(text, id="m1", batch_key=key)
    busy.gate.open()
    assert again.wait(20).text == first.wait(20).text == "re: Hello"
    run.wait(20)
    assert len(delivered(run)) == 1
    # The receipt is the same when it is over, and so is its answer.
    assert run.interject("Hello", id="m1", batch_key="k").wait(5).text == "re: Hello"


def test_a_message_can_be_taken_back_until_the_agent_has_it() -> None:
    busy = Busy()
    run = busy.start()
    first, second, third = (run.interject(text) for text in ("a", "b", "c"))
    assert [second.withdraw(), second.withdraw()] == [True, False]
    busy.gate.open()
    first.wait(20)
    third.wait(20)
    run.wait(20)
    assert not first.withdraw()
    assert "b" not in [text for _, text in texts(run.result.messages)]  # type: ignore[union-attr]
    with pytest.raises(RunOverError, match="ended without an answer"):
        second.wait(5)


def test_a_wait_that_is_over_takes_the_message_back() -> None:
    busy = Busy()
    run = busy.start()
    sent = run.interject("Hurry")
    with pytest.raises(WaitTimeoutError, match="it was taken back"):
        sent.wait(0.05)
    assert not sent.withdraw()
    busy.gate.open()
    assert run.wait(20).response == "done"
    assert delivered(run) == []


def test_a_wait_that_is_over_leaves_what_the_agent_has() -> None:
    hold = Gate()
    busy = Busy()

    def script(request: ModelRequest) -> Reply:
        if heard(request) != "Go":
            hold.enter()
        return busy._script(request)

    busy.agent.brain._script = script
    run = busy.start()
    sent = run.interject("Hello")
    busy.gate.open()
    hold.wait_for(1)
    with pytest.raises(WaitTimeoutError, match="the agent has got it"):
        sent.wait(0.05)
    hold.open()
    assert sent.wait(20).text == "re: Hello"
    run.wait(20)


# What is refused.


@pytest.mark.parametrize(
    "message",
    [
        "",
        " \n",
        7,
        None,
        Message("assistant", (Text("x"),)),
        Message("user", (ToolUse("1", "x", {}),)),
        {"role": "system", "content": "x"},
        "x" * (8 * 1024 * 1024),
    ],
    ids=["empty", "blank", "number", "none", "assistant", "call", "system", "large"],
)
def test_a_message_that_is_none_is_refused(message: Any) -> None:
    busy = Busy()
    run = busy.start()
    with pytest.raises(InvocationError) as refused:
        run.interject(message)
    assert refused.value.field == "message"
    for fields in ({"id": ""}, {"id": "x" * 201}, {"batch_key": 7}):
        with pytest.raises(InvocationError):
            run.interject("x", **fields)  # type: ignore[arg-type]
    busy.gate.open()
    assert run.wait(20).response == "done"


def test_more_than_a_run_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "MAX_MESSAGES", 2)
    busy = Busy()
    run = busy.start()
    sent = [run.interject(text, batch_key="k") for text in ("a", "b")]
    with pytest.raises(InterjectionError, match="took 2 messages"):
        run.interject("c")
    busy.gate.open()
    sent[1].wait(20)
    run.wait(20)


def test_a_run_that_has_ended_takes_none() -> None:
    run = make_agent(["done"]).ask("Go")
    with pytest.raises(RunOverError, match="is completed"):
        run.interject("Hello")
    with pytest.raises(RunNotFoundError):
        Run("00-nobody").interject("Hello")


def test_a_run_that_ends_without_an_answer_says_so() -> None:
    busy = Busy()
    run = busy.start()
    sent = run.interject("Hello")
    run.cancel()
    busy.gate.open()
    run.wait(20)
    with pytest.raises(RunOverError, match="ended without an answer"):
        sent.wait(5)
    assert not sent.withdraw()


def test_nobody_forges_what_the_engine_goes_by() -> None:
    """A mark in metadata of the caller's own messages means nothing."""
    forged = {"interjection": {"id": "x", "reply": {"to": "0", "call": "0-c0.0"}}, "mine": 1}
    agent = make_agent(["done"])
    said = Message("user", (Text("Go"),), forged)
    run = agent.ask(said, history=[Message("user", (Text("Before"),), forged)])
    assert [text for role, text in requests(agent)[0] if role == "user"] == ["Before", "Go"]
    assert run.result is not None
    assert [dict(m.metadata) for m in run.result.messages[:2]] == [{"mine": 1}] * 2


# A session.


def test_later_runs_of_the_session_know_of_it() -> None:
    session = f"interjections-{next(_numbers)}"
    busy = Busy()
    run = busy.start(session_id=session)
    run.interject("By the way")
    busy.gate.open()
    run.wait(20)
    later = make_agent(["yes"])
    later.ask("Do you remember?", session_id=session)
    assert requests(later)[0][-3:] == [
        ("user", FRAME + "By the way"),
        ("assistant", "re: By the way"),
        ("user", "Do you remember?"),
    ]
    assert is_valid_for_providers(last_request(later))


# Who is meant.


def flow(perform: Callable[[Any], Any]) -> type[Any]:
    body = {"perform": perform, "__module__": __name__}
    return type(f"Interjections{next(_numbers)}Workflow", (Workflow,), body)


def test_of_several_at_work_nobody_is_meant() -> None:
    one, two = Busy(), Busy()

    def perform(self: Workflow) -> Any:
        said = self.parallel(self.invoke(one.agent), self.invoke(two.agent))
        self.wait_for("go")
        return said

    run = flow(perform).enqueue("Go")
    for busy in (one, two):
        busy.gate.wait_for(1)
    with pytest.raises(InterjectionError, match="2 agents are at work"):
        run.interject("Hello")
    one.gate.open()
    sent = until(lambda: try_to(run, "Hello"), "only one is at work")
    two.gate.open()
    assert sent.wait(20).text == "re: Hello"
    until(lambda: run.status == "waiting", "it waits for a signal")
    with pytest.raises(InterjectionError, match="0 agents are at work"):
        run.interject("Hello")
    run.signal("go")
    assert run.wait(20).result is not None
    assert run.result.output == ["done", "re: Hello"]  # type: ignore[union-attr]


def try_to(run: Run, text: str) -> Interjection | None:
    try:
        return run.interject(text)
    except InterjectionError:
        return None


def test_an_agent_that_works_for_another_as_its_tool_is_not_meant() -> None:
    busy = Busy()
    uses = calls(("helper", {"input": "Go"}))

    def script(request: ModelRequest) -> Reply:
        if heard(request) != "Go":
            return Reply(text="re: " + heard(request))
        return Reply(text="done") if is_answered(request) else uses

    boss = make_agent(script, busy.agent.as_tool(name="helper", description="Helps."))
    run = boss.enqueue("Go")
    busy.gate.wait_for(1)
    sent = run.interject("Hello")
    assert sent.participant == "0"
    busy.gate.open()
    assert sent.wait(20).text == "re: Hello"
    assert results(run.wait(20)) == [("success", "done")]


def test_it_is_for_the_active_member_of_a_swarm() -> None:
    busy = Busy(assembly_id="second")
    handoff = calls(("handoff_to_agent", {"agent_id": "second", "message": "Go"}))
    first = make_agent([handoff], assembly_id="first")
    body = {"members": [first, Member(busy.agent)], "start": first, "__module__": __name__}
    swarm: Any = type(f"Interjections{next(_numbers)}Swarm", (Swarm,), body)
    run = swarm.enqueue("Start")
    busy.gate.wait_for(1)
    sent = run.interject("Hello")
    assert run.refresh().record.participants[sent.participant]["n"] == "second"
    busy.gate.open()
    assert sent.wait(20).text == "re: Hello"
    assert run.wait(20).response == "re: Hello"


def test_a_member_that_is_handing_off_answers_first() -> None:
    """The message came while its handoff streamed."""
    runs: list[Run] = []
    sent: list[Interjection] = []
    gate = Gate()
    handoff = calls(("handoff_to_agent", {"agent_id": "second", "message": "Yours"}))

    def script(request: ModelRequest) -> Reply:
        if not sent:
            gate.enter()
            sent.append(runs[0].interject("Wait"))
            return handoff
        return (
            handoff if is_answered(request) else Reply(text="Yes?", tool_calls=handoff.tool_calls)
        )

    first = make_agent(script, assembly_id="first")
    second = make_agent(["mine now"], assembly_id="second")
    body = {"members": [first, second], "start": first, "__module__": __name__}
    swarm: Any = type(f"Interjections{next(_numbers)}Swarm", (Swarm,), body)
    runs.append(swarm.enqueue("Start"))
    gate.open()
    run = runs[0].wait(20)
    assert run.response == "mine now", run.error
    assert sent[0].wait(5).text == "Yes?"
    refused = [text for role, text in requests(first)[1] if role == "user"]
    assert refused[-1] == FRAME + "Wait"
    assert is_valid_for_providers(last_request(first))


def test_it_is_for_the_active_node_of_a_graph() -> None:
    busy = Busy(assembly_id="second")
    body = {
        "nodes": {"one": make_agent(["Go"], assembly_id="first"), "two": busy.agent},
        "start": "one",
        "edges": [Edge("one", "two", input=lambda state: state.result("one").text)],
        "finish": "two",
        "__module__": __name__,
    }
    graph: Any = type(f"Interjections{next(_numbers)}Graph", (Graph,), body)
    run = graph.enqueue("Start")
    busy.gate.wait_for(1)
    sent = run.interject("Hello")
    assert run.refresh().record.participants[sent.participant]["n"] == "second"
    busy.gate.open()
    assert sent.wait(20).text == "re: Hello"
    assert run.wait(20).response == "re: Hello"


def test_a_turn_whose_worker_died_gets_the_same_messages_again(embedded: Runtime) -> None:
    busy = Busy()
    first, released = [True], list[bool]()

    def script(request: ModelRequest) -> Reply:
        # Another thread takes the turn as soon as it is released.
        if heard(request) == "a" and first and first.pop():
            journal = embedded.journal
            run.interject("b")
            released.append(journal.release(run.id, "0-t1", journal.worker_id, lost=True))
        return busy._script(request)

    busy.agent.brain._script = script
    run = busy.start()
    sent = run.interject("a")
    busy.gate.open()
    assert sent.wait(20).text == "re: a"
    run.wait(20)
    assert released == [True]
    assert [len(item["interjection_ids"]) for item in delivered(run)] == [1, 1]
    assert run.response == "re: b"
