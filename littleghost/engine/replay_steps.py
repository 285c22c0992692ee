"""The children a workflow waits for: starting them, trying again, stopping them.

At most one operation is open at a time, since the workflow's code waits for it. Several children
without bounds of their own share one join, which minds the width and wakes the workflow once: see
`replay_many`. Others have a join of their own each, and the workflow minds the width.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from littleghost.engine.commands import CancelParticipants, Command
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.steps import (
    START_PIECE,
    Children,
    Outcome,
    Told,
    open_step,
    outcome_of,
)
from littleghost.errors import AssemblyError
from littleghost.failure import Failure
from littleghost.json_values import dumps
from littleghost.messages import Message, Text
from littleghost.policy import StepPolicy

# Texts up to this long are remembered with their digests: an advance goes through all of them.
SHORT_TEXT, MANY_TEXTS = 1000, 4096


# Not frozen, since making a frozen one takes several times as long, and each advance makes all.
@dataclass(slots=True, kw_only=True)
class StepRequest:
    """What a child is asked; never changed.

    Attributes:
        assembly: The registered class.
        registered: The name it is registered under.
        name: The participant's name in the workflow.
        message: Its input.
        history: The messages before it.
        context: The context its code sees.
        settings: Model settings on top of the invocation's.
        policy: Its bounds.
        final: Whether its answer is the workflow's.
    """

    assembly: Any
    registered: str
    name: str
    message: Message
    history: tuple[Message, ...]
    context: Mapping[str, Any]
    settings: Mapping[str, Any] | None
    policy: StepPolicy
    final: bool = False

    def step(self) -> Told:
        """Give what events say of it."""
        return Told(assembly=self.assembly, name=self.name)

    def told(self) -> list[str]:
        """Give what is compared when the code comes here again."""
        return [self.registered, self.name, _digest(self.message)]

    @property
    def is_bounded(self) -> bool:
        """Whether an attempt may be cut or followed by another."""
        return self.policy.timeout_s is not None or self.policy.retries > 0


@dataclass(slots=True, kw_only=True)
class Ended:
    """How a child ended: with a result, or with a failure; never changed.

    Attributes:
        stopped: Whether it only failed because another one beside it had.
    """

    result: Mapping[str, Any] | None = None
    failure: Failure | None = None
    stopped: bool = False


class OpenOperation:
    """The children a workflow waits for, in one advance; how they are kept differs.

    Attributes:
        commands: What is to be done.
        wake_s: Seconds until the workflow must look again, or None.
    """

    def __init__(
        self,
        lease: Lease,
        env: Collaborators,
        state: dict[str, Any],
        children: Children,
        requests: Sequence[StepRequest],
        *,
        width: int,
        settle: bool,
    ) -> None:
        """Look at the operation that the state holds; the state is changed in place."""
        self.commands: list[Command] = []
        self.wake_s: float | None = None
        self._lease, self._env, self._state = lease, env, state
        self._open: dict[str, Any] = state["open"]
        self._children, self._requests = children, requests
        self._width, self._settle = width, settle

    def go_on(self) -> list[dict[str, Any]] | None:
        """Do what is next; gives how each child ended when nothing of the operation is left."""
        raise NotImplementedError


class OpenSteps(OpenOperation):
    """An open operation whose children are looked at one by one."""

    @staticmethod
    def opened(index: int, count: int) -> dict[str, Any]:
        """Give the record of an operation that begins."""
        return {"i": index, "steps": [None] * count, "cut": []}

    def go_on(self) -> list[dict[str, Any]] | None:
        """Do what is next; gives how each child ended when nothing of the operation is left."""
        steps: list[dict[str, Any] | None] = self._open["steps"]
        outcomes = [self._outcome(number) for number in range(len(steps))]
        failing = not self._settle and any(one and one.status == "failed" for one in outcomes)
        stop = self._to_stop(outcomes, failing=failing)
        if stop:
            self._open["cut"] += stop
            self.commands.append(CancelParticipants(tuple(stop)))
            self.wake_s = 0.0
            return None
        if not failing:
            active = sum(one is not None and one.status == "running" for one in outcomes)
            for number, one in enumerate(outcomes):
                if one is not None and one.status == "again":
                    self._try_again(number, one)
                    active += 1
            unstarted = [number for number, one in enumerate(outcomes) if one is None]
            for number in unstarted[: min(START_PIECE, max(0, self._width - active))]:
                self._start(number)
                active += 1
            if active < self._width and len(unstarted) > START_PIECE:
                self._wake_in(0.0)
            if active:
                waits = [one.wake_s for one in outcomes if one and one.wake_s is not None]
                self._wake_in(*waits)
                return None
        return [self._close(number, one) for number, one in enumerate(outcomes)]

    def _outcome(self, number: int) -> Outcome | None:
        step = self._open["steps"][number]
        if step is None:
            return None
        policy = self._requests[number].policy
        return outcome_of(step, policy, self._children, self._lease.now_ms)

    def _to_stop(self, outcomes: Sequence[Outcome | None], *, failing: bool) -> list[str]:
        """Give the participants to be stopped that were not yet."""
        found: list[str] = []
        for step, one in zip(self._open["steps"], outcomes, strict=True):
            if one is None or step["pids"][-1] in self._open["cut"]:
                continue
            if one.late or (failing and one.status == "running"):
                found.append(step["pids"][-1])
        return found

    def _start(self, number: int, *, delay_s: float = 0.0) -> None:
        """Start the next attempt at a step."""
        request = self._requests[number]
        step = self._open["steps"][number] or {"pids": [], "at": []}
        child, commands = start_request(
            self._lease,
            self._env,
            self._state,
            request,
            attempt=len(step["pids"]) + 1,
            first=step["pids"][0] if step["pids"] else None,
            delay_s=delay_s,
        )
        step["pids"].append(child)
        step["at"].append(self._lease.now_ms + round(delay_s * 1000))
        self._open["steps"][number] = step
        self.commands += commands
        if request.policy.timeout_s is not None:
            self._wake_in(delay_s + request.policy.timeout_s)

    def _try_again(self, number: int, outcome: Outcome) -> None:
        request, step = self._requests[number], self._open["steps"][number]
        assert outcome.failure is not None
        failure, pids, delay_s = outcome.failure, step["pids"], request.policy.retry_delay_s
        self.commands += [
            request.step().failed(pids, self._children, failure, again=True),
            request.step().retried(pids, failure, delay_s),
        ]
        self._start(number, delay_s=delay_s)

    def _close(self, number: int, outcome: Outcome | None) -> dict[str, Any]:
        """Tell how a step ended, and give what is recorded of it."""
        request, step = self._requests[number], self._open["steps"][number]
        if outcome is None:
            return {"x": not_needed("was not started").to_json(), "stopped": True}
        pids: Sequence[str] = step["pids"]
        last = pids[-1]
        if outcome.status == "done":
            self.commands.append(request.step().stopped(pids, self._children))
            self._state["last"] = pids[0]
            return {"p": last}
        failure = outcome.failure or not_needed("was stopped")
        if outcome.failure is not None:
            # The code may go on from it, and what is next then followed this one.
            self._state["last"] = pids[0]
        self.commands.append(request.step().failed(pids, self._children, failure, again=False))
        if last in self._children:
            return {"p": last}
        return {"x": failure.to_json(), "stopped": outcome.failure is None}

    def _wake_in(self, *seconds: float) -> None:
        known = [] if self.wake_s is None else [self.wake_s]
        self.wake_s = min([*known, *seconds], default=None)


def start_request(
    lease: Lease, env: Collaborators, state: dict[str, Any], request: StepRequest, **values: Any
) -> tuple[str, list[Command]]:
    """Start an attempt at a step; counts it in the state.

    Args:
        **values: More arguments of `open_step`.

    Returns:
        The child's participant id, and the commands that start it and tell of it.
    """
    last, number = state.get("last"), state.get("n", 0)
    child, commands = open_step(
        lease,
        env,
        request.step(),
        number,
        messages=[*request.history, request.message],
        context=request.context,
        settings={**lease.header.get("set", {}), **(request.settings or {})} or None,
        predecessors=[last] if last else (),
        final=request.final,
        **values,
    )
    state["n"] = number + 1
    return child, commands


def not_needed(what: str) -> Failure:
    """Make the failure of a step that only failed because another one had."""
    return Failure.of(AssemblyError(f"the step {what}, since another one beside it failed"))


def _digest(message: Message) -> str:
    if len(message.content) == 1 and not message.metadata:
        block = message.content[0]
        if isinstance(block, Text) and len(block.text) <= SHORT_TEXT:
            return _digest_of_text(message.role, block.text)
    return _digest_of(message)


@lru_cache(maxsize=MANY_TEXTS)
def _digest_of_text(role: Any, text: str) -> str:
    return _digest_of(Message(role, (Text(text),)))


def _digest_of(message: Message) -> str:
    return hashlib.sha256(dumps(message.to_json()).encode()).hexdigest()[:12]
