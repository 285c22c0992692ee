"""Turns of an agent's subagents: which may start, and with what conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from littleghost.engine.commands import Join
from littleghost.engine.decide.graph_state import text_of
from littleghost.engine.opening import advance_id, open_child
from littleghost.engine.subagent_answers import Answers
from littleghost.engine.subagent_state import DURABLE, GONE, Identity, failed
from littleghost.errors import LittleGhostError
from littleghost.messages import Message, assistant, user


class Turns(Answers):
    """Starts the turns for which there is room."""

    def _start_turns(self) -> None:
        active = sum(item.pid is not None and bool(item.kind) for item in self._ids.values())
        waiting = [item for item in self._ids.values() if item.queue and item.pid is None]
        for item in sorted(waiting, key=lambda item: item.queue[0]):
            if not item.kind:
                self._start(item)
            elif active < self._limits.concurrent:
                active += self._start(item)

    def _start(self, item: Identity) -> bool:
        """Start an identity's next turn; gives whether that was possible."""
        place = item.queue.pop(0)
        request = self._lease.records[place]["q"]
        try:
            self._open(item, request)
        except LittleGhostError:
            # Such as a kind of an earlier run that is not declared any more, or one level too many.
            item.status = "failed"
            self._close(item, [place, *item.queue], failed(GONE))
            item.queue = []
            self._tell("factory_failed", item)
            return False
        item.now, item.status, item.asked = place, "running", 0
        item.turns += 1
        self._state["turns"] += bool(item.kind)
        self._tell("turn_started", item)
        return True

    def _close(self, item: Identity, places: Sequence[int], answer: Mapping[str, Any]) -> None:
        """Answer those who wait for turns that will not come."""
        for place in places:
            request = self._lease.records[place]["q"]
            if not item.kind:
                self._error(request, "Tool failed (it could not be started)")
            elif request.get("mode") != "async":
                self._reply(request, {**self._snapshot(item), **answer})

    def _open(self, item: Identity, request: Mapping[str, Any]) -> None:
        """Start the participant that takes a turn.

        Raises:
            LittleGhostError: There is no such assembly, or it would be nested too deeply.
        """
        assembly = self._env.assemblies.lookup(item.assembly)
        child = f"{self._lease.participant}.{self._state['n']}"
        goes_on = item.last if assembly.kind == "agent" and not item.broken else None
        kept = item.digest if item.resumed and item.last is None else None
        earlier = [] if goes_on else self._transcript(item)
        _, events, start = open_child(
            self._lease,
            self._env,
            assembly,
            self._state["n"],
            messages=[*earlier, user(request["message"])],
            context=self._lease.records[item.first]["q"]["context"],  # type: ignore[index]
            settings=self._lease.header.get("set"),
            join=child,
            path=(*self._lease.header.get("path", ()), self._place(item, request, child)),
            grants=self._grants(item),
        )
        # One that goes on has its working state already, and has changed it.
        changed: dict[str, Any] = {"continues": goes_on, "working": {}} if goes_on else {}
        if kept:
            changed = {"kept": kept, "in_run": self._scope != DURABLE}
        at = item.size if goes_on else 2 * item.turns if kept else len(earlier)
        events = [replace(event, record=at) for event in events]
        participants = [replace(spec, **changed) for spec in start.participants]
        join = Join(
            id=child, participant=self._lease.participant, members=(child,), width=1,
            then=advance_id(self._lease.participant),
        )  # fmt: skip
        self._commands += [*events, replace(start, participants=participants, joins=[join])]
        item.pid = child
        self._state["n"] += 1

    def _grants(self, item: Identity) -> dict[str, Any]:
        """Say what a turn is to its own subagents and to its events."""
        if not item.kind:
            return {"scope": f"{self._scope} {item.id}"}
        # What must not outlast the run has no subagents that do.
        scope = self._scope if item.persist else f"{self._scope} once"
        mine = {"id": item.id, "kind": item.kind, "turn": item.turns + 1, "key": item.digest}
        return {"subagent": mine, "scope": scope}

    @staticmethod
    def _place(item: Identity, request: Mapping[str, Any], child: str) -> dict[str, Any]:
        return {
            "assembly_id": item.kind or request["name"],
            "assembly_kind": "subagent" if item.kind else "tool",
            "participant": item.id,
            "step_id": child,
            "branch_id": None,
        }

    def _transcript(self, item: Identity) -> list[Message]:
        """Give what was asked and said before in this run, as far as it went well."""
        found: list[Message] = []
        for place, pid in self._state["talks"].get(item.id, ()):
            found.append(user(self._lease.records[place]["q"]["message"]))
            found.append(assistant(text_of(self._children[pid]["r"].get("output", ""))))
        return found
