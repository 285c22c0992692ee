"""What a workflow must give: its program, done once from the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from littleghost.errors import LittleGhostError, ProtocolError
from littleghost.workflow import StepFailedError
from tests.support import plans
from tests.support.actors import error_class
from tests.support.expected import Ambiguous, Done, Failed, Key, Made, Scope
from tests.support.plans import crc, text_for

if TYPE_CHECKING:
    from tests.support.reference import Reference


class _Return(Exception):  # noqa: N818 - it is no error
    def __init__(self, done: Done) -> None:
        super().__init__()
        self.done = done


class FlowReference:
    """Works one workflow out."""

    def __init__(self, all_: Reference, text: str, seen: int, scope: Scope) -> None:
        self._all, self._text, self._history, self._scope = all_, text, seen, scope
        self._vars: dict[str, str] = {}
        self._read: dict[str, Done] = {}
        self._number = 0
        self._last: set[tuple[Key, ...]] = {()}

    def run(self, plan: plans.FlowPlan) -> Done:
        """Do the program."""
        try:
            self._do(plan.program)
        except _Return as returned:
            return returned.done
        return Done("fell through")

    def _do(self, program: Sequence[plans.Op]) -> None:
        for op in program:
            if isinstance(op, plans.Guard):
                self._guard(op)
            elif isinstance(op, plans.Choose):
                is_so = crc(self._vars.get(op.var, "-")) % op.modulus == 0
                self._do(op.body if is_so else op.other)
            elif isinstance(op, plans.Repeat):
                for _ in range(op.times):
                    self._do(op.body)
            else:
                self._do_one(op)

    def _do_one(self, op: plans.Op) -> None:
        if isinstance(op, plans.Invoke):
            name = self._name(op.ask)
            if op.read:
                done = self._ask(op.ask, name)
                self._vars[op.ask.var], self._read[op.ask.var] = done.text, done
        elif isinstance(op, plans.Parallel):
            self._parallel(op)
        elif isinstance(op, plans.Memo):
            self._all.entries.append(Made(key=self._scope.key, var=op.var))
            if op.breaks:
                raise Failed(ValueError)
            self._vars[op.var] = self._told(op.var, op.reads)
        elif isinstance(op, plans.Raise):
            raise Failed(error_class(op.error), own=True)
        elif isinstance(op, plans.Return):
            raise _Return(self._returned(op))

    def _told(self, tag: str, reads: tuple[str, ...]) -> str:
        return text_for(tag, [self._vars.get(name, "-") for name in reads])

    def _name(self, ask: plans.Ask) -> str:
        self._number += 1
        return f"{ask.var}.{self._number}"

    def _start(self, ask: plans.Ask, name: str) -> tuple[Key, Done | Failed]:
        text = self._text if ask.whole else self._told(ask.var, ask.reads)
        seen = 0 if ask.forgets else self._history
        return self._all.step(
            self._scope, name, ask.plan, text, seen, bounds=ask.bounds, before=self._last
        )

    def _ask(self, ask: plans.Ask, name: str) -> Done:
        key, outcome = self._start(ask, name)
        self._last = {(key,)}
        if isinstance(outcome, Failed):
            raise outcome
        return outcome

    def _parallel(self, op: plans.Parallel) -> None:
        names = [self._name(ask) for ask in op.asks]
        keys: list[Key] = []
        outcomes: list[Done | Failed] = []
        spans: list[tuple[int, int]] = []
        for ask, name in zip(op.asks, names, strict=True):
            mark = len(self._all.entries)
            key, outcome = self._start(ask, name)
            keys.append(key)
            outcomes.append(outcome)
            spans.append((mark, len(self._all.entries)))
        failures = [one.error for one in outcomes if isinstance(one, Failed)]
        if failures and not op.settle:
            if len(set(failures)) > 1:
                raise Ambiguous
            for (start, stop), one in zip(spans, outcomes, strict=True):
                if len(failures) > 1 or isinstance(one, Done):
                    for entry in self._all.entries[start:stop]:
                        entry.loose = True
            self._last = {(key,) for key in keys}
            raise Failed(failures[0])
        self._last = {(keys[-1],)}
        for ask, one in zip(op.asks, outcomes, strict=True):
            self._vars[ask.var] = (
                _raised(one.error).__name__ if isinstance(one, Failed) else one.text
            )

    def _guard(self, op: plans.Guard) -> None:
        try:
            self._do(op.body)
        except Failed as failed:
            error = failed.error if failed.own else _raised(failed.error)
            if not issubclass(error, error_class(op.on)):
                raise
            self._vars["error"] = error.__name__
            self._do(op.handler)

    def _returned(self, op: plans.Return) -> Done:
        if op.what == "json":
            return Done({"said": [self._vars.get(name, "-") for name in op.reads]})
        if op.what == "none":
            raise Failed(ProtocolError)
        if op.what == "unread" and op.ask is not None:
            return Done(self._ask(op.ask, self._name(op.ask)).output)
        if op.what == "read" and op.reads and op.reads[0] in self._read:
            return Done(self._read[op.reads[0]].output)
        return Done(self._told("said", op.reads))


def _raised(error: type[BaseException]) -> type[BaseException]:
    """Give the class of the exception that a workflow's code gets for a child's error."""
    return error if issubclass(error, LittleGhostError) else StepFailedError
