"""Runs to disturb: how each begins, what is done to it, and what is known of its end."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from littleghost.engine.call import _UNKNOWN_OUTCOME
from littleghost.journal.record import RunRecord
from littleghost.messages import Message
from littleghost.run import Run
from tests.support import cast
from tests.support.checks import check_documented, check_journal
from tests.support.fleet import KilledError
from tests.support.team import Team
from tests.support.world import World

UNKNOWN = _UNKNOWN_OUTCOME
TRACED = ("charge", "fetch", "exclusive", "asked", "asked_in_order", "hurried")


@dataclass
class End:
    """How a run ended, in terms that do not depend on its id or on time."""

    status: str
    response: str
    error: str
    usage: dict[str, int]
    events: Counter[str]
    conversation: list[Any]
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scenario:
    """One kind of run, or a few that belong together.

    Attributes:
        is_timed: Whether what is sent from outside meets the run at one turn or another, so that
            only the messages in its conversation and its end are the same.
    """

    name: str
    begin: Callable[[World], list[str]]
    is_timed: bool = False


def enqueue(world: World, text: str, *, assembly: Any = cast.Clerk, **fields: Any) -> str:
    """Start a run, as a caller that tries again when it was cut off."""
    run_id = f"{fields.get('session_id', 'own')}-{re.sub('[^a-z0-9]+', '-', text)}".rstrip("-")
    for _ in range(2):
        try:
            return assembly.enqueue(text, run_id=run_id, **fields).id
        except KilledError:
            # Whether the first call came through is not known; the second one says.
            journal = world.caller.runtime.journal
            for found in (run_id, *(f"{n:02d}-{run_id}" for n in range(world.partitions))):
                if world.client.exists(journal.place(found)[0]):
                    return found
    raise AssertionError("a caller was cut off twice")


def _plain(text: str) -> Callable[[World], list[str]]:
    return lambda world: [enqueue(world, text)]


def _session(world: World) -> list[str]:
    first = enqueue(world, "parallel", session_id="s")
    return [first, enqueue(world, "text", session_id="s")]


def _in_second_turn(world: World, run_id: str) -> bool:
    task = world.record(run_id).tasks.get("0-t1")
    return task is not None and task["s"] == "leased"


def _deadline(world: World) -> list[str]:
    run_id = enqueue(world, "slow", deadline_at=timedelta(hours=1))

    def expire() -> bool:
        if not _in_second_turn(world, run_id):
            return False
        world.expire_deadline(run_id)
        for _ in range(5):
            if world.record(run_id).status == "stopping":
                return True
            world.keep()
        raise AssertionError(world.explain(run_id))

    world.hooks["delta"] = expire
    return [run_id]


def _cancel(world: World) -> list[str]:
    run_id = enqueue(world, "slow")

    def cancel() -> bool:
        if not _in_second_turn(world, run_id):
            return False
        for _ in range(2):
            try:
                Run(run_id).cancel("enough")
            except KilledError:
                continue
        return True

    world.hooks["delta"] = cancel
    return [run_id]


def persistent(work: Callable[[], object]) -> None:
    """Do what a caller does that tries again when it was cut off."""
    for _ in range(2):
        try:
            work()
        except KilledError:
            continue
        return
    raise AssertionError("a caller was cut off twice")


def _approvals(text: str) -> Callable[[World], list[str]]:
    def begin(world: World) -> list[str]:
        run_id = enqueue(world, text)

        def answer() -> bool:
            run = Run(run_id)
            for item in run.pending:
                number = item.arguments["n"]
                if number == 1:
                    persistent(lambda item=item: run.approve(item.id, by="ana"))
                elif number == 2:
                    persistent(lambda item=item: run.reject(item.id, "not that one"))
                else:
                    persistent(lambda item=item: run.edit(item.id, {"n": 40}))
                return True
            return False

        world.when_idle = None if text == "nobody answers" else answer
        return [run_id]

    return begin


def _interject(place: str) -> Callable[[World], list[str]]:
    """Two messages that come together, and one more, while the model or a tool is at work."""

    def begin(world: World) -> list[str]:
        run_id = enqueue(world, "parallel")
        sent: list[str] = []

        def say() -> bool:
            # Again when the sender was cut off, which changes nothing.
            if world.record(run_id).is_over or len(sent) > 3:
                return False
            run = Run(run_id)
            for number, key in ((1, "k"), (2, "k"), (3, None)):

                def put_in(number: int = number, key: str | None = key) -> None:
                    run.interject(f"note {number}", id=f"m{number}", batch_key=key)

                persistent(put_in)
            sent.append(place)
            return False

        world.hooks[place] = say
        return [run_id]

    return begin


def _team(text: str) -> Callable[[World], list[str]]:
    return lambda world: [enqueue(world, text, assembly=Team)]


SCENARIOS = [
    *(Scenario(name, _plain(name)) for name in ("text", "parallel", "exclusive", "error")),
    Scenario("retry", _plain("retry one")),
    Scenario("session", _session),
    Scenario("deadline", _deadline),
    Scenario("cancel", _cancel),
    *(
        Scenario(name, _approvals(name))
        for name in ("approvals", "approvals in order", "nobody answers")
    ),
    Scenario("interjections", _interject("tool before")),
    Scenario("late interjections", _interject("delta"), is_timed=True),
    Scenario("delegate", lambda world: [enqueue(world, "delegate", assembly=cast.Boss)]),
    Scenario("team", _team("team 2 all: text; say one; say two")),
    Scenario("team in team", _team("team 3 all: say one; [team 1 all: say two, say three]")),
    Scenario("team that fails fast", _team("team 1 first: say one; bad; say two")),
]


def end_of(world: World, run_id: str) -> End:
    """Read how a run ended, and check all that must be true of every run."""
    run = Run.get(run_id)
    record = run.record
    assert record.is_over
    conversation = [
        Message.from_json(item)
        for item in world.caller.runtime.records.messages(record)
        if "role" in item
    ]
    unknown = _check_calls(world, record, conversation)
    check_live_text(run)
    stored = world.client.xrange(world.caller.runtime.journal.place(run_id)[0] + ":e")
    return End(
        status=record.status,
        response=run.response,
        error=run.error.code if run.error else "",
        usage=run.usage.to_json(),
        events=Counter(json.loads(fields["e"])["type"] for _, fields in stored),
        conversation=[_told(message) for message in conversation],
        unknown=unknown,
    )


def _without_time(end: End) -> End:
    said = [message for message in end.conversation if message["role"] == "user"]
    return replace(end, usage={}, events=Counter(), conversation=said)


def _told(message: Message) -> Any:
    """Give a message; what an interrupted call did is left open."""
    data = message.to_json()
    for block in data["content"]:
        if block["type"] == "tool_result":
            block.pop("content")
            block.pop("status")
    return data


def _check_calls(world: World, record: RunRecord, conversation: list[Message]) -> list[str]:
    """Check effects against results; give the calls whose outcome the model was told is unknown."""
    results = cast.results(conversation)
    unknown: list[str] = []
    recorded = 0
    turn = -1
    # What is older than the run was checked with the runs that it comes from.
    base = int(world.client.hget(world.caller.runtime.journal.place(record.run_id)[0], "base") or 0)
    for place, message in enumerate(conversation):
        turn += message.role == "assistant" and place >= base
        for index, use in enumerate(message.tool_uses):
            if use.id not in results or use.name not in TRACED:
                continue
            effects = sum(cast.EFFECTS[f"{name}:0-c{turn}.{index}"] for name in _lineage(record))
            if use.name != "fetch":
                assert effects <= 1, f"{use.name} took effect {effects} times"
            if results[use.id].endswith(UNKNOWN):
                assert use.name != "fetch"
                unknown.append(use.id)
                continue
            if results[use.id].startswith("This call was "):
                assert effects == 0, f"{use.name} was not allowed, and took effect"
                continue
            recorded += 1
            if place < base:
                continue
            assert effects >= 1
            changed = results[use.id].startswith("(A person changed the input")
            number = 40 if changed else use.input["n"]
            assert results[use.id].endswith(f"done {use.name} {number}")
    is_agent = record.participants["0"]["k"] == "agent"
    if is_agent and world.client.llen(record.participants["0"]["m"]) == len(conversation):
        # Nobody in the session came after it, so the state is as it left it.
        _check_state(world, record, recorded)
    return unknown


def _lineage(record: RunRecord) -> list[str]:
    """Give a run and those that it goes on from: a call keeps the key it had there."""
    before = record.invocation.get("retry_of")
    return [record.run_id, *(_lineage(Run(before).record) if before else ())]


def _check_state(world: World, record: RunRecord, recorded: int) -> None:
    state = world.caller.runtime.records.state(record)
    assert len(state.get("c/order", [])) == recorded
    assert sum(value for key, value in state.items() if key.startswith("t/")) == recorded


def check_live_text(run: Run) -> None:
    """Check that a reader of the live text ends up with what each turn said, nothing twice."""
    texts: dict[str, str] = defaultdict(str)
    is_open: dict[str, bool] = {}
    for event in run.events():
        if event.type != "agent_stream":
            continue
        kind, who = event.inner_type, event.data["source"]["operation_id"]
        if kind in ("model_start", "model_retry", "model_stop"):
            withdrawn = not (is_open.get(who) and kind == "model_start")
            assert withdrawn, "an attempt was not withdrawn"
            is_open[who] = kind == "model_start"
        if kind in ("model_start", "model_retry"):
            texts[who] = ""
        elif kind == "text_delta":
            texts[who] += event.text
        elif kind == "model_stop":
            message = Message.from_json(event.inner["data"]["response"]["message"])
            assert texts[who] in (message.text, ""), f"seen: {texts[who]!r}, said: {message.text!r}"


def play(world: World, scenario: Scenario, faults: Any = None) -> list[End]:
    """Run a scenario with faults to its end, and check the journal."""
    world.reset(faults)
    run_ids = scenario.begin(world)
    world.carry(*run_ids)
    ends = [end_of(world, run_id) for run_id in run_ids]
    if scenario.is_timed:
        ends = [_without_time(end) for end in ends]
    check_journal(world.client, world.partitions)
    check_documented(world.client)
    return ends
