"""Replaying a workflow: its code runs from the top, and what it asked for before is answered.

The composite's list holds, besides what its children gave back, one record for each operation in
the order in which the code came to it: `{"m": index, "ask": what was asked, "v": value | "x":
error}`; for children `{"m", "ask"}` when they were started and `{"m", "end": [{"p": participant} |
{"x": error}]}` when they had all ended. A wait for a signal is `{"m", "ask", "at": since when}` and
then `{"m", "got": number of the signal | "late": true}`; the journal puts a signal into the list as
`{"g": name, "v": value}`. The state holds only what is open: `{"n": number of the next child,
"last": the newest step that ended by itself, "signals": taken, "open": {"i": index, …}}`.

While a child may still give something back, an advance appends nothing: the list is changed by one
side at a time. So children are first stopped, and what became of them is decided in the advance
after that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from littleghost import errors
from littleghost.engine.commands import Append, AwaitSignal, Command, Emit, SetState, Wake
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.replay_many import ManySteps
from littleghost.engine.replay_steps import Ended, OpenSteps, StepRequest
from littleghost.errors import (
    AssemblyError,
    AssemblyLimitError,
    LittleGhostError,
    ReplayError,
    SignalTimeoutError,
)
from littleghost.failure import Failure
from littleghost.json_values import copy_json, dumps

# How many operations one workflow may ask for: each advance goes through all of them again.
MAX_OPERATIONS = 10_000
# How many values one commit records at most; then the code is run again from the top.
MAX_VALUES = 250
# How many children of an operation a message names.
_NAMED = 10


class SuspendedError(BaseException):
    """Unwinds a workflow's code: what it needs next is not there yet."""


class StepFailedError(AssemblyError):
    """Something a workflow asked for failed with an error of the application's own.

    Attributes:
        failure: What is known of the error.
    """

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


def error_of(failure: Failure) -> LittleGhostError:
    """Make the exception that a workflow's code gets for a failure.

    Returns:
        One of the class it was, when that is one of `littleghost.errors`; else a StepFailedError.
        Either has the failure as its attribute `failure`.
    """
    kind = getattr(errors, failure.type, None)
    if isinstance(kind, type) and issubclass(kind, LittleGhostError) and kind.code == failure.code:
        error = kind(failure.detail or failure.message)
        error.__dict__["failure"] = failure
        return error
    return StepFailedError(f"{failure.type}: {failure.detail or failure.message}", failure)


def failure_of(error: BaseException) -> Failure:
    """Describe what ended a workflow's code; the failure of a step stays what it was."""
    failure = getattr(error, "failure", None)
    return failure if isinstance(failure, Failure) else Failure.of(error)


@dataclass(slots=True)
class _Asked:
    index: int
    ask: Mapping[str, Any]
    known: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The operation that the code waits in, as it asked for it."""

    index: int
    ask: Mapping[str, Any]
    requests: Sequence[StepRequest]
    width: int
    settle: bool

    def opened(
        self, lease: Lease, env: Collaborators, state: dict[str, Any]
    ) -> OpenSteps | ManySteps:
        """Look at what is open of it; the state is changed in place."""
        is_many = len(self.requests) > 1 and not any(item.is_bounded for item in self.requests)
        if "open" not in state:
            state["open"] = (
                ManySteps.opened(self.index, state)
                if is_many
                else OpenSteps.opened(self.index, len(self.requests))
            )
        return (ManySteps if is_many else OpenSteps)(
            lease,
            env,
            state,
            lease.recorded.children,
            self.requests,
            width=self.width,
            settle=self.settle,
        )


class Replay:
    """One run through a workflow's code, and what it asks for beyond what is recorded.

    Attributes:
        suspended: Whether the code was unwound; whatever it did afterwards does not count.
        refused: Set once the code asked for something else than what is recorded, or for too
            much; the code may have caught the error, which ends the workflow all the same.
    """

    def __init__(self, lease: Lease, env: Collaborators, owner: str) -> None:
        """Read what is recorded.

        Args:
            owner: The workflow's name in error messages.
        """
        self.suspended = False
        self.refused: LittleGhostError | None = None
        self._lease, self._env, self._owner = lease, env, owner
        self._recorded = lease.recorded
        self._memo = self._recorded.operations
        # What this advance adds to an operation; the index holds only what is in the journal.
        self._added: dict[int, Mapping[str, Any]] = {}
        self._state: dict[str, Any] = copy_json(dict(lease.state))
        self._index = 0
        self._inside: str | None = None
        self._records: list[dict[str, Any]] = []
        self._commands: list[Command] = []
        self._wake_s: float | None = None

    @property
    def now_ms(self) -> int:
        """The journal's time."""
        return self._lease.now_ms

    def go_on(self) -> bool:
        """Go on with what is open, if this process knows what the code asked for.

        Returns:
            Whether that is all: the code could only come to where it waits. Otherwise it is to be
            run.
        """
        waiting: _Waiting | None = self._recorded.waiting
        if waiting is None or self._state.get("open", {}).get("i") != waiting.index:
            return False
        if self._memo.get(waiting.index, {}).get("ask") != waiting.ask:
            return False
        opened = waiting.opened(self._lease, self._env, self._state)
        end = opened.go_on()
        self._commands += opened.commands
        if end is None:
            self._wake_s, self.suspended = opened.wake_s, True
            return True
        self._close(waiting.index, end)
        return False

    def _close(self, index: int, end: list[dict[str, Any]]) -> None:
        self._recorded.waiting = None
        self._state.pop("open", None)
        self._records.append({"m": index, "end": end})
        self._added[index] = {**self._memo.get(index, {}), "end": end}

    def value(self, kind: str, name: str, make: Callable[[], Any]) -> Any:
        """Give a value that is made once and recorded; so is the error of making it.

        Args:
            kind: The operation.
            name: What tells it from others of its kind.
            make: Gives JSON; must not use the replay.
        """
        asked = self._ask({"k": kind, "n": name})
        known = asked.known
        if known is None:
            self._inside = f"{kind} {name}".strip()
            try:
                made = {"v": make()}
            except Exception as error:  # noqa: BLE001 - recorded, so that it is the same next time
                made = {"x": Failure.of(error).to_json()}
            finally:
                self._inside = None
            known = self._record(asked, made)
            if len(self._records) >= MAX_VALUES:
                self._suspend(0.0)
        if "x" in known:
            raise error_of(Failure.from_json(known["x"]))
        # The caller may change its copy; the recorded one must stay.
        return copy_json(known["v"])

    def sleep(self, seconds: float) -> None:
        """Go on when a time has passed since the code first came here."""
        asked = self._ask({"k": "sleep", "n": f"{seconds:g} s"})
        known = asked.known
        if known is None:
            known = self._record(asked, {"v": self.now_ms + round(seconds * 1000)})
        left_ms = known["v"] - self.now_ms
        if left_ms > 0:
            self._suspend(left_ms / 1000)

    def signal(self, name: str, timeout_s: float | None) -> Any:
        """Give the value of the signal that the journal delivered for this wait.

        Raises:
            SignalTimeoutError: None came in time.
        """
        asked = self._ask({"k": "wait_for", "n": name})
        known = asked.known or self._record(asked, {"at": self.now_ms})
        if "got" not in known and "late" not in known:
            end = self._signal_end(known, name, timeout_s, is_new=asked.known is None)
            self._records.append({"m": asked.index, **end})
            known = self._added[asked.index] = {**known, **end}
        if "late" in known:
            raise SignalTimeoutError(f"no signal {name!r} came within {timeout_s:g} s")
        return copy_json(self._recorded.signals[known["got"]]["v"])

    def _signal_end(
        self, known: Mapping[str, Any], name: str, timeout_s: float | None, *, is_new: bool
    ) -> dict[str, Any]:
        used = self._state.get("signals", 0)
        if used < len(self._recorded.signals):
            self._state["signals"] = used + 1
            return {"got": used}
        left_s = None
        if timeout_s is not None:
            left_s = timeout_s - (self.now_ms - known["at"]) / 1000
            if left_s <= 0:
                return {"late": True}
        if is_new:
            data = {"name": name, "timeout_s": timeout_s}
            self._commands.append(Emit("signal_awaited", data))
        self._commands.append(AwaitSignal(name, left_s))
        return self._suspend(None)

    def steps(
        self, kind: str, requests: Sequence[StepRequest], *, width: int, settle: bool
    ) -> list[Ended]:
        """Give what became of some children; starts them when the code first comes here.

        Args:
            kind: The operation.
            requests: What each child is asked.
            width: How many of them may run at once.
            settle: Whether a failed one leaves the others alone.
        """
        asked = self._ask({"k": kind, "s": [request.told() for request in requests]})
        known = asked.known
        if known is not None and "end" in known:
            return [self._ended(item) for item in known["end"]]
        if known is None:
            self._record(asked, {})
        waiting = _Waiting(asked.index, asked.ask, requests, width, settle)
        try:
            opened = waiting.opened(self._lease, self._env, self._state)
            end = opened.go_on()
        except Exception:
            # The code may catch it and go on, as if it had asked for nothing here.
            if known is None:
                self._records.pop()
                del self._state["open"]
            raise
        self._commands += opened.commands
        if end is None:
            self._recorded.waiting = waiting
            self._suspend(opened.wake_s)
        self._close(asked.index, end)
        return [self._ended(item) for item in end]

    def returned(self) -> None:
        """Check that the code came to everything that is recorded.

        Raises:
            ReplayError: It returned before.
        """
        known = self._memo.get(self._index)
        if known is not None:
            raise self._differs(self._index, known, "returns")

    def commands(self) -> list[Command]:
        """Give what the code asked for in this run through it."""
        found: list[Command] = []
        if self._records:
            texts = tuple(map(dumps, self._records))
            found.append(Append(texts, tuple(self._records)))
        found += self._commands
        if self._state != self._lease.state:
            found.append(SetState(self._state))
        if self.suspended and self._wake_s is not None:
            found.append(Wake(self._wake_s))
        return found

    @property
    def appended(self) -> int:
        """How many records `commands` appends."""
        return len(self._records)

    def _ask(self, ask: dict[str, Any]) -> _Asked:
        """Come to the next operation, and compare it with what is recorded.

        Raises:
            ReplayError: Something else is recorded.
            AssemblyLimitError: It is one too many.
            AssemblyError: The code of a step asks for something.
            SuspendedError: The code went on after it was unwound or refused.
        """
        if self.suspended or self.refused is not None:
            raise SuspendedError
        if self._inside is not None:
            raise AssemblyError(
                f"{self._owner}: {_named(ask)} inside of {self._inside!r}; what is recorded as one "
                "value cannot wait for others"
            )
        index = self._index
        if index >= MAX_OPERATIONS:
            self.refused = AssemblyLimitError(
                f"{self._owner} asked for more than {MAX_OPERATIONS} operations; have children do "
                "the work in pieces, each a workflow of its own"
            )
            raise self.refused
        self._index += 1
        known = self._added.get(index) or self._memo.get(index)
        if known is not None and known["ask"] != ask:
            raise self._differs(index, known, f"asks for {_named(ask)}")
        return _Asked(index, ask, known)

    def _differs(self, index: int, known: Mapping[str, Any], now: str) -> LittleGhostError:
        self.refused = ReplayError(
            f"{self._owner}: operation {index} is recorded as {_named(known['ask'])}, but perform "
            f"now {now}; keep what a run has done already, and let whatever varies go through "
            "step(), now(), random() and uuid()"
        )
        return self.refused

    def _record(self, asked: _Asked, made: Mapping[str, Any]) -> dict[str, Any]:
        record = {"m": asked.index, "ask": asked.ask, **made}
        self._records.append(record)
        return record

    def _ended(self, item: Mapping[str, Any]) -> Ended:
        record = self._recorded.children[item["p"]] if "p" in item else item
        if "x" in record:
            return Ended(failure=Failure.from_json(record["x"]), stopped=item.get("stopped", False))
        return Ended(result=copy_json(record["r"]))

    def _suspend(self, wake_s: float | None) -> NoReturn:
        self._wake_s = wake_s
        self.suspended = True
        raise SuspendedError


def _named(ask: Mapping[str, Any]) -> str:
    """Put an operation into words."""
    if "s" not in ask:
        return f"{ask['k']} {ask['n']}".strip()
    steps = [f"{name} ({assembly}, input {digest})" for assembly, name, digest in ask["s"][:_NAMED]]
    more = len(ask["s"]) - _NAMED
    return f"{ask['k']} of {', '.join(steps)}" + (f" and {more} more" if more > 0 else "")
