"""What a swarm does next, as tables: no I/O, no clock."""

from __future__ import annotations

import json
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, cast

import pytest

from littleghost import Agent, Member, Swarm
from littleghost.engine import commands as c
from littleghost.engine.decide.swarm import decide
from littleghost.engine.ports import Collaborators, Lease, RunMemory
from littleghost.errors import (
    AuthenticationError,
    InvalidRequestError,
    LittleGhostError,
    OverloadedError,
)
from littleghost.failure import Failure
from littleghost.messages import Message, assistant, user

ENV = cast("Collaborators", SimpleNamespace(queue=lambda kind, lane: f"{kind}{lane}"))


class FrontAgent(Agent):
    description = "Listens."


class BackAgent(Agent):
    pass


class LastAgent(Agent):
    pass


class DeskSwarm(Swarm):
    members = (
        FrontAgent,
        Member(BackAgent, history=True, context=True),
        Member(
            LastAgent, timeout_s=10, retries=1, retry_on=AuthenticationError, retry_delay_s=2
        ),
    )  # fmt: skip
    start = FrontAgent
    handoffs = {  # noqa: RUF012
        "front": ["back", "last"],
        "back": ["front", "last"],
    }
    max_steps = 4
    max_handoff_repeats = 2


class Play:
    """A swarm's participant whose commands are carried out, as the journal would."""

    def __init__(
        self, swarm: type[Swarm] = DeskSwarm, participant: str = "0", **header: Any
    ) -> None:
        self.participant = participant
        self.swarm = swarm
        self.records: list[Any] = [user("hi"), assistant("hello"), user("Help me.")]
        self.state: Any = {}
        self.now_ms = 1_000_000
        self.header = {"n": swarm.id(), **header}
        self.said: list[c.Command] = []
        self.memory = RunMemory(
            created="1",
            invocation={
                "message": user("Help me.").to_json(),
                "run_id": "r",
                "session_id": "r",
                "invocation_id": "r",
                "context": {"plan": "gold"},
            },
        )

    def go(self) -> Play:
        """Decide once."""
        self.memory.lists[self.participant] = list(self.records)
        # What the decision does not look at stays None.
        values: dict[str, Any] = dict.fromkeys(field.name for field in fields(Lease))
        values |= {
            "run_id": "r",
            "participant": self.participant,
            "participant_kind": "swarm",
            "root_assembly": "",
            "lane": "",
            "state": self.state,
            "memory": self.memory,
            "now_ms": self.now_ms,
            "header": self.header,
        }
        lease = Lease(**values)
        self.said = decide(lease, self.swarm, ENV)
        for item in self.of(c.SetState):
            self.state = json.loads(json.dumps(item.state))
        return self

    def child(self, **record: Any) -> Play:
        """Let the newest child end, then decide."""
        self.records.append({"p": self.state["pids"][-1], "b": 1, "e": 2, **record})
        return self.go()

    def hands(self, to: Any, message: Any = "please", context: Any = None) -> Play:
        payload = {"to": to, "message": message, "context": context}
        return self.child(r={"stop_reason": "assembly_transition", "handoff": payload})

    def says(self, text: str) -> Play:
        return self.child(r={"stop_reason": "stop", "output": text, "message": 1})

    def fails(self, error: BaseException) -> Play:
        return self.child(x=Failure.of(error).to_json())

    def of(self, kind: type) -> list[Any]:
        return [item for item in self.said if isinstance(item, kind)]

    @property
    def events(self) -> list[str]:
        return [item.type for item in self.of(c.Emit)]

    @property
    def error(self) -> str:
        [failed] = self.of(c.Fail)
        return failed.error["code"]

    @property
    def started(self) -> c.ParticipantSpec:
        """The participant that was started."""
        [spec] = [item for start in self.of(c.Start) for item in start.participants]
        return spec

    def texts(self) -> list[str]:
        records = map(json.loads, self.started.records)
        return [Message.from_json(item).text for item in records]


def test_the_start_member_gets_the_message_and_nothing_else() -> None:
    play = Play(set={"seed": 1}).go()
    spec = play.started
    assert (spec.id, spec.label, spec.parent, spec.settings) == ("0.0", "front", "0", {"seed": 1})
    assert play.texts() == ["Help me."]
    assert (spec.context, dict(spec.working)) == ({}, {})
    assert spec.grants == {
        "handoff": [{"id": "back", "description": ""}, {"id": "last", "description": ""}]
    }
    assert play.events == ["assembly_step_start", "invocation_start"]
    [join] = [join for start in play.of(c.Start) for join in start.joins]
    assert (join.members, join.then) == (("0.0",), "0-a")


def test_nothing_happens_while_the_member_works() -> None:
    assert Play().go().go().said == []


def test_a_handoff_starts_the_next_member() -> None:
    play = Play().go().hands("back", "Go on.", {"n": 1})
    assert play.events == [
        "assembly_step_stop",
        "assembly_transition",
        "assembly_step_start",
        "invocation_start",
    ]
    assert play.of(c.Emit)[1].data == {
        "assembly_id": "desk",
        "assembly_kind": "swarm",
        "step": 1,
        "from": "front",
        "to": "back",
    }
    assert play.texts() == ["hi", "hello", 'Handoff from front:\nGo on.\n\nContext:\n{"n":1}']
    assert play.started.context == {"plan": "gold"}
    assert play.started.step is not None
    assert play.started.step["predecessors"] == ["0.0"]


def test_a_member_without_targets_gets_no_tool_and_ends_the_swarm() -> None:
    play = Play().go().hands("last")
    assert play.started.grants is None
    assert play.texts() == ["Handoff from front:\nplease"]
    play.says("Done.")
    assert play.events == ["assembly_step_stop"]
    [complete], [text], [said] = play.of(c.Complete), play.of(c.SetText), play.of(c.Append)
    assert complete.result == {
        "stop_reason": "stop",
        "participant": "0",
        "message": 5,
        "output": "Done.",
    }
    assert Message.from_json(json.loads(complete.say)).text == text.text == "Done."
    assert said.records == (complete.say,)
    assert said.values == (assistant("Done."),)


def test_each_visit_is_a_new_participant() -> None:
    play = Play().go().hands("back").hands("front")
    assert (play.started.id, play.texts()) == ("0.2", ["Handoff from back:\nplease"])


@pytest.mark.parametrize(("steps", "code"), [(3, ""), (4, "assembly_limit")])
def test_no_member_starts_beyond_the_limit(steps: int, code: str) -> None:
    class OtherSwarm(DeskSwarm):
        max_handoff_repeats = 20

    play = Play(OtherSwarm).go()
    for number in range(steps):
        play.hands(("back", "front")[number % 2])
    if code:
        assert play.error == code
        assert play.events == ["assembly_step_stop"]
        assert not play.of(c.Start)
    else:
        assert play.state["steps"] == 4


def test_a_pair_that_repeats_too_often_is_a_loop() -> None:
    class LongSwarm(DeskSwarm):
        max_steps = 20

    play = Play(LongSwarm).go()
    for to in ("back", "front", "back", "front"):
        assert play.hands(to).of(c.Start)
    play.hands("back")
    assert play.error == "assembly_limit"
    assert play.events == ["assembly_step_stop", "assembly_handoff_loop"]
    assert play.of(c.Emit)[1].data["count"] == 3


@pytest.mark.parametrize(
    ("handoff", "code"),
    [
        (("nobody",), "assembly_routing"),
        (("front",), "assembly_routing"),
        ((None,), "protocol"),
        (("back", None), "protocol"),
        (("back", "x", "context"), "protocol"),
    ],
)
def test_a_handoff_that_cannot_be_followed_ends_it(handoff: tuple[Any, ...], code: str) -> None:
    play = Play().go().hands(*handoff)
    assert play.error == code
    assert play.events == ["assembly_step_stop"]
    assert not play.of(c.Start)


def test_a_transition_without_a_handoff_ends_it() -> None:
    assert Play().go().child(r={"stop_reason": "assembly_transition"}).error == "protocol"


def test_a_member_that_may_not_hand_off_is_not_followed() -> None:
    assert Play().go().hands("last").hands("front").error == "assembly_routing"


def test_a_member_that_is_gone_from_the_definition_ends_it() -> None:
    play = Play().go()
    play.state["active"] = "gone"
    assert play.says("x").error == "assembly_routing"


def test_a_failed_attempt_is_tried_again_with_the_same_input() -> None:
    play = Play().go().hands("last", "Do it.")
    assert [item.delay_s for item in play.of(c.Wake)] == [10]
    play.fails(AuthenticationError("no"))
    assert play.events == [
        "assembly_step_error",
        "assembly_step_retry",
        "assembly_step_start",
        "invocation_start",
    ]
    assert play.of(c.Emit)[1].data == {
        "step_id": "0.1",
        "participant": "last",
        "attempt": 1,
        "error_type": "AuthenticationError",
        "delay": 2,
    }
    assert (play.started.id, play.texts()) == ("0.2", ["Handoff from front:\nDo it."])
    [task] = [task for start in play.of(c.Start) for task in start.tasks]
    assert task.delay_s == 2
    # The attempt's time begins when it starts.
    assert [item.delay_s for item in play.of(c.Wake)] == [12]
    assert play.state["steps"] == 2
    assert play.says("Done.").of(c.Complete)


@pytest.mark.parametrize("error", [OverloadedError("busy"), InvalidRequestError("no")])
def test_the_failure_of_a_member_is_passed_on_as_it_is(error: Exception) -> None:
    play = Play().go().hands("last")
    told = {**Failure.of(error).to_json(), "later": 1}
    play.child(x=told)
    [failed] = play.of(c.Fail)
    assert failed.error == told
    assert play.events == ["assembly_step_error"]
    assert play.of(c.Emit)[0].data["terminal"] is True


def test_retries_come_to_an_end() -> None:
    play = Play().go().hands("last")
    assert play.fails(AuthenticationError("no")).of(c.Start)
    assert play.fails(AuthenticationError("no")).error == AuthenticationError.code


def test_time_that_is_up_cancels_the_attempt() -> None:
    play = Play().go().hands("last")
    play.now_ms += 4_000
    assert [item.delay_s for item in play.go().said] == [6]
    play.now_ms += 6_000
    play.go()
    assert play.error == "assembly_step_timeout"
    assert [item.ids for item in play.of(c.CancelParticipants)] == [("0.1",)]


def test_an_attempt_that_took_too_long_may_be_tried_again() -> None:
    class PatientSwarm(DeskSwarm):
        members = (FrontAgent, Member(BackAgent, timeout_s=1, retries=1, retry_on=LittleGhostError))
        handoffs = {}  # noqa: RUF012

    play = Play(PatientSwarm).go().hands("back")
    play.now_ms += 1_000
    play.go()
    assert [item.ids for item in play.of(c.CancelParticipants)] == [("0.1",)]
    assert (play.started.id, play.texts()) == ("0.2", ["Handoff from front:\nplease"])
    # What the first one still says does not count.
    play.records.append({"p": "0.1", "b": 1, "e": 2, "r": {"stop_reason": "stop", "output": "A"}})
    assert [type(item) for item in play.go().said] == [c.Wake]


def test_a_swarm_inside_of_another_passes_on_only_what_it_was_given() -> None:
    play = Play(participant="0.3", cx={"a": 1}, path=[{"assembly_id": "outer"}]).go()
    play.hands("back")
    assert (play.started.id, play.started.parent) == ("0.3.1", "0.3")
    assert play.started.context == {"a": 1}
    assert [item["assembly_id"] for item in play.started.path] == ["outer", "desk"]
    [complete] = play.says("Done.").of(c.Complete)
    assert (complete.result["participant"], complete.result["output"]) == ("0.3", "Done.")


def test_the_same_decision_is_made_again() -> None:
    play = Play().go()
    play.records.append({"p": "0.0", "b": 1, "e": 2, "r": {"stop_reason": "stop", "output": "A"}})
    before = play.state
    assert play.go().said == play.go().said
    assert play.state == before


def test_a_swarm_that_is_too_deep_fails() -> None:
    play = Play(path=[{"step_id": str(level)} for level in range(16)]).go()
    assert play.error == "assembly_limit"
