"""Random graphs, workflows and swarms under random faults do what a plain reference says.

`REFERENCE_EXAMPLES` raises the number of examples, `REFERENCE_FIRST` says where to begin.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from littleghost import registry
from littleghost.errors import DefinitionError
from littleghost.messages import Message, assistant, user
from littleghost.providers.registry import Models
from tests.integration.journal.test_cut import MODES, faults_at
from tests.support import actors, cast
from tests.support.checks import check_documented, check_journal, check_nothing_left
from tests.support.expected import Ambiguous, Done, Entry, Failed
from tests.support.plan_maker import example
from tests.support.plans import Example
from tests.support.reading import Reading, runs_of
from tests.support.reference import Reference
from tests.support.scenarios import enqueue
from tests.support.world import Fault, World

pytestmark = pytest.mark.redis

FIRST = int(os.environ.get("REFERENCE_FIRST", "0"))
EXAMPLES = int(os.environ.get("REFERENCE_EXAMPLES", "204"))
ROUNDS = 12
KILLS = (Fault.KILL_BEFORE, Fault.KILL_AFTER)
# The operations of a caller and of its second try.
CALLS_FIRST = {0, 1}


@pytest.fixture(autouse=True)
def _forgotten(cast_models: Models) -> Iterator[None]:
    """Classes made here are forgotten after the test."""
    cast_models.connect("actor", actors.ActorProvider())
    known = dict(registry._assemblies)
    yield
    registry._assemblies.clear()
    registry._assemblies.update(known)
    actors.ACTORS.clear()
    actors.ATTEMPT.clear()


def attempt_of(world: World) -> int:
    """Give the attempt at the step whose model is asked right now."""
    worker = world._active
    assert worker is not None
    [run_id] = runs_of(world)
    record = world.record(run_id)
    held = [
        task_id
        for task_id, task in record.tasks.items()
        if task["s"] == "leased" and task["w"] == worker.name
    ]
    [task_id] = held
    step = record.participants[task_id.partition("-")[0]].get("step")
    return step["attempt"] if step else 1


def begin(world: World, kind: Any, one: Example) -> str:
    history: list[Message] = [user("before"), assistant("yes")][: one.history]
    return enqueue(world, one.text, assembly=kind, history=history)


def play(
    world: World, kind: Any, one: Example, faults: dict[int, Fault], chooser: random.Random | None
) -> Reading:
    """Run an example to its end and read it; messages come in the order of the chooser."""
    world.reset(faults)
    # Whatever the run before had the server forget; a keeper's round bears that once.
    world.caller.runtime.journal.scripts.load()
    actors.ATTEMPT[:] = [lambda: attempt_of(world)]
    run_id = begin(world, kind, one)
    for _ in range(1_000):
        message = world.pop(chooser) if chooser else None
        if message is None or world.record(run_id).is_over:
            break
        world.perform(message)
    world.carry(run_id)
    check_journal(world.client, world.partitions)
    check_documented(world.client)
    return Reading(world, run_id)


def faults_for(chooser: random.Random, operations: list[str]) -> dict[int, Fault]:
    """Choose a few things that go wrong, and not more of a kind than a run must bear.

    A task that loses its worker too often is given up, a caller tries twice, and a keeper's round
    that fails is left to the next one.
    """
    found: dict[int, Fault] = {}
    for _ in range(chooser.choice((1, 2, 3, 4))):
        number = chooser.randrange(len(operations))
        fault = chooser.choice(faults_at(operations[number]))
        others = list(found.values())
        too_often = fault in KILLS and sum(one in KILLS for one in others) == 2
        too_early = fault in KILLS and number < 2 and bool(CALLS_FIRST & found.keys())
        again = fault is Fault.FORGET_SCRIPTS and fault in others
        if not (too_often or too_early or again):
            found[number] = fault
    return found


def check(world: World, seed: int, disturbed: int) -> tuple[Done | Failed, int]:
    """Run one example quietly and under faults."""
    one = example(seed)
    reference = Reference()
    outcome = reference.outcome(one)
    kind = actors.Casting(f"P{seed}").make(one.plan)
    quiet = play(world, kind, one, {}, None)
    told = compare(quiet, outcome, reference.entries, killed=False)
    assert not told, f"seed {seed}, quiet: {told}"
    operations = list(world.operations)
    for number in range(disturbed):
        chooser = random.Random(f"{seed} {number}")
        faults = faults_for(chooser, operations)
        killed = any(fault in KILLS for fault in faults.values())
        try:
            seen = play(world, kind, one, faults, chooser)
            told = compare(seen, outcome, reference.entries, killed=killed)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        assert not told, f"seed {seed}, number {number}, {faults}: {told}"
    return outcome, len(quiet.steps)


def compare(reading: Reading, outcome: Done | Failed, entries: list[Entry], *, killed: bool) -> str:
    return "\n".join(reading.compare(outcome, entries, killed=killed))


@pytest.mark.parametrize("part", range(ROUNDS))
def test_random_assemblies_do_what_the_reference_says(
    worlds: Callable[..., World], part: int
) -> None:
    mode = list(MODES.values())[part % len(MODES)]
    world = worlds(**mode)
    problems: list[str] = []
    ambiguous = 0
    for seed in range(FIRST + part, FIRST + EXAMPLES, ROUNDS):
        try:
            check(world, seed, 3)
        except Ambiguous:
            ambiguous += 1
        except (AssertionError, DefinitionError) as error:
            problems.append(f"seed {seed}: {type(error).__name__}: {str(error)[:3000]}")
    assert not problems, f"{len(problems)} examples:\n" + "\n\n".join(problems[:10])
    assert ambiguous < EXAMPLES / ROUNDS / 2
    check_nothing_left(world.client, world.partitions)
    assert not cast.FAILURES
