"""What must hold after the fire: each run's end, its effects, its events, and what is left."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from littleghost import Run, wiring
from littleghost.usage import Usage
from tests.faults.under_fire import app
from tests.faults.under_fire.errands import Done

ONCE = ("charge", "seal", "pay", "linger")
TRACED = (*ONCE, "look", "tally")
# Outcomes of runs that are ended while a turn may still be under way.
LATE = ("partial", "cancelled", "failed")


class Effects:
    """What tools did, by name and key."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.times: Counter[tuple[str, str]] = Counter()
        self.idempotency: dict[tuple[str, str], set[str]] = defaultdict(set)
        for line in lines:
            name, key, idempotency_key = line.split(" ")
            self.times[(name, key)] += 1
            self.idempotency[(name, key)].add(idempotency_key)

    def check(self) -> None:
        """P7: what may happen once happened once; every attempt had the same key."""
        twice = {what: n for what, n in self.times.items() if what[0] in ONCE and n > 1}
        assert not twice, f"done twice: {twice}"
        keys = {what: keys for what, keys in self.idempotency.items() if len(keys) > 1}
        assert not keys, f"several idempotency keys: {keys}"

    @property
    def again(self) -> int:
        """How many effects of idempotent calls were done again."""
        return self.times.total() - len(self.times)


def check_run(done: Done, effects: Effects) -> Counter[str]:
    """Check one run; gives how many results of its calls had which status."""
    run, end = Run.get(done.run_id), done.end
    assert run.outcome in end.outcomes, (run.outcome, run.error and run.error.to_json())
    assert re.fullmatch(end.response, run.response), run.response
    turns = {sum([app.TURN_USAGE] * count, Usage()): count for count in end.turns}
    assert run.usage in turns, run.usage
    if end.outcomes != ("completed",) and run.outcome != "completed":
        assert run.error is not None
        assert run.error.code in end.codes
    told = _check_results(run, end.tools, effects)
    if run.result is not None:
        steps = run.result.steps
        assert sorted(step.participant for step in steps) == sorted(end.steps)
        assert {len(step.attempts) for step in steps} <= {1}
        assert run.result.state.get("tally", 0) == end.tally
    _check_events(run, turns[run.usage], done)
    return told


def _check_results(run: Run, expected: int, effects: Effects) -> Counter[str]:
    """P2, P7: each call of an ended run has one result, and it says what was done."""
    told: Counter[str] = Counter()
    work = wiring.runtime()
    for name in run.record.participants:
        uses: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for message in work.records.messages(run.record, name):
            blocks = message.get("content") if "role" in message else None
            for block in blocks if isinstance(blocks, list) else ():
                if block["type"] == "tool_use":
                    uses[block["id"]] = block
                elif block["type"] == "tool_result":
                    assert block["tool_use_id"] not in results, f"two results in {name}: {block}"
                    results[block["tool_use_id"]] = block
        assert results.keys() <= uses.keys()
        if expected:
            assert results.keys() == uses.keys(), (name, uses.keys(), results.keys())
        for use_id, result in results.items():
            told[_check_result(uses[use_id], result, effects)] += 1
    if expected:
        assert told.total() == expected, told
    return told


def _check_result(use: Mapping[str, Any], result: Mapping[str, Any], effects: Effects) -> str:
    name, status, content = use["name"], result["status"], result["content"]
    if name not in TRACED:
        assert status == "success", result
        return "success"
    key = use["input"]["key"]
    times = effects.times[(name, key)]
    if status == "success":
        assert content == f"{name} {key}"
        assert times >= 1, f"{name} {key} succeeded and was not done"
        return "success"
    assert name in ONCE, f"{name} {key}: {content}"
    if "too much" in content:
        assert times == 0, f"{name} {key} was rejected and done"
        return "rejected"
    assert "outcome of this call is unknown" in content, content
    return "unknown"


def _check_events(run: Run, turns: int, done: Done) -> None:
    """P2, P5: one terminal event, which is the last; text is told once; watchers saw the same."""
    events = list(run.events())
    ids = [int(event.id) for event in events]
    assert ids == sorted(set(ids))
    assert [event.is_terminal for event in events].count(True) == 1
    assert events[-1].is_terminal
    kinds = Counter(event.inner_type for event in events)
    # A turn that came after the end of its run is paid and counted, and told to nobody.
    assert kinds["model_stop"] == turns or (run.outcome in LATE and kinds["model_stop"] < turns)
    by_id = {int(event.id): event.inner_type for event in events}
    seen = [number for number, _ in done.seen]
    assert seen == sorted(set(seen)), f"a watcher saw an event twice: {seen}"
    assert all(by_id.get(number, kind) == kind for number, kind in done.seen)
    # A run keeps the live text of its newest turns; of older ones only what they ended with.
    is_whole = ids == list(range(1, len(ids) + 1))
    said: dict[str, str] = {}
    for event in events:
        data = event.inner.get("data") or {}
        source = json.dumps(event.data.get("source"), sort_keys=True)
        if event.inner_type in ("model_start", "model_retry"):
            said[source] = ""
        elif event.inner_type == "text_delta":
            said[source] = said.get(source, "") + data["text"]
        elif event.inner_type == "model_stop" and is_whole:
            blocks = data["response"]["message"]["content"]
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            assert said.get(source) == text, f"told {said.get(source)!r}, said {text!r}"
