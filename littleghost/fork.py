"""Forks a run: a new run begins with the history of another one, up to a point."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from littleghost import registry
from littleghost.engine.opening import ROOT
from littleghost.errors import InvocationError, RunNotFoundError
from littleghost.invocation import Invocation, read_invocation
from littleghost.journal.contents import open_key
from littleghost.journal.record import RunRecord
from littleghost.journal.scripts import guarded
from littleghost.json_values import dumps
from littleghost.messages import Message
from littleghost.start import Earlier, launch
from littleghost.wiring import Runtime, runtime

_OWN_FIELDS = ("run_id", "session_id", "deadline_at", "deadline")
_TASK = re.compile(rf"{ROOT}-(?:t(\d+)|c(\d+)\.\d+)")


def fork_run(
    old_id: str, *, at: str | int | None, message: Any, fields: Mapping[str, Any]
) -> tuple[str, Invocation]:
    """Create a fork, and give its id and invocation; see `Run.fork`."""
    for name in fields:
        if name not in _OWN_FIELDS:
            raise InvocationError(
                f"a fork takes no {name!r}, it keeps the run's own; what it takes is message, at, "
                + ", ".join(_OWN_FIELDS),
                field=name,
            )
    work, now = runtime(), datetime.now(UTC)
    record = work.records.find(old_id)
    if record is None:
        raise RunNotFoundError(f"no run {old_id!r} to fork")
    asked = Invocation.from_json(record.invocation)
    own = read_invocation(asked.message if message is None else message, fields, now)
    source = _Source(work, record)
    rows, older = source.again(at) if message is None else source.until(at, own.message)
    invocation = replace(
        asked,
        message=own.message,
        run_id=own.run_id,
        invocation_id="",
        session_id=own.session_id,
        deadline_at=own.deadline_at,
    )
    earlier = Earlier(
        links={"forked_from": old_id}, records=[dumps(row) for row in rows], older=older, fresh=True
    )
    registry.learn(record.assembly, lambda names: work.journal.definitions(old_id, names))
    return launch(registry.lookup(record.assembly), invocation, record.lane, now, earlier)


@dataclass(frozen=True, slots=True)
class _Point:
    """A point in a conversation.

    Attributes:
        end: How many records there are with what was recorded at the point.
        before: How many there were before the turn that is taken there.
    """

    end: int
    before: int


class _Source:
    """The conversation of the run that is forked."""

    def __init__(self, work: Runtime, record: RunRecord) -> None:
        self._work, self._record = work, record
        self._key, _ = work.journal.place(record.run_id)
        self._is_agent = record.participants[ROOT]["k"] == "agent"
        if record.waits_for_session:
            # It never began, or has not yet: its first messages wait for its session.
            first = guarded(lambda: work.client.lrange(f"{self._key}:i", 0, -1))
            self._rows = [json.loads(row) for row in cast("list[str]", first)]
            self._base = len(self._rows) - 1
        else:
            rows = work.records.messages(record)
            self._rows = [row for row in rows if "role" in row]
            self._base = record.base

    def until(self, at: str | int | None, message: Message) -> tuple[list[Any], int]:
        """Give the history up to a point with a new message, and the number of older records."""
        if not self._is_agent:
            rows = self._request(at)
            if self._record.status == "completed":
                rows.append(self._rows[-1])
        else:
            rows = self._valid(self._rows if at is None else self._rows[: self._find(at).end])
        return [*rows, message.to_json()], len(rows)

    def again(self, at: str | int | None) -> tuple[list[Any], int]:
        """Give the history with which the turn at a point is taken again."""
        if not self._is_agent:
            return self._request(at), self._base
        rows = self._valid(self._rows if at is None else self._rows[: self._find(at).before])
        if at is None and self._record.status != "completed" and rows[-1]["role"] == "assistant":
            # The answer that it failed with.
            rows = self._valid(rows[:-1])
        if rows[-1]["role"] == "assistant":
            raise InvocationError(
                f"run {self._record.run_id!r} has answered at that point ({at or 'its end'}); give "
                "a message to go on, or the id of a turn's task to take that turn again",
                field="message",
            )
        return rows, min(self._base, len(rows) - 1)

    def _request(self, at: str | int | None) -> list[Any]:
        """Give what a composite was asked, with the history before that."""
        if at is not None:
            raise InvocationError(
                f"at is {at!r:.80}, but {self._record.assembly!r} has no conversation that could "
                "be cut there; leave it out: the fork then begins with the request (and the "
                "answer, when there is one and a message follows)",
                field="at",
            )
        return self._rows[: self._base + 1]

    def _valid(self, rows: Sequence[Any]) -> list[Any]:
        """Cut a conversation back to where every tool call has its result."""
        asked: dict[str, int] = {}
        for index, row in enumerate(rows):
            message = Message.from_json(row)
            if index >= self._base:
                asked.update((use.id, index) for use in message.tool_uses)
            for block in row["content"]:
                if isinstance(block, Mapping) and block.get("type") == "tool_result":
                    asked.pop(str(block["tool_use_id"]), None)
        return list(rows[: min(asked.values(), default=len(rows))])

    # Points.

    def _find(self, at: str | int) -> _Point:
        task = _TASK.fullmatch(str(at))
        if self._record.waits_for_session:
            point = None
        elif task is not None:
            turn = int(task[1] or task[2])
            point = self._turn(turn) if task[1] else self._call(str(at), turn)
        else:
            point = self._event(int(at)) if re.fullmatch(r"[0-9]{1,15}", str(at)) else None
        if point is None:
            raise InvocationError(
                f"at is {at!r:.80}, which run {self._record.run_id!r} has not; use the id of "
                "one of its events, or of a turn or call of its agent, such as '0-t3' or '0-c3.0'",
                field="at",
            )
        return point

    def _turn(self, turn: int) -> _Point | None:
        answers = {
            event["d"]["turn"]: event["m"]
            for _, event in self._events()
            if event["type"] == "model_stop"
        }
        if self._record.invocation.get("retry_of"):
            # The events of the turns before are the other run's; each has left one answer.
            said = (
                n
                for n, row in enumerate(self._rows)
                if n >= self._base and row["role"] == "assistant"
            )
            answers = {**dict(enumerate(said)), **answers}
        if turn in answers:
            return _Point(answers[turn] + 1, answers[turn])
        state = guarded(lambda: self._work.client.hget(open_key(self._key), f"x:{ROOT}"))
        if json.loads(cast("str", state or "{}")).get("turn", 0) != turn:
            return None
        # It goes on now, or was cut or failed.
        return _Point(len(self._rows), len(self._rows))

    def _call(self, task_id: str, turn: int) -> _Point | None:
        place = self._place(task_id)
        if place is None:
            found = self._turn(turn)
            return found and _Point(found.end, found.end)
        return _Point(place + 1, place + 1)

    def _place(self, task_id: str) -> int | None:
        """Give the index of a call's result, when the conversation holds it."""
        text = cast(
            "str | None", guarded(lambda: self._work.client.hget(f"{self._key}:r", task_id))
        )
        return int(text[1:]) if text and text.startswith("#") else None

    def _event(self, number: int) -> _Point | None:
        if not 0 < number <= self._record.events:
            return None
        end = self._base + 1
        for at, event in self._events():
            if at > number:
                break
            if "r" in event:
                place = self._place(event["r"])
                end = end if place is None else max(end, place + 1)
            elif "m" in event:
                end = max(end, event["m"] + 1, event.get("d", {}).get("records", 0))
            if at == number and event["type"] == "model_stop":
                return _Point(event["m"] + 1, event["m"])
        return _Point(end, end)

    def _events(self) -> list[tuple[int, dict[str, Any]]]:
        """Give the durable events that are about the root, with their numbers."""
        rows = guarded(lambda: self._work.client.xrange(f"{self._key}:e"))
        events = [
            (int(name.partition("-")[0]), json.loads(fields["e"]))
            for name, fields in cast("list[tuple[str, dict[str, str]]]", rows)
        ]
        return [(number, event) for number, event in events if event.get("p") == ROOT]
