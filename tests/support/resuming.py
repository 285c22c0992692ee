"""Runs that are broken off somewhere and retried, to be compared with one that never was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from littleghost.errors import InvalidRequestError
from littleghost.ids import id_in, partition_of
from littleghost.journal.contents import left_key
from littleghost.run import Run
from tests.support import cast
from tests.support.checks import check_documented, check_expiry, check_journal, dump
from tests.support.fleet import KilledError
from tests.support.scenarios import End, end_of
from tests.support.world import World

Break = Callable[[World, str, int], Callable[[], None]]
# Each is recorded exactly once, in the run that did it.
ONCE = ("model_stop", "tool_start", "assembly_fork", "assembly_join")


def cancelling(world: World, run_id: str, number: int) -> Callable[[], None]:
    """Have the run cancelled before an operation of a worker, or at a place in its work."""
    count = [0]
    plain = world.operate

    def come(who: str) -> None:
        if who == "caller" or not world.client.exists(
            world.caller.runtime.journal.place(run_id)[0]
        ):
            return
        count[0] += 1
        if count[0] == number:
            Run(run_id).cancel("enough")

    def operate(who: str, name: str, work: Callable[[], Any]) -> Any:
        come(who)
        return plain(who, name, work)

    world.operate = operate  # type: ignore[method-assign]
    cast.HOOKS.append(lambda place: come(place))
    return lambda: setattr(world, "operate", plain)


def failing(world: World, run_id: str, number: int) -> Callable[[], None]:
    """Have the model service refuse one request of all that are made."""
    del world, run_id
    count = [0]

    def fail(place: str) -> None:
        count[0] += place == "model"
        if place == "model" and count[0] == number:
            raise InvalidRequestError("broken")

    cast.HOOKS.append(fail)
    return lambda: cast.HOOKS.remove(fail)


def check_retry(world: World, old_id: str, quiet: End, **fields: Any) -> Run:
    """Retry a run, and require the end that an undisturbed one has; gives the new run."""
    before = dump(world.client, old_id, world.partitions)
    old = end_of(world, old_id)
    new = Run(old_id).retry(**fields)
    world.carry(new.id)
    end = end_of(world, new.id)
    assert (end.status, end.response, end.error) == (quiet.status, quiet.response, quiet.error)
    assert end.conversation == quiet.conversation
    assert not end.unknown, "nobody died"
    done = Counter(old.events) + Counter(end.events)
    for kind in ONCE:
        assert done[kind] == quiet.events[kind], f"{kind}: {old.events} and then {end.events}"
    assert dump(world.client, old_id, world.partitions) == before, "the old run was changed"
    check_journal(world.client, world.partitions)
    check_documented(world.client)
    check_expiry(world.client, world.caller.runtime.journal.place(new.id)[1], new.id)
    assert not world.client.exists(left_key(world.caller.runtime.journal.place(new.id)[0]))
    return Run.get(new.id)


def break_everywhere(
    world: World, begin: Callable[[], str], broken: Break, *, most: int = 400
) -> tuple[int, int]:
    """Break a run off at each operation, or each request, and retry it.

    Returns:
        How often it was broken off, and how often that was too late or dealt with by the run.
    """
    world.reset()
    run_id = begin()
    world.carry(run_id)
    quiet = end_of(world, run_id)
    assert quiet.status == "completed"
    count = spared = 0
    problems: list[str] = []
    for number in range(1, most):
        world.reset()
        heal = broken(world, run_id, number)
        try:
            assert begin() == run_id
            world.carry(run_id)
        finally:
            heal()
        cast.HOOKS[:] = cast.HOOKS[:1]
        if world.record(run_id).status == "completed":
            spared += 1
            if spared > 12:
                break
            continue
        count += 1
        try:
            check_retry(world, run_id, quiet)
        except (AssertionError, Exception) as error:
            problems.append(f"{number}: {type(error).__name__}: {str(error)[:3000]}")
    assert not problems, f"{len(problems)} of {count}:\n" + "\n\n".join(problems[:5])
    return count, spared


def refuse_at(world: World, *task_ids: str) -> Callable[[], None]:
    """Have the model service refuse whatever asks it under some tasks, until it is healed."""

    def fail(place: str) -> None:
        runs = [world.record(run_id) for run_id, _ in world.caller.runtime.records.recent(10)]
        tasks = [run.tasks.get(name, {}) for run in runs for name in task_ids]
        if place == "model" and any(task.get("s") == "leased" for task in tasks):
            raise InvalidRequestError("broken")

    cast.HOOKS.append(fail)
    return lambda: cast.HOOKS.remove(fail)


def retry(old_id: str, world: World) -> str:
    """Retry a run, as a caller that tries again when it was cut off; gives the new run's id."""
    for _ in range(2):
        try:
            return Run(old_id).retry(run_id=f"{old_id}-again").id
        except KilledError:
            journal = world.caller.runtime.journal
            partition = partition_of(old_id, world.partitions)
            found = id_in(partition, f"{old_id}-again", world.partitions)
            if world.client.exists(journal.place(found)[0]):
                return found
    raise AssertionError("a caller was cut off twice")
