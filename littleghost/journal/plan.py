"""Turns commands into the plan of one script call: small JSON, and payloads named by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from littleghost.engine import commands
from littleghost.engine.commands import Command, Join, ParticipantSpec, TaskSpec
from littleghost.journal import keys
from littleghost.journal.headers import opaque, write_header
from littleghost.json_values import dumps
from littleghost.usage import Usage


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
        self.appended: list[Any] = []
        self.participant = participant
        self._first = first_index

    def payload(self, text: str) -> int:
        """Add a payload and give its index in the script."""
        self.payloads.append(text)
        return self._first + len(self.payloads) - 1

    def arguments(self) -> list[str]:
        """Give the plan's JSON and the payloads."""
        return [dumps(self.fields), *self.payloads]

    def add_all(self, items: Iterable[Command]) -> None:
        """Add commands in order."""
        for item in items:
            self.add(item)

    def list(self, name: str) -> list[Any]:
        """Give a list of the plan, begun when it is first needed."""
        return self.fields.setdefault(name, [])

    def add(self, command: Command) -> None:
        """Add one command."""
        _ADD[type(command)](self, command)

    def append(self, command: commands.Append) -> None:
        """Add records of the participant's list."""
        self.list("m").extend([self.payload(record) for record in command.records])
        self.appended.extend(command.values)

    def start(
        self,
        participants: Sequence[ParticipantSpec],
        tasks: Sequence[TaskSpec],
        joins: Sequence[Join],
    ) -> None:
        """Add what is to be started."""
        for participant in participants:
            self.list("p").append(self._participant_header(participant))
        for join in joins:
            if join.begun:
                left = len(join.members) - join.begun - join.starting
                self.list("j").append({"id": join.id, "n": left})
                continue
            self.list("j").append(
                {
                    "id": join.id,
                    "p": join.participant,
                    "m": list(join.members),
                    "w": join.width,
                    "t": join.then,
                    **({"f": True} if join.fail_fast else {}),
                    **({"keep": True} if join.keeps else {}),
                    **({"d": True, "s": join.starting} if join.at_once else {}),
                }
            )
        for task in tasks:
            self.list("t").append(self._task_header(task))

    def _participant_header(self, spec: ParticipantSpec) -> dict[str, Any]:
        """Add a participant's header as text; beside it, what the scripts need of it."""
        header: dict[str, Any] = {
            "a": spec.assembly,
            "k": spec.kind,
            "n": spec.label,
        }
        optional = {
            "up": spec.parent,
            "j": spec.join,
            "cx": opaque(spec.context),
            "set": opaque(spec.settings),
            "step": spec.step,
            "path": list(spec.path) or None,
            "gr": opaque(spec.grants),
            "fin": spec.final or None,
        }
        header.update({name: value for name, value in optional.items() if value is not None})
        found: dict[str, Any] = {
            "id": spec.id,
            "k": spec.kind,
            "h": self.payload(write_header(spec.id, header)),
            "st": self.payload(dumps(spec.state)),
        }
        places = {
            "up": spec.parent,
            "of": spec.continues,
            "kept": spec.kept,
            "inr": spec.in_run or None,
            "once": spec.once or None,
            "fin": spec.final or None,
        }
        found.update({name: value for name, value in places.items() if value is not None})
        if spec.records:
            found["i"] = [self.payload(record) for record in spec.records]
        if spec.working:
            found["c"] = [[key, self.payload(value)] for key, value in spec.working.items()]
        return found

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
        if spec.gate is not None:
            header["g"] = spec.gate
        if spec.delay_s > 0:
            header["delay"] = round(spec.delay_s * 1000)
        if spec.asks_s is not None:
            header["ask"] = max(1, round(spec.asks_s * 1000))
        flags = {
            "x": spec.exclusive,
            "i": spec.idempotent,
            "wait": spec.waits,
            "ord": spec.ordered and spec.asks_s is not None,
            "once": spec.once,
        }
        header.update({name: True for name, flag in flags.items() if flag})
        return header


def stored_event(command: commands.Emit, participant: str) -> str:
    """Write an event as the log keeps it.

    Shape: `{"type", "p": participant, "d": data?, "m": index of the record it speaks of?,
    "r": task whose result it speaks of?}`.
    """
    event: dict[str, Any] = {"type": command.type, "p": command.participant or participant}
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


def _set_state(plan: Plan, command: commands.SetState) -> None:
    plan.fields["st"] = plan.payload(dumps(command.state))


def _start(plan: Plan, command: commands.Start) -> None:
    for name, text in command.definitions.items():
        plan.list("def").append([keys.definition(name), plan.payload(text)])
    plan.start(command.participants, command.tasks, command.joins)


def _record_result(plan: Plan, command: commands.RecordResult) -> None:
    plan.fields["r"] = plan.payload(command.record)


def _add_usage(plan: Plan, command: commands.AddUsage) -> None:
    # Read again, since a provider of the application's own may count with anything.
    plan.fields["u"] = Usage.from_json(command.usage.to_json()).to_json()


def _change_state(plan: Plan, command: commands.ChangeState) -> None:
    plan.list("o").extend(
        [item["op"], item["key"], plan.payload(dumps(item.get(_OPERAND[item["op"]])))]
        for item in command.operations
    )


# What each operation on working state works with.
_OPERAND = {"set": "value", "append": "value", "increment": "by", "delete": "value"}


def _set_text(plan: Plan, command: commands.SetText) -> None:
    plan.fields["x"] = plan.payload(command.text)


def _try_again(plan: Plan, command: commands.TryAgain) -> None:
    delay_ms = max(1, round(command.delay_s * 1000))
    plan.fields["again"] = {"delay": delay_ms, "h": {"f": command.failures}}


def _complete(plan: Plan, command: commands.Complete) -> None:
    plan.fields["done"] = plan.payload(dumps(command.result))
    if command.say is not None:
        plan.fields["say"] = plan.payload(command.say)
    if command.otherwise:
        plan.fields["or"] = True


def _fail(plan: Plan, command: commands.Fail) -> None:
    plan.fields["f"] = ["failed", plan.payload(dumps(command.error)), command.untried]


def _park(plan: Plan, command: commands.Park) -> None:
    plan.fields["park"] = command.participant


def _post(plan: Plan, command: commands.Post) -> None:
    plan.list("b").append([command.participant, plan.payload(command.record)])


def _answer(plan: Plan, command: commands.Answer) -> None:
    plan.list("an").append([command.task, plan.payload(command.record)])


def _note(plan: Plan, command: commands.Note) -> None:
    value = plan.payload(dumps(command.value))
    plan.list("n").append([command.participant, command.key, value])


def _keep(plan: Plan, command: commands.Keep) -> None:
    facts = plan.payload(dumps(command.facts))
    records = [plan.payload(item) for item in command.records]
    plan.list("ks").append([command.key, facts, records, command.in_run])


def _forget(plan: Plan, command: commands.Forget) -> None:
    plan.list("kd").append([command.key, command.in_run])


def _await_signal(plan: Plan, command: commands.AwaitSignal) -> None:
    plan.fields["sg"] = command.name
    if command.timeout_s is not None:
        plan.fields["w"] = max(1, round(command.timeout_s * 1000))


def _wake(plan: Plan, command: commands.Wake) -> None:
    plan.fields["w"] = max(1, round(command.delay_s * 1000)) if command.delay_s > 0 else 0


def _cancel(plan: Plan, command: commands.CancelParticipants) -> None:
    plan.list("k").extend(command.ids)


def _emit(plan: Plan, command: commands.Emit) -> None:
    if command.doubt:
        # Those come first: they are what an attempt had begun to append.
        doubt = plan.fields.setdefault("ld", [command.doubt, 0])
        doubt[1] += 1
    plan.list("l" if command.live else "e").append(
        plan.payload(stored_event(command, plan.participant))
    )


_ADD: dict[type, Callable[[Plan, Any], None]] = {
    commands.Append: Plan.append,
    commands.SetState: _set_state,
    commands.Start: _start,
    commands.RecordResult: _record_result,
    commands.AddUsage: _add_usage,
    commands.ChangeState: _change_state,
    commands.SetText: _set_text,
    commands.TryAgain: _try_again,
    commands.Complete: _complete,
    commands.Fail: _fail,
    commands.Park: _park,
    commands.Post: _post,
    commands.Answer: _answer,
    commands.Note: _note,
    commands.Keep: _keep,
    commands.Forget: _forget,
    commands.AwaitSignal: _await_signal,
    commands.Wake: _wake,
    commands.CancelParticipants: _cancel,
    commands.Emit: _emit,
}
