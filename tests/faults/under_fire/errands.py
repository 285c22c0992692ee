"""The kinds of runs of the load, how each is to end, and how it is carried out by its caller."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from littleghost import Run, wiring
from littleghost.errors import DuplicateRunError, JournalUnavailableError
from littleghost.ids import place_run
from tests.faults.fleet import wait_until
from tests.faults.under_fire import app, plays

T = TypeVar("T")
# How long a run may take while everything around it fails.
RUN_LIMIT_S = 150.0
CANCELLED_OR_DONE = ("cancelled", "completed")
# A run whose next try would come after its deadline fails at once, with what the service said.
LATE = ("partial", "failed")
LATE_CODES = (
    "deadline_exceeded",
    "rate_limited",
    "overloaded",
    "provider_error",
    "stream_incomplete",
    "timeout",
)


@dataclass(frozen=True)
class End:
    """How a run is to end.

    Attributes:
        response: A pattern for the whole response.
        turns: How many committed turns it may have; a cut run may have none.
        steps: Names of its steps, in any order.
        tools: How many results of tools the models saw.
        tally: What its tools counted in shared state.
        codes: What its error may be, if it has one.
    """

    response: str
    turns: Sequence[int]
    outcomes: Sequence[str] = ("completed",)
    steps: Sequence[str] = ()
    tools: int = 0
    tally: int = 0
    codes: Sequence[str] = ()


@dataclass
class Done:
    """A run that was carried out, and what its watcher saw: ids and types of events."""

    run_id: str
    end: End
    took_s: float
    seen: list[tuple[int, str]] = field(default_factory=list)


class Caller:
    """Starts runs, waits for them and answers them, whatever fails meanwhile."""

    def __init__(self, key: str, seed: int, place: Path) -> None:
        self.key = key
        self.place = place
        self.chance = random.Random(f"{seed}-{key}")
        self.done: list[Done] = []

    def persist(self, act: Callable[[], T]) -> T:
        """Do something with the journal, through outages."""
        deadline = time.monotonic() + RUN_LIMIT_S
        while True:
            try:
                return act()
            except JournalUnavailableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def start(self, assembly: Any, text: str, name: str = "", **fields: Any) -> Run:
        """Start a run under an id of its own, so that a second try cannot make a second run."""
        own = f"{self.key}{name}"
        partitions = wiring.runtime().settings.partitions
        run_id, _ = place_run(own, fields.get("session_id"), partitions)
        lane = self.chance.choice(("", "", "batch"))

        def create() -> Run:
            try:
                return assembly.enqueue(f"{text} {self.key}", run_id=own, lane=lane, **fields)
            except DuplicateRunError:
                return Run.get(run_id)

        return self.persist(create)

    def finish(self, run: Run, end: End) -> None:
        """Wait for the end of a run, as a waiter or as a watcher who goes away and comes back."""
        started = time.monotonic()
        seen: list[tuple[int, str]] = []
        if self.chance.random() < 0.5:
            self.watch(run, seen)
        self.persist(lambda: run.wait(max(1.0, RUN_LIMIT_S - (time.monotonic() - started))))
        self.done.append(Done(run.id, end, time.monotonic() - started, seen))

    def watch(self, run: Run, seen: list[tuple[int, str]]) -> None:
        """Read events, a few at a time; what was read is never read again."""
        deadline = time.monotonic() + RUN_LIMIT_S
        while time.monotonic() < deadline:
            patience = self.chance.randint(1, 40)
            events = run.events(after=seen[-1][0] if seen else 0)
            try:
                for event in events:
                    seen.append((int(event.id), event.inner_type))
                    if event.is_terminal:
                        return
                    patience -= 1
                    if not patience:
                        break
            except JournalUnavailableError:
                time.sleep(0.1)
            finally:
                events.close()  # type: ignore[attr-defined]
        raise AssertionError(f"{run.id} has no terminal event, seen {seen[-5:]}")

    def until(self, condition: Callable[[], T], what: str) -> T:
        return wait_until(lambda: self.persist(condition), what, RUN_LIMIT_S)


def _simple(assembly: Any, end: Callable[[str], End]) -> Callable[[Caller], None]:
    def play(caller: Caller) -> None:
        caller.finish(caller.start(assembly, "go"), end(caller.key))

    return play


def _small(key: str) -> list[str]:
    return [f"small {key}.{name}" for name in plays.SMALL]


def _flow(caller: Caller) -> None:
    key = caller.key
    run = caller.start(app.FireWorkflow, "go")
    if caller.chance.random() < 0.5:
        # Also before anybody waits for it.
        caller.until(lambda: run.status == "waiting", f"{run.id} waits for its word")
    for _ in range(caller.chance.randint(1, 3)):
        caller.persist(lambda: run.signal("word", f"word {key}", id="only"))
    said = re.escape(";".join(_small(key)))
    response = rf"[0-9a-f]{{32}}\|{said}\|word {key}\|last {key}"
    caller.finish(run, End(response, (7,), steps=("a", "b", "c", "last"), tools=6))


def _pay(caller: Caller) -> None:
    run = caller.start(app.PayerAgent, "go")
    first, second = caller.until(
        lambda: run.pending if len(run.pending) == 2 else None, f"{run.id} asks twice"
    )
    for _ in range(2):
        caller.persist(lambda: run.reject(second.id, "too much"))
        caller.persist(lambda: run.approve(first.id, by="ann"))
    caller.finish(run, End(f"payer {caller.key}", (2,), tools=2))


def _talk(caller: Caller) -> None:
    runs = [
        caller.start(app.TalkAgent, "go", f"-{number}", session_id=f"s-{caller.key}")
        for number in range(3)
    ]
    for number, run in enumerate(runs):
        caller.finish(run, End(f"heard {number + 1} {caller.key}", (1,)))


def _late(caller: Caller) -> None:
    run = caller.start(app.SlowAgent, "go", deadline_at=timedelta(seconds=1.5))
    end = End(r"(word )*(w|wo|wor|word)?", (0,), LATE, codes=LATE_CODES)
    caller.finish(run, end)


def _stuck(caller: Caller) -> None:
    run = caller.start(app.StuckAgent, "go", deadline_at=timedelta(seconds=2.0))
    end = End(r"(Wait\.|Wait|Wai|Wa|W)?", (0, 1), LATE, codes=LATE_CODES)
    caller.finish(run, end)


def _cancel(caller: Caller) -> None:
    run = caller.start(app.SlowAgent, "go")
    time.sleep(caller.chance.uniform(0, 1.5))
    caller.persist(lambda: run.cancel("enough"))
    caller.finish(run, End(r"(word )*", (0, 1), CANCELLED_OR_DONE, codes=("cancelled",)))


def _fragile(caller: Caller) -> None:
    key = caller.key
    run = caller.start(app.FragileAgent, "go")
    caller.finish(run, End("", (1,), ("failed",), tools=3, codes=("invalid_request",)))
    plays.mended(caller.place, key).touch()

    def retry() -> Run:
        try:
            return run.retry(run_id=f"{key}-again")
        except DuplicateRunError:
            wanted = wiring.runtime().settings.partitions
            return Run.get(_retried(run.id, f"{key}-again", wanted))

    caller.finish(caller.persist(retry), End(f"fragile {key}", (1,), tools=3))


def _retried(old: str, own: str, partitions: int) -> str:
    from littleghost.ids import id_in, partition_of

    return id_in(partition_of(old, partitions), own, partitions)


_GRAPH_STEPS = ("start", "a", "b", "broken", "mend", "join", "good", "end")
KINDS: dict[str, Callable[[Caller], None]] = {
    "crew": _simple(app.CrewAgent, lambda key: End(f"crew {key}", (3,), tools=9, tally=3)),
    "graph": _simple(
        app.FireGraph,
        lambda key: End(
            re.escape(f"end good small {key}.a + small {key}.b + mended for {key}"),
            (9,),
            steps=_GRAPH_STEPS,
            tools=4,
        ),
    ),
    "swarm": _simple(
        app.FireSwarm,
        lambda key: End(f"billed {key}", (2,), steps=("fire_triage", "fire_billing"), tools=1),
    ),
    "boss": _simple(app.BossAgent, lambda key: End(f"boss {key}", (9,), tools=10)),
    "asker": _simple(app.AskerAgent, lambda key: End(f"asker {key}", (8,), tools=10)),
    "flow": _flow,
    "pay": _pay,
    "talk": _talk,
    "late": _late,
    "stuck": _stuck,
    "cancel": _cancel,
    "fragile": _fragile,
}
