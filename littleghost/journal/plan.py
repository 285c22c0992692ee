"""Turns commands into the plan of one script call: small JSON, and payloads named by index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatchmethod
from typing import Any

from littleghost.engine import commands
from littleghost.engine.commands import Command, Join, ParticipantSpec, TaskSpec
from littleghost.usage import Usage


def dumps(value: object) -> str:
    """Write compact JSON that is valid everywhere: no NaN, no escapes it does not need."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class Plan:
    """The arguments of one `create` or `commit` call.

    Shape: see the heads of `lua/create.lua` and `lua/commit.lua`.
    """

    def __init__(self, participant: str, first_index: int) -> None:
        """Begin a plan.

        Args:
            participant: Whose task is being committed; events are about it.
            first_index: The script's index of the first payload.
        """
        self.fields: dict[str, Any] = {}
        self.payloads: list[str] = []
        self._participant = participant
        self._first = first_index

    def payload(self, text: str) -> int:
        """Add a payload and give its index in the script."""
        self.payloads.append(text)
        return self._first + len(self.payloads) - 1

    def payload_at(self, index: int) -> str:
        """Give the payload that the script finds at an index."""
        return self.payloads[index - self._first]

    def arguments(self) -> list[str]:
        """Give the plan's JSON and the payloads."""
        return [dumps(self.fields), *self.payloads]

    def add_all(self, items: Iterable[Command]) -> None:
        """Add commands in order."""
        for item in items:
            self.add(item)

    def _list(self, name: str) -> list[Any]:
        return self.fields.setdefault(name, [])

    @singledispatchmethod
    def add(self, command: Command) -> None:
        """Add one command."""
        raise TypeError(f"{command!r} is not a command the journal knows")

    @add.register
    def _(self, command: commands.Append) -> None:
        self._list("m").extend(self.payload(record) for record in command.records)

    @add.register
    def _(self, command: commands.SetState) -> None:
        self.fields["st"] = self.payload(dumps(command.state))

    @add.register
    def _(self, command: commands.Start) -> None:
        self.start(command.participants, command.tasks, command.joins)

    @add.register
    def _(self, command: commands.RecordResult) -> None:
        self.fields["r"] = self.payload(command.record)

    @add.register
    def _(self, command: commands.AddUsage) -> None:
        # Read again, since a provider of the application's own may count with anything.
        self.fields["u"] = Usage.from_json(command.usage.to_json()).to_json()

    @add.register
    def _(self, command: commands.ChangeState) -> None:
        self._list("o").extend(
            [
                item["op"],
                item["key"],
                self.payload(dumps(item.get("by" if item["op"] == "increment" else "value"))),
            ]
            for item in command.operations
        )

    @add.register
    def _(self, command: commands.SetText) -> None:
        self.fields["x"] = self.payload(command.text)

    @add.register
    def _(self, command: commands.TryAgain) -> None:
        self.fields["again"] = {
            "delay": max(1, round(command.delay_s * 1000)),
            "h": {"f": command.failures},
        }

    @add.register
    def _(self, command: commands.Complete) -> None:
        self.fields["done"] = self.payload(dumps(command.result))

    @add.register
    def _(self, command: commands.Fail) -> None:
        self.fields["f"] = ["failed", self.payload(dumps(command.error))]

    @add.register
    def _(self, command: commands.Emit) -> None:
        name = "l" if command.live else "e"
        self._list(name).append(self.payload(stored_event(command, self._participant)))

    def start(
        self,
        participants: Sequence[ParticipantSpec],
        tasks: Sequence[TaskSpec],
        joins: Sequence[Join],
    ) -> None:
        """Add what is to be started."""
        for participant in participants:
            self._list("p").append(self._participant_header(participant))
        for join in joins:
            self._list("j").append(
                {
                    "id": join.id,
                    "p": join.participant,
                    "m": list(join.members),
                    "w": join.width,
                    "t": join.then,
                }
            )
        for task in tasks:
            self._list("t").append(self._task_header(task))

    def _participant_header(self, spec: ParticipantSpec) -> dict[str, Any]:
        header: dict[str, Any] = {
            "id": spec.id,
            "a": spec.assembly,
            "k": spec.kind,
            "n": spec.label,
            "st": self.payload(dumps(spec.state)),
        }
        if spec.parent is not None:
            header["up"] = spec.parent
        if spec.join is not None:
            header["j"] = spec.join
        return header

    def _task_header(self, spec: TaskSpec) -> dict[str, Any]:
        header: dict[str, Any] = {
            "id": spec.id,
            "k": spec.kind,
            "p": spec.participant,
            "q": spec.queue,
        }
        if spec.payload is not None:
            header["d"] = self.payload(dumps(spec.payload))
        if spec.join is not None:
            header["j"] = spec.join
        for name, flag in (("x", spec.exclusive), ("i", spec.idempotent), ("wait", spec.waits)):
            if flag:
                header[name] = True
        return header


def stored_event(command: commands.Emit, participant: str) -> str:
    """Write an event as the log keeps it.

    Shape: `{"type", "p": participant, "d": data?, "m": index of the record it speaks of?,
    "r": task whose result it speaks of?}`.
    """
    event: dict[str, Any] = {"type": command.type, "p": participant}
    if command.data:
        event["d"] = command.data
    if command.record is not None:
        event["m"] = command.record
    if command.result is not None:
        event["r"] = command.result
    return dumps(event)


def live_event(kind: str, participant: str, data: Mapping[str, Any]) -> str:
    """Write a live event, such as a text delta, as the log keeps it."""
    return dumps({"type": kind, "p": participant, "d": data})
