"""What agents, swarms and all that is made of them must give when nothing goes wrong.

It is plain recursion over plans, written from what they promise; it shares no code with the engine.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from littleghost.errors import AssemblyLimitError
from tests.support import plans
from tests.support.actors import error_class
from tests.support.expected import Ambiguous, Calls, Done, Entry, Expected, Failed, Key, Scope
from tests.support.plans import Actor, Bounds, Example, GraphPlan, SwarmPlan
from tests.support.reference_flow import FlowReference
from tests.support.reference_graph import GraphReference

# Longer examples are left out.
MAX_ENTRIES = 120


class Reference:
    """Works an example out."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._seen: Counter[Any] = Counter()

    def outcome(self, example: Example) -> Done | Failed:
        """Give how the run ends; the entries then say what must be seen of it."""
        try:
            return self.run(example.plan, example.text, example.history, Scope((), 1, None))
        except Failed as failed:
            return failed

    def run(self, plan: plans.Plan, text: str, seen: int, scope: Scope) -> Done:
        """Give what a participant gives back, or raise what it fails with."""
        if len(self.entries) > MAX_ENTRIES:
            raise Ambiguous("too long to be of use")
        if isinstance(plan, Actor):
            return self._actor(plan, text, seen, scope, ())
        if isinstance(plan, GraphPlan):
            return GraphReference(self, plan, text, seen, scope).run()
        if isinstance(plan, SwarmPlan):
            return self._swarm(plan, text, seen, scope)
        return FlowReference(self, text, seen, scope).run(plan)

    def step(
        self,
        scope: Scope,
        name: str,
        plan: plans.Plan,
        text: str,
        seen: int,
        *,
        bounds: Bounds,
        before: set[tuple[Key, ...]],
        branch: str | None = None,
        targets: tuple[str, ...] = (),
    ) -> tuple[Key, Done | Failed]:
        """Give what a step gives back, after all its attempts."""
        place = (scope.key, scope.attempt, name, branch)
        key = (*place, self._seen[place])
        self._seen[place] += 1
        kinds: dict[type, str] = {Actor: "agent", GraphPlan: "graph", SwarmPlan: "swarm"}
        entry = Expected(
            key=key,
            parent=scope.home,
            kind=kinds.get(type(plan), "workflow"),
            branch=branch,
            before=before,
        )
        self.entries.append(entry)
        for number in range(1, bounds.retries + 2):
            inside = Scope(key, number, key)
            try:
                if isinstance(plan, Actor):
                    done = self._actor(plan, text, seen, inside, targets)
                else:
                    done = self.run(plan, text, seen, inside)
            except Failed as failed:
                entry.attempts.append(failed.error.__name__)
                again = bounds.retries and issubclass(failed.error, error_class(bounds.retry_on))
                if not again or number > bounds.retries:
                    return key, failed
                continue
            entry.attempts.append(None)
            entry.output = done.output if done.shown is None else done.shown
            return key, done
        raise AssertionError("unreachable")

    def _actor(
        self, plan: Actor, text: str, seen: int, scope: Scope, targets: tuple[str, ...]
    ) -> Done:
        word = plan.word(text, seen)
        calls = Calls(key=(scope.key, scope.attempt))
        self.entries.append(calls)
        fails = scope.attempt <= plan.flaky or (
            plan.fails is not None and word % plan.fails[0] == plan.fails[1]
        )
        error = error_class("InvalidRequestError" if scope.attempt <= plan.flaky or not plan.fails
                            else plan.fails[2])  # fmt: skip
        begins = bool(plan.calls) or plan.helper is not None
        if fails and not (begins and plan.late):
            raise Failed(error)
        told: str | None = None
        if begins:
            calls.names, calls.turns = plan.calls, 1
            calls.helped = plan.helper is not None
        if plan.helper is not None:
            inside = Scope((scope.key, scope.attempt, "helper"), 1, scope.home)
            try:
                told = self.run(plan.helper, f"h{word % 1_000}", 0, inside).text
            except Failed as failed:
                told = f"Tool failed ({failed.error.__name__})"
        if fails:
            raise Failed(error)
        for turn in range(plans.OTHER_TURNS + 1):
            calls.turns += 1
            what, to = plan.move(word, turn)
            if what == "answer":
                return Done(plan.answer(word, told))
            if what == "hand" and to in targets:
                message = plan.answer(word, told)
                payload = {"to": to, "message": message, "context": None}
                return Done("", shown=payload, to=to)
        raise AssertionError("unreachable")

    def _swarm(self, plan: SwarmPlan, text: str, seen: int, scope: Scope) -> Done:
        members = {one.actor.name: one for one in plan.members}
        active, before = plan.members[0].actor.name, set[tuple[Key, ...]]({()})
        pairs: Counter[tuple[str, str]] = Counter()
        for steps in range(1, plan.max_steps + 2):
            member = members[active]
            key, done = self.step(
                scope,
                active,
                member.actor,
                text,
                seen if member.history else 0,
                bounds=member.bounds,
                before=before,
                targets=plan.targets(active),
            )
            if isinstance(done, Failed):
                raise done
            if not done.to:
                return done
            pairs[active, done.to] += 1
            if pairs[active, done.to] > plan.max_repeats or steps == plan.max_steps:
                raise Failed(AssemblyLimitError)
            text = f"Handoff from {active}:\n{done.shown['message']}"
            active, before = done.to, {(key,)}
        raise AssertionError("unreachable")
