"""What becomes of an agent's subagents, as tables: no I/O, no clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from littleghost import Agent, Limits, SubagentLimits, Workflow
from littleghost.engine import commands as c
from littleghost.engine.decide.subagents import decide
from littleghost.engine.ports import Collaborators, Lease, RunMemory
from littleghost.engine.subagent_state import ENDED, FAILED, GONE, ROOT_PATH, Identity
from littleghost.errors import DefinitionError, InvalidRequestError, UnknownAssemblyError
from littleghost.failure import Failure
from littleghost.messages import Message

COORDINATOR = "0.9999"


class DiverAgent(Agent):
    pass


class FlowWorkflow(Workflow):
    def perform(self) -> Any:
        return None


class CaptainAgent(Agent):
    limits = Limits(max_tool_result_tokens=10**6)


KNOWN: dict[str, Any] = {"x:Diver": DiverAgent, "x:Flow": FlowWorkflow}
KINDS = {"diver": {"assembly": "x:Diver", "persist": True}}


def lookup(name: str) -> Any:
    if name not in KNOWN:
        raise UnknownAssemblyError(name)
    return KNOWN[name]


ENV = cast(
    "Collaborators",
    SimpleNamespace(
        queue=lambda kind, lane: f"{kind}{lane}", assemblies=SimpleNamespace(lookup=lookup)
    ),
)


def path(name: str) -> str:
    return f"{ROOT_PATH}/{name}"


class Play:
    """A coordinator whose commands are carried out, as the journal would."""

    def __init__(self, limits: SubagentLimits | None = None, **header: Any) -> None:
        body = {"subagent_limits": limits or SubagentLimits()}
        self.agent = type("LimitedAgent", (CaptainAgent,), body, abstract=True)
        self.records: list[Any] = []
        self.working: dict[str, Any] = {}
        self.state: Any = {}
        self.now_ms = 1_000_000
        self.header = {"n": "captain/subagents", "up": "0", **header}
        self.said: list[c.Command] = []
        self.answers: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}
        self._calls = 0

    def go(self, passed_ms: int = 1) -> Play:
        """Decide once."""
        self.now_ms += passed_ms
        values: dict[str, Any] = dict.fromkeys(field.name for field in fields(Lease))
        memory = RunMemory("1", {})
        memory.lists[COORDINATOR] = list(self.records)
        values |= {
            "participant": COORDINATOR, "root_assembly": "x:Diver", "lane": "",
            "state": self.state, "memory": memory, "now_ms": self.now_ms, "header": self.header,
            "working": {key: json.dumps(value) for key, value in self.working.items()},
        }  # fmt: skip
        self.said = decide(Lease(**values), self.agent, ENV)
        for item in self.of(c.SetState):
            self.state = json.loads(json.dumps(item.state))
        for item in self.of(c.Answer):
            assert item.task not in self.answers, "a call is answered once"
            [told] = Message.from_json(json.loads(item.record)).content
            self.answers[item.task] = told
        for item in self.of(c.ChangeState):
            for change in item.operations:
                assert change["op"] == "delete"
                del self.working[change["key"]]
        for item in self.of(c.Keep):
            self.kept[item.key] = item
        return self

    def post(self, do: str, **fields: Any) -> str:
        """Let a call of the agent ask for something; gives the call."""
        call = f"0-c0.{self._calls}"
        self._calls += 1
        request = {"do": do, "call": call, "use": f"u{call}", "tool": do, "context": {"a": 1}}
        self.records.append({"q": {**request, **fields}})
        return call

    def spawn(self, name: str = "tides", mode: str = "sync", **fields: Any) -> str:
        given = {"kind": "diver", "assembly": "x:Diver", "persist": True, "message": f"do {name}",
                 **fields}  # fmt: skip
        call = self.post("spawn", task_name=name, mode=mode, **given)
        self.go()
        return call

    def send(self, name: str = "tides", message: str = "more", mode: str = "sync") -> str:
        call = self.post(
            "send", subagent_id=path(name), message=message, mode=mode, kinds=KINDS
        )  # fmt: skip
        self.go()
        return call

    def ask(self, name: str, message: str, assembly: str = "x:Diver") -> str:
        call = self.post("ask", name=name, message=message, assembly=assembly)
        self.go()
        return call

    def interject(self, name: str = "tides", message: str = "psst") -> str:
        call = self.post("interject", subagent_id=path(name), message=message)
        self.go()
        return call

    def wait(self, *names: str) -> str:
        call = self.post("wait", **({"subagent_ids": [*map(path, names)]} if names else {}))
        self.go()
        return call

    def list(self, **fields: Any) -> Any:
        return self.told(self.do("list", **fields))

    def do(self, verb: str, **fields: Any) -> str:
        call = self.post(verb, **fields)
        self.go()
        return call

    def ends(self, child: int, output: Any = "done", *, at: int = 1) -> Play:
        """Let a child give an answer, which is the record `at` of its list."""
        result = {"output": output, "message": at}
        self.records.append({"p": f"{COORDINATOR}.{child}", "b": 1, "e": 2, "r": result})
        return self.go()

    def fails(self, child: int) -> Play:
        error = Failure.of(InvalidRequestError("the secret is 1234")).to_json()
        self.records.append({"p": f"{COORDINATOR}.{child}", "b": 1, "e": 2, "x": error})
        return self.go()

    def of(self, kind: type) -> list[Any]:
        return [item for item in self.said if isinstance(item, kind)]

    def told(self, call: str) -> Any:
        """Give what a call was answered; a text when that is an error."""
        answer = self.answers[call]
        return json.loads(answer.content) if answer.status == "success" else answer.content

    @property
    def started(self) -> list[c.ParticipantSpec]:
        return [spec for start in self.of(c.Start) for spec in start.participants]

    @property
    def events(self) -> list[str]:
        return [item.data["event"] for item in self.of(c.Emit) if item.type == "subagent"]


def texts(spec: c.ParticipantSpec) -> list[str]:
    return [Message.from_json(json.loads(item)).text for item in spec.records]


# Starting one, and talking to it.


def test_a_sync_spawn_starts_a_turn_and_is_answered_when_that_ends() -> None:
    play = Play(set={"seed": 1})
    call = play.spawn()
    [spec] = play.started
    assert (spec.id, spec.parent, spec.assembly) == (f"{COORDINATOR}.0", COORDINATOR, spec.assembly)
    assert (texts(spec), spec.context, spec.settings) == (["do tides"], {"a": 1}, {"seed": 1})
    assert (spec.continues, spec.kept) == (None, None)
    assert spec.path[-1]["participant"] == path("tides")
    [join] = [join for start in play.of(c.Start) for join in start.joins]
    assert (join.members, join.then) == ((spec.id,), f"{COORDINATOR}-a")
    assert play.events == ["spawned", "message_queued", "turn_started"]
    assert play.answers == {}

    play.ends(0, "high at noon")
    assert play.told(call) == {
        "status": "finished",
        "subagent_id": path("tides"),
        "kind": "diver",
        "turn": 1,
        "response": "high at noon",
    }
    assert play.events == ["turn_finished"]
    assert [item.type for item in play.of(c.Emit)] == ["subagent", "tool_stop"]


def test_an_async_spawn_is_answered_at_once() -> None:
    play = Play()
    call = play.spawn(mode="async")
    told = {"status": "working", "subagent_id": path("tides"), "kind": "diver", "turn": 1}
    assert play.told(call) == told
    play.ends(0)
    assert play.of(c.Answer) == []


def test_a_followup_goes_on_with_the_conversation_and_the_state() -> None:
    play = Play()
    play.spawn()
    play.ends(0, "one", at=3)
    call = play.send(message="and then?")
    [spec] = play.started
    assert (spec.continues, texts(spec)) == (f"{COORDINATOR}.0", ["and then?"])
    assert spec.working == {}, "what the tools changed in it must not be undone"
    [event] = [item for item in play.of(c.Emit) if item.type == "invocation_start"]
    assert event.record == 4
    play.ends(1, "two")
    assert (play.told(call)["response"], play.told(call)["turn"]) == ("two", 2)


def test_messages_to_one_identity_are_taken_one_after_the_other() -> None:
    play = Play()
    play.spawn(mode="async")
    first, second = play.send(message="a"), play.send(message="b", mode="async")
    assert play.started == []
    assert play.told(second)["status"] == "working"
    play.ends(0, "zero")
    assert [texts(spec) for spec in play.started] == [["a"]]
    play.ends(1, "one")
    assert (play.told(first)["response"], [texts(spec) for spec in play.started]) == (
        "one",
        [["b"]],
    )
    assert play.ends(2).started == []


def test_two_subagents_work_at_once() -> None:
    play = Play()
    play.spawn("a")
    assert play.spawn("b")
    assert len(play.started) == 1
    assert play.state["n"] == 2


def test_a_name_is_used_once() -> None:
    play = Play()
    play.spawn()
    told = play.told(play.spawn())
    assert told["status"] == "invalid_request"
    assert path("tides") in told["message"]
    assert play.started == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda play: play.send("nobody"),
        lambda play: play.interject("nobody"),
        lambda play: play.wait("nobody"),
    ],
    ids=["send", "interject", "wait"],
)
def test_an_unknown_identity_is_an_error(ask: Callable[[Play], str]) -> None:
    play = Play()
    call = ask(play)
    assert play.answers[call].status == "error"
    assert path("nobody") in play.told(call)


def test_paths_nest_and_have_an_end() -> None:
    mine = {"id": path("a"), "kind": "diver", "turn": 1, "key": "k"}
    play = Play(gr={"subagent": mine, "scope": "0"})
    assert play.told(play.spawn("b", "async"))["subagent_id"] == f"{path('a')}/b"
    deep = Play(gr={"subagent": {**mine, "id": path("a" * 1_020)}, "scope": "0"})
    assert deep.told(deep.spawn("b"))["status"] == "invalid_request"


# Limits.


def test_only_so_many_turns_run_at_once_and_the_oldest_waiting_goes_first() -> None:
    play = Play(SubagentLimits(concurrent=2))
    for name in ("a", "b", "c", "d"):
        play.spawn(name, "async")
    play.ends(0)
    assert [texts(spec) for spec in play.started] == [["do c"]]
    play.ends(2)
    assert [texts(spec) for spec in play.started] == [["do d"]]


def test_the_default_limits_are_the_documented_ones() -> None:
    play = Play()
    for number in range(9):
        play.spawn(f"a{number}", "async")
    assert play.state["n"] == 8
    told = [play.told(f"0-c0.{number}") for number in range(9)]
    assert [item["turn"] for item in told] == [1] * 8 + [0]
    assert {item["status"] for item in told} == {"working"}


def test_too_many_identities() -> None:
    play = Play(SubagentLimits(identities=2))
    play.spawn("a", "async")
    play.spawn("b", "async")
    assert play.told(play.spawn("c")) == {
        "status": "capacity_reached",
        "limit": {"identities": 2},
        "message": "No more subagents fit.",
    }
    play.ask("tool", "is no identity")
    assert play.started


def test_too_many_turns_count_those_that_wait() -> None:
    play = Play(SubagentLimits(turns=2))
    play.spawn(mode="async")
    play.send(mode="async")
    told = play.told(play.send())
    assert (told["status"], told["limit"]) == ("capacity_reached", {"turns": 2})
    assert play.told(play.spawn("other"))["status"] == "capacity_reached"
    unlimited = Play(SubagentLimits(turns=None, queued=200))
    unlimited.spawn(mode="async")
    for _ in range(150):
        unlimited.send(mode="async")
    assert {told.status for told in unlimited.answers.values()} == {"success"}
    assert all(unlimited.told(call)["status"] == "working" for call in unlimited.answers)


def test_too_many_queued_messages() -> None:
    play = Play(SubagentLimits(queued=2))
    play.spawn(mode="async")
    play.send(mode="async")
    play.send(mode="async")
    told = play.told(play.send())
    assert (told["status"], told["limit"]) == ("capacity_reached", {"queued": 2})
    play.ends(0)
    assert play.told(play.send(mode="async"))["status"] == "working"


def test_a_message_may_be_too_long() -> None:
    play = Play(SubagentLimits(message_chars=10))
    assert play.told(play.spawn(message="x" * 11))["status"] == "invalid_request"
    assert play.told(play.spawn(message="x" * 10, mode="async"))["status"] == "working"
    assert play.told(play.send(message="x" * 11))["status"] == "invalid_request"
    call = play.interject(message="x" * 11)
    assert play.answers[call].status == "error"


@pytest.mark.parametrize(("length", "is_cut"), [(10, False), (11, True)])
def test_a_long_response_is_cut_and_says_so(length: int, is_cut: bool) -> None:
    play = Play(SubagentLimits(response_chars=10))
    call = play.spawn()
    play.ends(0, "x" * length)
    assert play.told(call)["response"] == "x" * 10
    assert play.told(call).get("response_truncated", False) is is_cut


def test_an_answer_of_several_shares_the_room_of_one_tool_result() -> None:
    play = Play(SubagentLimits(response_chars=100))
    play.spawn("a", "async")
    play.spawn("b", "async")
    play.ends(0, "x" * 100)
    play.ends(1, "y" * 100)
    told = play.told(play.wait())["subagents"]
    assert [len(item["response"]) for item in told] == [50, 50]
    assert all(item["response_truncated"] for item in told)


@pytest.mark.parametrize(
    "wrong",
    [{"concurrent": 0}, {"identities": True}, {"turns": -1}, {"queued": 1.5}, {"wait_s": 0},
     {"wait_s": float("nan")}, {"message_chars": "9"}, {"response_chars": None}],
)  # fmt: skip
def test_wrong_limits_are_refused(wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(DefinitionError, match=name):
        SubagentLimits(**wrong)


def test_all_wrong_limits_are_told_at_once() -> None:
    with pytest.raises(DefinitionError, match=r"concurrent is 0, queued is -1"):
        SubagentLimits(concurrent=0, queued=-1)


# Failing.


def test_a_failed_turn_is_the_end_of_its_identity_and_of_what_is_queued() -> None:
    play = Play()
    first, second = play.spawn(), play.send()
    play.fails(0)
    for call in (first, second):
        assert play.told(call) == {
            "status": "failed",
            "error": FAILED,
            "subagent_id": path("tides"),
            "kind": "diver",
            "turn": 1,
        }
    assert play.events == ["turn_failed"]
    [event] = [item for item in play.of(c.Emit) if item.type == "subagent"]
    assert event.data["error_type"] == "InvalidRequestError"
    assert (play.of(c.Keep), play.started) == ([], [])
    later = play.told(play.send())
    assert (later["status"], later["error"]) == ("failed", ENDED)
    assert play.told(play.spawn())["status"] == "invalid_request"


def test_the_last_good_answer_is_shown_when_a_later_turn_failed() -> None:
    play = Play()
    play.spawn()
    play.ends(0, "good")
    call = play.send()
    play.fails(1)
    assert play.told(call)["previous_response"] == "good"
    assert "1234" not in json.dumps([item.record for item in play.of(c.Answer)])


def test_a_failure_frees_a_place() -> None:
    play = Play(SubagentLimits(concurrent=1))
    play.spawn("a", "async")
    play.spawn("b", "async")
    play.fails(0)
    assert [texts(spec) for spec in play.started] == [["do b"]]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_kind_that_is_gone_fails_and_takes_no_room(mode: str) -> None:
    play = Play(SubagentLimits(identities=1))
    call = play.spawn("lost", mode, assembly="x:Gone")
    told = play.told(call)
    assert (told["status"], told["error"], told["turn"]) == ("failed", GONE, 0)
    assert "factory_failed" in play.events
    assert play.told(play.spawn("other", "async"))["status"] == "working"


def test_one_level_too_many_is_an_answer() -> None:
    play = Play(path=[{"n": number} for number in range(16)])
    told = play.told(play.spawn())
    assert (told["status"], play.of(c.Fail)) == ("failed", [])


# Speaking to one that works.


def test_an_interjection_is_answered_with_what_the_model_says() -> None:
    play = Play()
    play.spawn(mode="async")
    call = play.interject(message="faster")
    [post] = play.of(c.Post)
    entry = json.loads(post.record)
    assert post.participant == f"{COORDINATOR}.0"
    mark = entry["r"]["metadata"] if isinstance(entry["r"], dict) else json.loads(entry["r"])
    assert json.dumps({"call": call, "to": COORDINATOR}, sort_keys=True) in json.dumps(
        mark, sort_keys=True
    )
    play.records.append({"reply": call, "text": "on it", "calls": 1})
    play.go()
    told = play.told(call)
    assert (told["status"], told["response"]) == ("interjection_delivered", "on it")
    assert (told["response_disposition"], told["subagent_id"]) == (
        "text_with_tool_calls",
        path("tides"),
    )


def test_a_reply_that_ends_the_turn_is_a_reply() -> None:
    play = Play()
    spawned = play.spawn()
    call = play.interject()
    # Both come with one commit, the end of the turn first.
    play.records.append({"p": f"{COORDINATOR}.0", "b": 1, "e": 2, "r": {"output": "bye"}})
    play.records.append({"reply": call, "text": "bye", "calls": 0})
    play.go()
    assert play.told(call)["response_disposition"] == "text_only"
    assert play.told(spawned)["response"] == "bye"


@pytest.mark.parametrize("end", [Play.ends, Play.fails], ids=["ends", "fails"])
def test_a_turn_that_ends_before_it_answers_says_so(end: Callable[[Play, int], Play]) -> None:
    play = Play()
    play.spawn(mode="async")
    call = play.interject()
    end(play, 0)
    assert (play.answers[call].status, "ended before" in play.told(call)) == ("error", True)
    play.records.append({"reply": call, "text": "late", "calls": 0})
    assert play.go().of(c.Answer) == []


def test_only_a_running_turn_is_spoken_to_and_only_so_often() -> None:
    play = Play(SubagentLimits(interjections=2, concurrent=1))
    play.spawn("a", "async")
    play.spawn("b", "async")
    assert "not running" in play.told(play.interject("b"))
    play.interject("a")
    play.interject("a")
    assert "too many" in play.told(play.interject("a"))
    play.ends(0)
    play.send("a", mode="async")
    play.ends(1)
    call = play.interject("a")
    assert call not in play.answers, "the next turn has its own number"


# Waiting.


def test_waiting_for_all_ends_when_all_have_ended() -> None:
    play = Play()
    play.spawn("a", "async")
    play.spawn("b", "async")
    call = play.wait()
    assert [item.delay_s for item in play.of(c.Wake)] == [30.0]
    play.ends(0, "A")
    assert call not in play.answers
    play.fails(1)
    told = play.told(call)
    assert told["status"] == "finished"
    assert [(one["status"], one.get("response")) for one in told["subagents"]] == [
        ("finished", "A"),
        ("failed", None),
    ]
    assert play.of(c.Wake) == []


def test_waiting_for_named_ones_does_not_mind_the_others() -> None:
    play = Play()
    play.spawn("a", "async")
    play.spawn("b", "async")
    call = play.wait("b")
    play.ends(1, "B")
    assert [one["response"] for one in play.told(call)["subagents"]] == ["B"]
    assert play.told(play.wait("b"))["status"] == "finished"


def test_waiting_is_over_after_a_while_and_cancels_nothing() -> None:
    play = Play(SubagentLimits(wait_s=2))
    play.spawn("a", "async")
    call = play.wait()
    play.go(1_000)
    assert call not in play.answers
    assert [item.delay_s for item in play.of(c.Wake)] == [1.0]
    play.go(1_000)
    told = play.told(call)
    assert (told["status"], told["subagents"][0]["status"]) == ("still_working", "working")
    assert play.of(c.CancelParticipants) == []
    assert play.ends(0).events == ["turn_finished"]


def test_the_first_of_several_waits_says_when_to_wake() -> None:
    play = Play(SubagentLimits(wait_s=2))
    play.spawn("a", "async")
    play.wait()
    play.now_ms += 500
    play.wait("a")
    [wake] = play.of(c.Wake)
    assert wake.delay_s == pytest.approx(1.499)


def test_waiting_for_nobody_is_over_at_once() -> None:
    play = Play()
    assert play.told(play.wait()) == {"status": "finished", "subagents": []}


def test_a_name_given_twice_is_an_error() -> None:
    play = Play()
    play.spawn("a", "async")
    assert "twice" in play.told(play.wait("a", "a"))


# Listing.


def test_the_newest_are_listed_first_in_pages() -> None:
    play = Play()
    for name in "abc":
        play.spawn(name, "async", kind="diver" if name != "b" else "other")
    play.ends(0, "A")

    def names(told: Any) -> list[str]:
        return [item["subagent_id"].rpartition("/")[2] for item in told["subagents"]]

    assert (play.list()["status"], names(play.list())) == ("ok", ["a", "c", "b"])
    first = play.list(limit=2)
    assert names(first) == ["a", "c"]
    second = play.list(limit=2, cursor=first["cursor"])
    assert (names(second), "cursor" in second) == (["b"], False)
    assert names(play.list(kind="other")) == ["b"]
    assert play.list(kind="none") == {"status": "ok", "subagents": []}
    assert "cursor" in play.list(cursor="nonsense")
    statuses = {item["subagent_id"]: item["status"] for item in play.list()["subagents"]}
    assert statuses == {path("a"): "idle", path("b"): "working", path("c"): "working"}


def test_a_page_has_twenty_at_most_unless_asked() -> None:
    play = Play(SubagentLimits(identities=30))
    for number in range(25):
        play.spawn(f"a{number}", "async")
    assert len(play.list()["subagents"]) == 20
    assert len(play.list(limit=100)["subagents"]) == 25


def test_progress_is_that_of_the_running_turn() -> None:
    play = Play(SubagentLimits(progress_chars=5))
    play.spawn(mode="async")
    [spec] = play.started
    assert spec.grants is not None
    key = "progress/" + spec.grants["subagent"]["key"]
    play.working[key] = {"turn": 1, "sequence": 3, "message": "looking around"}
    assert play.list()["subagents"][0]["progress"] == {"sequence": 3, "message": "looki"}
    play.ends(0)
    assert "progress" not in play.list()["subagents"][0]
    play.send(mode="async")
    assert "progress" not in play.list()["subagents"][0], "that was the turn before"


# What outlasts a run.


def of_earlier_run(name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    item = Identity(id=path(name), kind="diver", assembly="x:Old", turns=2, updated=5)
    return f"kept/{item.digest}", {**item.kept("it was high"), **more}


def test_a_good_turn_is_kept_with_the_texts_only() -> None:
    play = Play()
    play.spawn()
    play.ends(0, "high")
    [keep] = play.of(c.Keep)
    assert keep.in_run is False
    said = [Message.from_json(json.loads(record)) for record in keep.records]
    assert [(message.role, message.text) for message in said] == [
        ("user", "do tides"),
        ("assistant", "high"),
    ]
    assert (keep.facts["id"], keep.facts["turns"], keep.facts["said"]) == (path("tides"), 1, "high")


def test_what_is_not_to_persist_is_not_kept() -> None:
    play = Play()
    play.spawn(persist=False)
    [spec] = play.started
    assert spec.grants is not None
    assert spec.grants["scope"] != "0"
    assert play.ends(0).of(c.Keep) == []


@pytest.mark.parametrize("header", [{"up": "0.1"}, {"gr": {"scope": "0 once"}}])
def test_agents_inside_of_others_keep_theirs_in_the_run(header: dict[str, Any]) -> None:
    play = Play(**header)
    play.spawn()
    [keep] = play.ends(0).of(c.Keep)
    assert keep.in_run is True
    known = Play()
    known.spawn()
    [other] = known.ends(0).of(c.Keep)
    assert keep.key != other.key, "two agents' subagents of one name are two"


def test_a_conversation_of_an_earlier_run_goes_on() -> None:
    play = Play()
    play.working.update([of_earlier_run("tides")])
    listed = play.list()["subagents"]
    assert (listed[0]["status"], listed[0]["turn"]) == ("idle", 2)
    assert play.started == []
    assert play.told(play.wait()) == {"status": "finished", "subagents": []}
    assert "not at work in this run" in play.told(play.wait("tides"))
    assert play.told(play.spawn())["status"] == "invalid_request"

    call = play.send()
    [spec] = play.started
    assert (spec.kept, spec.continues, texts(spec)) == (
        of_earlier_run("tides")[0].removeprefix("kept/"), None, ["more"]
    )  # fmt: skip
    assert spec.assembly != "x:Old", "it is what its kind is now"
    [event] = [item for item in play.of(c.Emit) if item.type == "invocation_start"]
    assert event.record == 4
    assert [item.data["resumed"] for item in play.of(c.Emit) if item.type == "subagent"] == [
        True,
        True,
    ]
    again = play.send(mode="async")
    assert play.told(again)["previous_response"] == "it was high"
    play.ends(0, "low", at=5)
    assert play.told(call)["turn"] == 3
    [after] = play.started
    assert (after.kept, after.continues) == (None, f"{COORDINATOR}.0")


def test_a_kind_that_is_declared_no_more_is_gone() -> None:
    play = Play()
    play.working.update([of_earlier_run("tides", kind="singer")])
    told = play.told(play.send())
    assert (told["status"], told["error"]) == ("failed", GONE)
    assert "factory_failed" in play.events


def test_only_its_own_conversations_are_restored() -> None:
    play = Play()
    name, facts = of_earlier_run("tides")
    play.working = {
        "kept/1": {**facts, "id": f"{path('tides')}/deep"},
        "kept/2": {**facts, "id": path("other"), "scope": "0.1"},
        "kept/3": "nonsense",
        name: facts,
    }
    assert [item["subagent_id"] for item in play.list()["subagents"]] == [path("tides")]


def test_the_newest_are_kept_and_the_oldest_forgotten_with_all_below_them() -> None:
    play = Play(SubagentLimits(identities=2))
    old, older = of_earlier_run("old", updated=9), of_earlier_run("older", updated=3)
    below = ("kept/below", {**older[1], "id": f"{path('older')}/deep"})
    play.working.update([old, older, below])
    play.spawn("new")
    play.ends(0)
    assert {item.key for item in play.of(c.Forget)} == {
        older[0].removeprefix("kept/"),
        "below",
    }
    assert len(play.list()["subagents"]) == 2


def test_what_is_below_a_subagent_that_was_not_kept_is_forgotten_at_first() -> None:
    play = Play()
    name, facts = of_earlier_run("tides")
    deep = path("gone") + "/deep"
    play.working = {
        name: facts,
        "kept/1": {**facts, "id": f"{path('tides')}/deep"},
        "kept/2": {**facts, "id": deep},
        "kept/3": {**facts, "id": f"{deep}/deeper"},
        "kept/4": {**facts, "id": deep, "scope": "0.1"},
    }
    play.list()
    assert {item.key for item in play.of(c.Forget)} == {"2", "3"}
    assert set(play.working) == {name, "kept/1", "kept/4"}
    play.list()
    assert play.of(c.Forget) == []


# Tools whose context is preserved.


def test_calls_of_a_tool_with_context_are_one_conversation_in_order() -> None:
    play = Play(SubagentLimits(concurrent=1, turns=1))
    first, second = play.ask("notes", "a"), play.ask("notes", "b")
    assert play.state["n"] == 1
    play.ends(0, "A")
    assert play.answers[first].content == "A"
    [spec] = play.started
    assert (spec.continues, texts(spec)) == (f"{COORDINATOR}.0", ["b"])
    assert spec.path[-1]["assembly_kind"] == "tool"
    assert play.events == [], "it is no subagent"
    assert play.of(c.Keep) == []
    play.ends(1, "B")
    assert play.answers[second].content == "B"
    assert play.list()["subagents"] == []
    assert play.told(play.wait())["subagents"] == []


def test_two_tools_work_beside_each_other_and_beside_subagents() -> None:
    play = Play(SubagentLimits(concurrent=1))
    play.spawn("a", "async")
    play.ask("notes", "a")
    play.ask("plans", "a")
    assert play.state["n"] == 3


def test_a_failed_call_is_an_error_and_the_next_one_goes_on_with_the_good_ones() -> None:
    play = Play()
    play.ask("notes", "a")
    play.ends(0, "A")
    bad, good = play.ask("notes", "b"), play.ask("notes", "c")
    play.fails(1)
    assert (play.answers[bad].status, play.told(bad)) == (
        "error",
        "Tool failed (InvalidRequestError)",
    )
    [spec] = play.started
    assert (spec.continues, texts(spec)) == (None, ["a", "A", "c"])
    [event] = [item for item in play.of(c.Emit) if item.type == "invocation_start"]
    assert event.record == 2
    play.ends(2, "C", at=3)
    assert play.answers[good].content == "C"
    play.ask("notes", "d")
    assert play.started[0].continues == f"{COORDINATOR}.2"


def test_a_first_call_that_fails_leaves_nothing_behind() -> None:
    play = Play()
    play.ask("notes", "a")
    play.fails(0)
    play.ask("notes", "b")
    [spec] = play.started
    assert (spec.kept, spec.continues, texts(spec)) == (None, None, ["b"])


def test_a_composite_gets_what_was_said_before() -> None:
    play = Play()
    play.ask("flow", "a", "x:Flow")
    play.ends(0, {"n": 1})
    assert play.answers["0-c0.0"].content == '{"n":1}'
    play.ask("flow", "b", "x:Flow")
    [spec] = play.started
    assert (spec.kind, spec.continues, texts(spec)) == ("workflow", None, ["a", '{"n":1}', "b"])


def test_a_tool_that_is_gone_is_an_error() -> None:
    play = Play()
    call = play.ask("notes", "a", "x:Gone")
    assert play.answers[call].status == "error"


# Deciding again.


def test_deciding_without_anything_new_changes_nothing() -> None:
    play = Play()
    play.spawn()
    before = dict(play.state)
    play.go()
    assert (play.state, [item for item in play.said if not isinstance(item, c.SetState)]) == (
        before,
        [],
    )


def test_the_same_decision_is_made_again_after_a_crash() -> None:
    play, other = Play(), Play()
    for one in (play, other):
        one.spawn("a", "async")
        one.post("send", subagent_id=path("a"), message="x", mode="sync", kinds=KINDS)
    play.go()
    crashed = other.state
    other.go()
    other.state, other.answers = crashed, {"0-c0.0": other.answers["0-c0.0"]}
    other.now_ms -= 1
    other.go()
    assert play.said == other.said


def test_a_child_that_is_unknown_or_told_twice_changes_nothing() -> None:
    play = Play()
    call = play.spawn()
    play.ends(7)
    assert play.answers == {}
    play.ends(0, "one")
    play.ends(0, "two")
    assert play.told(call)["response"] == "one"


def test_an_identity_survives_as_json() -> None:
    item = Identity(id=path("a"), kind="k", assembly="x", queue=[1, 2], status="queued")
    assert Identity.from_json(json.loads(json.dumps(item.to_json()))) == item
    assert replace(item, scope="0.1").digest != item.digest
