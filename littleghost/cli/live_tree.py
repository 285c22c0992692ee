"""Who takes part in a run, and what each of them is doing, made of its events. Pure.

Events may begin anywhere: whoever an event names is put in its place, with those above it. Only a
number of those that have ended are kept; of older ones only how many they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from littleghost.cli.escape import one_line
from littleghost.cli.participants import (
    NAME_CHARS,
    Participant,
    State,
    Turn,
    call_of,
    count,
    model_event,
    tool_event,
)
from littleghost.events import ASSEMBLY_TYPES, PERSON_TYPES, RAW_AGENT_TYPES, StreamEvent
from littleghost.usage import Usage

KEPT_ENDED = 200
_MAX_WAYS = 1_000
# Participants that are no step of a composite.
BESIDE = frozenset({"tool", "subagent"})


class Tree:
    """Follows a run's events; see `feed`.

    Attributes:
        root: The run's own assembly.
        is_composite: Whether that is a workflow, swarm or graph, as far as events have told.
    """

    def __init__(self) -> None:
        self.root = Participant("", "")
        self.is_composite = False
        self._known: dict[str, Participant] = {}
        self._ended: dict[str, Participant] = {}

    def feed(self, event: StreamEvent, now: float | None) -> None:
        """Take in an event.

        Args:
            now: The watcher's own clock, in seconds; None for what happened before it watched.
        """
        if event.is_terminal:
            outcome = event.data.get("outcome")
            self._finish(self.root, "done" if outcome == "completed" else "failed", now)
        elif event.type == "run_start":
            self.root.began = now
        elif event.type in RAW_AGENT_TYPES:
            pass
        elif event.type in ASSEMBLY_TYPES:
            self._composite(event.type, event.data, now)
        elif event.type in PERSON_TYPES or event.type == "signal_awaited":
            self._person(event.type, event.data)
        elif event.type == "agent_stream":
            self._agent(event, now)

    def find(self, source: Mapping[str, Any]) -> Participant | None:
        """Give the participant that an event's source names, if it is known."""
        operation = str(source.get("operation_id", ""))
        found = self._known.get(operation)
        if found is not None:
            return found
        path = source.get("assembly_path") or ()
        return self._known.get(str(path[-1].get("step_id", ""))) if path else self.root

    def _place(self, source: Mapping[str, Any]) -> Participant | None:
        """Find a source's participant, or make it; None below one that has ended."""
        place: Participant = self.root
        for part in source.get("assembly_path") or ():
            how = str(part.get("assembly_kind", ""))
            if how not in BESIDE:
                place.kind = one_line(how, NAME_CHARS)
                place.name = place.name or one_line(str(part.get("assembly_id", "")), NAME_CHARS)
                self.is_composite = self.is_composite or place is self.root
            name = str(part.get("participant", ""))
            below = self._below(place, str(part.get("step_id", "")), name)
            if below is None:
                return None
            place = below
        agent, operation = str(source.get("agent_id", "")), str(source.get("operation_id", ""))
        if place.operation and source.get("parent_operation_id") == place.operation:
            # It has no place of its own in the path.
            return self._below(place, operation, agent)
        place.operation = operation
        if place is self.root:
            place.name = place.name or one_line(agent, NAME_CHARS)
        return place

    def _below(self, parent: Participant, key: str, name: str) -> Participant | None:
        child = parent.children.get(key)
        if child is None:
            if parent.has_ended:
                return None
            shown = one_line(name, NAME_CHARS)
            child = Participant(key, shown, parent, after=parent.ways.pop(name, ""))
            parent.children[key] = self._known[key] = child
        return child

    def _composite(self, kind: str, data: Mapping[str, Any], now: float | None) -> None:
        place = self._place(data.get("source") or {})
        if place is None:
            return
        place.waits = ""
        if place is self.root:
            self.is_composite = True
        if kind in ("assembly_fork", "assembly_join", "assembly_transition"):
            place.kind = one_line(str(data.get("assembly_kind", place.kind)), NAME_CHARS)
            for name, before in ways(data):
                if len(place.ways) < _MAX_WAYS:
                    place.ways[name] = one_line(before, 2 * NAME_CHARS)
            return
        if kind == "assembly_handoff_loop":
            place.why = "it goes round in circles"
            return
        name = str(data.get("participant", ""))
        step = self._below(place, str(data.get("step_id", "")), name)
        if step is not None:
            self._step(kind, step, data, now)

    def _step(
        self, kind: str, step: Participant, data: Mapping[str, Any], now: float | None
    ) -> None:
        if kind == "assembly_step_start":
            step.kind = one_line(str(data.get("assembly_kind", "")), NAME_CHARS)
            self._resume(step)
            step.began = now if step.began is None else step.began
        elif kind == "assembly_step_stop":
            # With all below it; its own turns were counted as they ended, failed attempts' too.
            used = Usage.from_json(data.get("usage") or {})
            step.usage = max(step.usage, used, key=lambda usage: usage.total)
            self._finish(step, "done", now)
        elif kind == "assembly_step_error":
            step.attempt = _number(data.get("attempt"))
            step.why = one_line(str(data.get("error_type", "")), NAME_CHARS)
            self._finish(step, "failed", now)
        else:
            step.attempt = _number(data.get("attempt")) + 1
            self._resume(step)
            step.state = "again"

    def _person(self, kind: str, data: Mapping[str, Any]) -> None:
        place = self._place(data.get("source") or {})
        asked = one_line(str(data.get("id", "")), 80)
        if place is None:
            return
        if kind == "signal_awaited":
            place.waits = one_line(str(data.get("name", "")), NAME_CHARS)
            return
        if kind == "approval_requested":
            use = data.get("tool_use") or {}
            call = place.calls.setdefault(str(use.get("id", "")), call_of(use, None))
            call.state, call.asked = "asks", asked
            return
        for call in place.calls.values():
            if call.asked == asked and call.state == "asks":
                call.state = "running"

    def _agent(self, event: StreamEvent, now: float | None) -> None:
        source, inner, data = event.data.get("source") or {}, event.inner_type, event.inner["data"]
        place = self._place(source)
        if place is None:
            return
        if inner == "invocation_start":
            self._resume(place)
            place.began = now if place.began is None else place.began
        elif inner in RAW_AGENT_TYPES:
            self._finish(place, "done" if inner == "invocation_stop" else "failed", now)
        elif place.has_ended:
            # What an attempt says after it was given up.
            return
        elif inner == "model_start":
            place.state = "running"
            place.turn = Turn(count(data.get("turn")) + 1, now)
        elif inner in ("tool_start", "tool_stop"):
            tool_event(place, inner, data, now)
        else:
            model_event(place, inner, data)

    def _resume(self, place: Participant) -> None:
        if place.state != "running":
            place.turn = None
            place.calls.clear()
        place.state, place.seconds = "running", None
        self._ended.pop(place.key, None)

    def _finish(self, place: Participant, state: State, now: float | None) -> None:
        for child in list(place.children.values()):
            if not child.has_ended:
                self._finish(child, "stopped", now)
        if place.seconds is None and now is not None and place.began is not None:
            place.seconds = now - place.began
        place.state, place.turn, place.waits = state, None, ""
        place.ways.clear()
        for key, call in list(place.calls.items()):
            if call.state in ("running", "asks"):
                del place.calls[key]
        if place.parent is None:
            return
        self._ended[place.key] = place
        while len(self._ended) > KEPT_ENDED:
            self._fold(self._ended.pop(next(iter(self._ended))))

    def _fold(self, place: Participant) -> None:
        self._known.pop(place.key, None)
        if place.parent is not None and place.parent.children.pop(place.key, None):
            place.parent.folded += 1 + place.folded


def ways(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give from a fork, a join or a transition who is next, and after whom."""
    before = data.get("from")
    names = before if isinstance(before, list) else [before]
    told = " + ".join(str(name) for name in names)
    if data.get("error"):
        told += " failed"
    targets = data.get("branches") or [data.get("to")]
    for target in targets:
        yield str(target), told


def _number(value: object) -> int:
    return max(1, count(value))
