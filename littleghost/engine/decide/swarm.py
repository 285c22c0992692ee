"""What a swarm does next: start a member, try it again, follow its handoff, or answer.

State: `{"active": member, "pids", "at": the attempts at its step, "came": {"by": member, "pid",
"step"} that handed off to it or None, "steps": started so far, "next": number of the next child,
"pairs": {from: {to: handoffs}}}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from littleghost.engine.commands import (
    Append,
    Command,
    Complete,
    Emit,
    Fail,
    SetState,
    SetText,
    Start,
    Wake,
)
from littleghost.engine.decide.agent import record_of
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.steps import (
    Outcome,
    Told,
    children_of,
    late_commands,
    open_step,
    outcome_of,
)
from littleghost.engine.view import view_of
from littleghost.errors import AssemblyLimitError, AssemblyRoutingError, LittleGhostError
from littleghost.failure import Failure
from littleghost.handoff import TRANSITION, Handoff, Targets, grant
from littleghost.messages import Message, assistant
from littleghost.policy import StepPolicy

if TYPE_CHECKING:
    from littleghost.swarm import Member, Swarm


def decide(lease: Lease, assembly: type[Swarm], env: Collaborators) -> list[Command]:
    """Decide what follows from what the active member did."""
    try:
        return _Deciding(lease, assembly, env).decide()
    except LittleGhostError as error:
        return _fail(error)


class _Deciding:
    """One decision of one swarm."""

    def __init__(self, lease: Lease, swarm: type[Swarm], env: Collaborators) -> None:
        self._lease = lease
        self._swarm = swarm
        self._env = env
        self._state = lease.state
        self._children = children_of(lease)
        self._told = {"assembly_id": swarm.id(), "assembly_kind": swarm.kind}

    def decide(self) -> list[Command]:
        """Say what is next."""
        if not self._state:
            return self._open(self._swarm.first(), came=None, pairs={})
        policy = self._member(self._state["active"]).policy
        outcome = outcome_of(self._state, policy, self._children, self._lease.now_ms)
        if outcome.status == "running":
            return [] if outcome.wake_s is None else [Wake(outcome.wake_s)]
        if outcome.status == "done":
            return self._done(self._state["active"], outcome.result or {})
        assert outcome.failure is not None
        return self._failed(self._state["active"], policy, outcome, outcome.failure)

    def _done(self, active: str, result: Mapping[str, Any]) -> list[Command]:
        """Follow a member's handoff, or answer with what it said."""
        told = self._step(active, self._state["steps"])
        stopped = told.stopped(self._state["pids"], self._children)
        if result.get("stop_reason") != TRANSITION:
            return [stopped, *self._answer(result)]
        try:
            return [stopped, *self._follow(active, Handoff.from_json(result.get("handoff")))]
        except LittleGhostError as error:
            return [stopped, *_fail(error)]

    def _follow(self, active: str, handoff: Handoff) -> list[Command]:
        to, steps, state = handoff.to, self._state["steps"], self._state
        if to not in (target["id"] for target in self._swarm.targets(active)):
            raise AssemblyRoutingError(f"{active!r} may not hand off to {to!r}")
        pairs = {name: dict(counts) for name, counts in state["pairs"].items()}
        counts = pairs.setdefault(active, {})
        counts[to] = counts.get(to, 0) + 1
        way = {**self._told, "from": active, "to": to}
        if counts[to] > self._swarm.max_handoff_repeats:
            error = AssemblyLimitError(
                f"{active!r} handed off to {to!r} more often than "
                f"{self._swarm.max_handoff_repeats} times (max_handoff_repeats)"
            )
            return [Emit("assembly_handoff_loop", {**way, "count": counts[to]}), *_fail(error)]
        if steps >= self._swarm.max_steps:
            raise AssemblyLimitError(
                f"the swarm used its {self._swarm.max_steps} steps (max_steps) before {active!r} "
                f"handed off to {to!r}"
            )
        came = {"by": active, "pid": state["pids"][-1], "step": state["pids"][0]}
        transition = Emit("assembly_transition", {**way, "step": steps})
        return [transition, *self._open(to, came=came, pairs=pairs)]

    def _answer(self, result: Mapping[str, Any]) -> list[Command]:
        message = assistant(str(result.get("output", "")))
        said = record_of(message)
        done = {
            "stop_reason": result.get("stop_reason", ""),
            "participant": self._lease.participant,
            "message": len(self._lease.records),
            "output": message.text,
        }
        return [Append((said,), (message,)), SetText(message.text), Complete(done, say=said)]

    def _failed(
        self, active: str, policy: StepPolicy, outcome: Outcome, failure: Failure
    ) -> list[Command]:
        """Try the member again, or fail as it did."""
        pids, again = self._state["pids"], outcome.status == "again"
        step = self._step(active, self._state["steps"])
        told = [
            *late_commands([outcome]),
            step.failed(pids, self._children, failure, again=again),
        ]
        if not again:
            # As the member recorded it, fields that this version does not know included.
            return [*told, Fail(self._children.get(pids[-1], {}).get("x", failure.to_json()))]
        return [
            *told,
            step.retried(pids, failure, policy.retry_delay_s),
            *self._open(
                active, came=self._state["came"], pairs=self._state["pairs"], before=self._state
            ),
        ]

    def _open(
        self,
        name: str,
        *,
        came: Mapping[str, str] | None,
        pairs: Mapping[str, Any],
        before: Mapping[str, Any] | None = None,
    ) -> list[Command]:
        """Start a member's step, or another attempt at it when there was one before."""
        lease, member = self._lease, self._member(name)
        number = self._state.get("next", 0)
        pids: list[str] = before["pids"] if before else []
        delay_s = member.policy.retry_delay_s if before else 0.0
        steps = self._state.get("steps", 0) + (before is None)
        context = view_of(lease).invocation.context if member.context else {}
        child, started = open_step(
            lease,
            self._env,
            self._step(name, steps),
            number,
            messages=self._messages(member, came),
            context=dict(context),
            attempt=len(pids) + 1,
            first=pids[0] if pids else None,
            predecessors=[came["step"]] if came else [],
            settings=lease.header.get("set"),
            delay_s=delay_s,
            final=True,
        )
        state = {
            "active": name,
            "pids": [*pids, child],
            "at": [*(before["at"] if before else ()), lease.now_ms + round(delay_s * 1000)],
            "came": came,
            "steps": steps,
            "next": number + 1,
            "pairs": pairs,
        }
        commands = [SetState(state), *_granted(started, self._swarm.targets(name))]
        if member.policy.timeout_s is not None:
            commands.append(Wake(delay_s + member.policy.timeout_s))
        return commands

    def _messages(self, member: Member, came: Mapping[str, str] | None) -> list[Message]:
        """Give what a member's conversation begins with."""
        # The swarm adds a message of its own only when it ends, so the newest is the request.
        *history, request = (item for item in self._lease.records if isinstance(item, Message))
        if came is not None:
            handed = self._children[came["pid"]]["r"]["handoff"]
            request = Handoff.from_json(handed).told(came["by"])
        return [*history, request] if member.history else [request]

    def _step(self, name: str, number: int) -> Told:
        return Told(assembly=self._member(name).agent, name=name, step=number)

    def _member(self, name: str) -> Member:
        member = self._swarm.roster().get(name)
        if member is None:
            raise AssemblyRoutingError(f"swarm {self._swarm.id()!r} has no member {name!r} here")
        return member


def _granted(commands: Sequence[Command], targets: Targets) -> list[Command]:
    """Let a member that is being started know to whom it may hand off."""
    if not targets:
        return list(commands)
    grants = grant(targets)
    return [
        replace(
            command,
            participants=[replace(item, grants=grants) for item in command.participants],
        )
        if isinstance(command, Start)
        else command
        for command in commands
    ]


def _fail(error: BaseException) -> list[Command]:
    return [Fail(Failure.of(error).to_json())]
