"""Reads what a run did from its journal, and compares it with what the reference says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from littleghost.journal import keys
from littleghost.trajectory import Step
from tests.support import cast
from tests.support.expected import Calls, Done, Entry, Expected, Failed, Key, Made
from tests.support.scenarios import end_of
from tests.support.world import World


def runs_of(world: World) -> list[str]:
    """Give the ids of all runs."""
    indexes = (keys.prefix(partition) + "runs" for partition in range(world.partitions))
    return [run_id for index in indexes for run_id in world.client.zrange(index, 0, -1)]


class Reading:
    """An ended run, as its journal tells of it."""

    def __init__(self, world: World, run_id: str) -> None:
        self._run_id = run_id
        self.end = end_of(world, run_id)
        self.run = world.run(run_id)
        self._record = world.record(run_id)
        self._headers: Mapping[str, Any] = self._record.participants
        self.steps = world.caller.runtime.records.steps(self._record)
        self._steps = {step.id: step for step in self.steps}
        self._keys = self._name_all()
        self.problems: list[str] = []

    def _name_all(self) -> dict[str, tuple[Key, int]]:
        """Give each participant the key and attempt that the reference knows it by."""
        found: dict[str, tuple[Key, int]] = {"0": ((), 1)}
        seen: Counter[Any] = Counter()
        by_step: dict[str, Key] = {}
        for pid in sorted(self._headers, key=lambda pid: tuple(map(int, pid.split(".")))):
            header = self._headers[pid]
            if pid == "0":
                continue
            up, attempt = found[header["up"]]
            step = header.get("step")
            if not step:
                found[pid] = ((up, attempt, "helper"), 1)
                continue
            if step["id"] not in by_step:
                place = (up, attempt, step["name"], step["branch"])
                by_step[step["id"]] = (*place, seen[place])
                seen[place] += 1
            found[pid] = (by_step[step["id"]], step["attempt"])
        return found

    def compare(self, outcome: Done | Failed, entries: list[Entry], *, killed: bool) -> list[str]:
        """Say what is not as the reference says.

        Args:
            killed: Whether a worker was killed, so that things may have been done again.
        """
        self.problems = []
        self._compare_end(outcome)
        expected = {one.key: one for one in entries if isinstance(one, Expected)}
        got = {self._keys[step.id][0]: step for step in self.steps}
        self.problems += [f"unexpected step {key}: {got[key]}" for key in got.keys() - expected]
        for key, one in expected.items():
            if key in got:
                self._compare_step(one, got[key])
            elif not one.loose:
                self.problems.append(f"no step {key}")
        self._compare_effects(entries, killed=killed)
        return self.problems

    def _check(self, what: str, got: object, wanted: object) -> None:
        if got != wanted:
            self.problems.append(f"{what} is {got!r}, not {wanted!r}")

    def _compare_end(self, outcome: Done | Failed) -> None:
        failure = self.run.error
        if isinstance(outcome, Failed):
            said = (self.end.status, failure.type if failure else "")
            self._check("end", said, ("failed", outcome.error.__name__))
            return
        self._check("end", (self.end.status, self.end.error), ("completed", ""))
        self._check("response", self.end.response, outcome.text)
        if self.run.result is not None:
            self._check("output", self.run.result.output, outcome.output)

    def _key_of(self, step_id: str | None) -> Key | None:
        return None if step_id is None else self._keys[step_id][0]

    def _compare_step(self, one: Expected, step: Step) -> None:
        before = tuple(self._keys[pid][0] for pid in step.predecessor_ids)
        if before not in one.before:
            self.problems.append(f"before {one.key} is {before}, not of {one.before}")
        self._check(f"parent of {one.key}", self._key_of(step.parent_id), one.parent)
        self._check(f"kind of {one.key}", step.assembly_kind, one.kind)
        self._check(f"branch of {one.key}", step.branch_id, one.branch)
        self._check(f"name of {one.key}", step.participant, one.key[2])
        numbers = [attempt.number for attempt in step.attempts]
        self._check(f"numbers of {one.key}", numbers, list(range(1, len(numbers) + 1)))
        errors = [attempt.error for attempt in step.attempts]
        if one.loose and step.status == "cancelled":
            self._check(f"attempts of {one.key}", errors[:-1], one.attempts[: len(errors) - 1])
            return
        if one.loose and len(errors) < len(one.attempts):
            self._check(f"attempts of {one.key}", errors, one.attempts[: len(errors)])
            return
        self._check(f"attempts of {one.key}", errors, one.attempts)
        status = "completed" if one.attempts[-1] is None else "failed"
        self._check(f"status of {one.key}", step.status, status)
        self._check(f"output of {one.key}", step.output, one.output)

    def _compare_effects(self, entries: list[Entry], *, killed: bool) -> None:
        pids = {place: pid for pid, place in self._keys.items()}
        effects = dict(cast.EFFECTS)
        answered = self._answered()
        turns, is_firm = 0, True
        for one in entries:
            is_firm &= not one.loose
            if not isinstance(one, Calls):
                continue
            turns += one.turns
            pid = pids.get(one.key)  # type: ignore[arg-type]
            if pid is None:
                if not one.loose:
                    self.problems.append(f"no participant {one.key}")
                continue
            wanted = Counter(one.names)
            if not one.loose:
                told = {name: n for name, n in answered[pid].items() if name in ("charge", "fetch")}
                self._check(f"tool results of {one.key}", told, dict(wanted))
            for index, name in enumerate(one.names):
                key = f"{self._run_id}:{pid}-c0.{index}"
                self._compare_effect(name, key, effects.pop(key, 0), one.loose, killed)
        for var, times in Counter(one.var for one in entries if isinstance(one, Made)).items():
            made = effects.pop(f"{self._run_id}/{var}", 0)
            loose = any(one.loose for one in entries if isinstance(one, Made) and one.var == var)
            if not loose and (made < times or (made > times and not killed)):
                self.problems.append(f"value {var} was made {made} times, not {times}")
        self.problems += [f"unexpected effect {key}: {n}" for key, n in effects.items()]
        if is_firm:
            self._check("usage", self.end.usage.get("input", 0), turns * (cast.USAGE.input or 0))

    def _compare_effect(self, name: str, key: str, times: int, loose: bool, killed: bool) -> None:
        least = 0 if loose or (killed and name == "charge") else 1
        most = 1_000 if name == "fetch" and killed else 1
        if not least <= times <= most:
            self.problems.append(f"{name} {key} took effect {times} times")

    def _answered(self) -> dict[str, Counter[str]]:
        """Give how many results of each tool were recorded, by participant."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for event in self.run.events():
            if event.type == "agent_stream" and event.inner_type == "tool_stop":
                pid = event.data["source"]["operation_id"].rpartition(":")[2]
                found[pid][event.inner["data"]["tool_use"]["name"]] += 1
        return found
