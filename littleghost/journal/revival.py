"""Computes a run that goes on where another one ended; pure.

Every participant that the run still waited for is revived: what its failure changed is undone, and
its tasks come back. What has ended well stays; so does a failure that somebody has dealt with.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from littleghost.engine.unfinished import COORDINATOR, awaited, kept, reopened
from littleghost.journal.headers import write_header
from littleghost.journal.remains import Remains
from littleghost.json_values import dumps

# Fields of the record that say how the old run ended, or that the new one gets anew.
_ENDED = {
    *("cutev", "deadline", "ended", "error", "ev", "first", "last", "nonce", "result", "said"),
    *("session", "started", "stop", "stop_error", "sw", "text", "xh"),
}
# Marks of fields that stay with the old run: its tokens, its states, and what it has left.
_OLD_MARKS = ("u:", "w:", "x:", "f:", "ot:", "od:", "oj:")
# What a task's header loses: who had it, and when.
_OF_ATTEMPT = ("w", "c", "z", "a", "at", "n", "y", "f", "l", "tm", "hx", "sg", "su")


@dataclass(slots=True, kw_only=True)
class Revival:
    """What of the old run is different in the new one. Everything else is copied.

    Attributes:
        drop: Fields of the record that the new one has not.
        fields: Fields that it has instead.
        keys: Lists and working states to be copied, by the end of the key's name.
        cuts: The length to which a list is cut, by the end of its key's name.
        voids: Places in lists whose record counts no more: `[list, index, participant it told of]`.
        gone: Results that are to be made again.
        back: Results that leave a list's end, for a join to deliver: `[name, list, index]`.
        joins: `{id, h: header, left: members that are not done, order, q: not to start yet, give:
            members whose results are delivered at once}`.
        tasks: `{id, h: header, ready, due: when it is looked at although it is not ready (ms)}`.
        holder: The exclusive task that holds up the others while it waits for a participant.
    """

    drop: list[str] = field(default_factory=list[str])
    fields: dict[str, str] = field(default_factory=dict[str, str])
    keys: list[str] = field(default_factory=list[str])
    cuts: dict[str, int] = field(default_factory=dict[str, int])
    voids: list[list[Any]] = field(default_factory=list[list[Any]])
    gone: list[str] = field(default_factory=list[str])
    back: list[list[Any]] = field(default_factory=list[list[Any]])
    joins: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tasks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    holder: str | None = None


def revive(old: Remains, *, run_id: str, new_key: str, now_ms: int) -> Revival | None:
    """Compute the new run.

    Args:
        run_id: The old run's id, which its calls' idempotency keys go on to name.
        new_key: The key of the new run's record.
        now_ms: The journal's time.

    Returns:
        None when the old run has left nothing that could go on.
    """
    return _Reviving(old, run_id, now_ms).revival(new_key)


class _Reviving:
    """The old run, read, and what becomes of it."""

    def __init__(self, old: Remains, run_id: str, now_ms: int) -> None:
        self._old, self._run_id, self._now_ms = old, run_id, now_ms
        self._new = Revival()
        self._participants = old.participants()
        self._buried = old.headers("ot:")
        self._notes = old.notes()
        self._children: dict[str, list[str]] = defaultdict(list)
        for pid, header in self._participants.items():
            self._children[header.get("up", "")].append(pid)
        self._well = {
            name[2:]
            for name, value in old.fields.items()
            if name.startswith("z:") and value.endswith(",completed")
        }
        self._not_well = self._participants.keys() - self._well
        self._parked: dict[str, list[str]] = defaultdict(list)
        for task in self._buried.values():
            if "pk" in task:
                self._parked[task["p"]].append(task["pk"])
        # The state with which each participant that goes on does so.
        self._states: dict[str, dict[str, Any]] = {}

    def revival(self, new_key: str) -> Revival | None:
        self._key = new_key
        self._collect("0")
        self._tasks = {tid: task for tid, task in self._buried.items() if task["p"] in self._states}
        if not any(task["p"] == "0" for task in self._tasks.values()):
            return None
        self._record(new_key)
        self._results()
        self._starts = self._joins()
        for tid in sorted(self._tasks, key=self._order):
            self._task(tid, self._tasks[tid])
        return self._new

    def _collect(self, pid: str) -> None:
        """Take in a participant that goes on, and those of its children that it waits for."""
        kind = self._participants[pid]["k"]
        length, state = self._notes.get(
            pid, (None, json.loads(self._old.fields.get(f"x:{pid}", "{}")))
        )
        name = self._own(self._participants[pid]["m"])
        if length is not None and name is not None:
            count, state = kept(pid, kind, state, self._old.tails.get(pid, ()), self._not_well)
            self._new.cuts[name] = length + count
        self._states[pid] = state
        waits_for = awaited(pid, kind, state, self._parked[pid])
        # Those whose failure it has dealt with stay as they are.
        waits_for = set(self._children[pid] if waits_for is None else waits_for)
        for child in self._children[pid]:
            always = self._participants[child]["k"] == COORDINATOR
            if (always or child in waits_for) and child not in self._well:
                self._collect(child)

    def _own(self, key: str) -> str | None:
        """Give the end of the name of a key of the run's own; None for one of its session."""
        return key[len(self._old.key) :] if key.startswith(self._old.key + ":") else None

    # The record.

    def _record(self, new_key: str) -> None:
        new, ends = self._new, {name[2:] for name in self._old.fields if name.startswith("z:")}
        gone = {p for p in self._participants if p not in ends and p not in self._states}
        left = {f"z:{pid}" for pid in self._states} | {f"p:{pid}" for pid in gone}
        new.drop = [
            name
            for name in self._old.fields
            if name in _ENDED or name in left or name.startswith(_OLD_MARKS)
        ]
        for pid, header in self._participants.items():
            if pid in gone:
                continue
            again = dict(header)
            for kind in ("m", "s"):
                name = self._own(header[kind])
                if name is not None:
                    new.keys.append(name)
                    again[kind] = new_key + name
                if name == f":{kind}:{pid}":
                    del again[kind]
            new.fields[f"p:{pid}"] = write_header(pid, again)
        for pid, state in self._states.items():
            kind = self._participants[pid]["k"]
            again = reopened(kind, state, self._states.keys(), self._now_ms)
            new.fields[f"x:{pid}"] = dumps(again)

    # Results.

    def _results(self) -> None:
        new = self._new
        for name, text in self._old.results.items():
            place, holder = self._place(name, text)
            if name in self._states:
                new.gone.append(name)
                if place is not None and not self._is_cut(place, holder):
                    new.voids.append([holder, place, name])
            elif place is not None and self._is_cut(place, holder):
                new.back.append([name, holder, place])

    def _place(self, name: str, text: str) -> tuple[int | None, str]:
        """Say where a task's or participant's result stands: the index, and the list."""
        if not text.startswith("#"):
            return None, ""
        participant, dash, _ = name.partition("-")
        owner = participant if dash else self._participants[participant]["up"]
        # A session's list is left as it is.
        return int(text[1:]), self._own(self._participants[owner]["m"]) or ""

    def _is_cut(self, place: int, holder: str) -> bool:
        return place >= self._new.cuts.get(holder, place + 1)

    def _is_undelivered(self, name: str) -> bool:
        """Say whether a result is there that no list holds."""
        text = self._old.results.get(name)
        if text is None or name in self._states:
            return False
        place, holder = self._place(name, text)
        return place is None or self._is_cut(place, holder)

    # Joins.

    def _joins(self) -> dict[str, bool]:
        """Rebuild the joins; gives, for tasks that one held up, whether they may start now."""
        starts: dict[str, bool] = {}
        for jid, grave in self._old.headers("oj:").items():
            header = grave["h"]
            if header["p"] not in self._states:
                continue
            order = [header["one"]] if "one" in header else list(grave.get("o") or ())
            if "l" in header:
                # What was left of a set comes in no order.
                order.sort(key=_numbers)
            # Members of a join that delivers at once may not have been started.
            coming = [name for name in order if "l" in header and name not in self._participants]
            left = [name for name in order if name in self._tasks or name in self._states]
            waiting = [name for name in order if self._is_undelivered(name)]
            if header.get("keep"):
                waiting = []
            if not (left or coming or waiting or self._holds_up(header["t"])):
                continue
            held = self._unstarted(grave, left)
            free = header.get("w", len(order)) - (len(left) - len(held))
            for number, tid in enumerate(held):
                starts[tid] = number < free
            queue = [tid for tid in held if not starts[tid]]
            self._new.joins.append(
                {
                    "id": jid,
                    "h": self._join_header(header, len(coming)),
                    "left": [*left, *coming],
                    "order": [] if "l" in header else order,
                    "q": queue,
                    "give": waiting if "l" in header else [],
                }
            )
        return starts

    def _join_header(self, header: Mapping[str, Any], coming: int) -> dict[str, Any]:
        if "l" not in header:
            return dict(header)
        own = self._own(header["l"])
        return {**header, "n": coming, "l": header["l"] if own is None else self._key + own}

    def _holds_up(self, tid: str) -> bool:
        """Say whether a task is a turn that only its join starts."""
        task = self._tasks.get(tid, {})
        return task.get("k") == "turn" and task["s"] == "wait" and "tm" not in task

    def _unstarted(self, grave: Mapping[str, Any], left: list[str]) -> list[str]:
        """Give the first tasks of members that a join had not let start, in order of members."""
        found: dict[str, str] = {}
        for tid in grave.get("q") or ():
            task = self._tasks.get(tid)
            if task is not None and task["s"] == "wait" and not task.keys() & {"tm", "pk"}:
                found[tid if tid in left else task["p"]] = tid
        return [found[name] for name in left if name in found]

    # Tasks.

    def _order(self, tid: str) -> tuple[bool, list[int]]:
        """The active exclusive task goes first, so that the others wait for it."""
        return "hx" not in self._tasks[tid], _numbers(tid)

    def _task(self, tid: str, task: Mapping[str, Any]) -> None:
        header = {name: value for name, value in task.items() if name not in _OF_ATTEMPT}
        ready = self._is_ready(tid, task)
        if task["k"] == "call":
            # Services know the call by this run's key, whoever makes it.
            header.setdefault("o", self._run_id)
            began = task["s"] == "leased" or task.get("l", 0) > 0
            if began and "pk" not in task and not task.get("i"):
                header["l"] = 1
        if "hx" in task and not ready:
            self._new.holder = tid
        told = {"id": tid, "h": header, "ready": ready}
        if "ap" in task and not ready:
            # The time in which a person may allow it begins anew.
            told["due"] = header["ap"] = max(task["ap"], self._now_ms + task.get("aw", 0))
        self._new.tasks.append(told)

    def _is_ready(self, tid: str, task: Mapping[str, Any]) -> bool:
        if tid in self._starts:
            return self._starts[tid]
        if "pk" in task:
            return task["pk"] in self._well
        if "ap" in task and "an" not in task:
            # A person has still to allow it.
            return False
        return not (task["k"] == "turn" and task["s"] == "wait" and "tm" not in task)


def _numbers(name: str) -> list[int]:
    """Sort participants and tasks as they were started."""
    return [int(part) for part in re.findall(r"\d+", name)]
