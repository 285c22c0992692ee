"""Creates runs: everything is checked at the door, then one script writes the run."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from littleghost import registry
from littleghost.context import Binding
from littleghost.engine.commands import Emit
from littleghost.engine.opening import ROOT, Opening
from littleghost.engine.view import CONTEXT_STATE, RunView
from littleghost.errors import ConfigurationError, DefinitionError, InvocationError
from littleghost.ids import check_run_id, place_run
from littleghost.invocation import Invocation, read_invocation
from littleghost.journal import keys
from littleghost.journal.bulk import create_many
from littleghost.journal.plan import Plan, stored_event
from littleghost.json_values import dumps
from littleghost.wiring import Runtime, runtime

if TYPE_CHECKING:
    from littleghost.assembly import Assembly

LANES = ("", "batch")
Prepared = tuple[str, Invocation, Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What a new run takes over from another one.

    Attributes:
        links: Fields of the invocation's record that name the other run.
        records: What its conversation begins with, as the journal keeps it.
        older: How many of those are older than its request.
        fresh: Whether its session, if it has one, must be one that has not begun.
    """

    links: Mapping[str, str]
    records: Sequence[str]
    older: int
    fresh: bool


def create_run(
    cls: type[Assembly], message: object, lane: str, fields: Mapping[str, Any]
) -> tuple[str, Invocation]:
    """Check a call and create its run; see `Assembly.enqueue`."""
    now = datetime.now(UTC)
    check_lane(lane)
    return launch(cls, read_invocation(message, fields, now), lane, now)


def create_runs(
    cls: type[Assembly],
    messages: Iterable[object],
    run_ids: Iterable[str] | None,
    lane: str,
    fields: Mapping[str, Any],
) -> list[tuple[str, Invocation]]:
    """Check many calls, then create their runs; see `Assembly.enqueue_many`."""
    now = datetime.now(UTC)
    check_lane(lane)
    for name, instead in (("run_id", "give run_ids"), ("session_id", "its runs wait in line")):
        if fields.get(name) is not None:
            raise InvocationError(f"{name} cannot be the same for many runs; {instead}", field=name)
    texts = _many(messages, "messages")
    ids: list[Any] = [None] * len(texts) if run_ids is None else _many(run_ids, "run_ids")
    if len(ids) != len(texts):
        raise InvocationError(
            f"there are {len(texts)} messages and {len(ids)} run_ids; give one for each",
            field="run_ids",
        )
    prepared: list[Prepared] = []
    for number, (message, run_id) in enumerate(zip(texts, ids, strict=True)):
        try:
            invocation = read_invocation(message, {**fields, "run_id": run_id}, now)
            prepared.append(prepare(cls, invocation, lane, now))
        except InvocationError as error:
            raise InvocationError(f"message {number}: {error}", field=error.field) from error
    if len({run_id for run_id, *_ in prepared}) < len(prepared):
        raise InvocationError("run_ids names a run twice; give each its own id", field="run_ids")
    work = runtime()
    if prepared:
        work.check_once()
    create_many(work.journal, [(run_id, plan) for run_id, _, plan in prepared])
    return [(run_id, invocation) for run_id, invocation, _ in prepared]


def _many(values: object, name: str) -> list[Any]:
    """Read what must be many things, and not one text or mapping that could be taken for them."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvocationError(f"{name} is a {type(values).__name__}; give a list", field=name)
    return list(values)


def check_lane(lane: str) -> None:
    """Refuse a lane that there is not."""
    if lane not in LANES:
        raise InvocationError(f"lane is {lane!r}; use '' or 'batch'", field="lane")


def launch(
    cls: type[Assembly],
    invocation: Invocation,
    lane: str,
    now: datetime,
    earlier: Earlier | None = None,
) -> tuple[str, Invocation]:
    """Create the run of an invocation that has been read; gives its id, and the invocation."""
    run_id, invocation, plan = prepare(cls, invocation, lane, now, earlier)
    work = runtime()
    work.check_once()
    work.journal.create(run_id, plan)
    return run_id, invocation


def prepare(
    cls: type[Assembly],
    invocation: Invocation,
    lane: str,
    now: datetime,
    earlier: Earlier | None = None,
) -> Prepared:
    """Check a call and write its run's plan: the id, the invocation, and what is to be created."""
    cls.check()
    work = runtime()
    _check_importable(cls, work)
    has_session = bool(invocation.session_id)
    run_id, partition = place_run(
        invocation.run_id or None,
        invocation.session_id or None,
        work.settings.partitions,
    )
    invocation = replace(
        invocation,
        # Again, since the session's partition may have made the caller's own id longer.
        run_id=check_run_id(run_id),
        invocation_id=invocation.invocation_id or run_id,
        session_id=invocation.session_id or run_id,
    )
    _check_models(cls, invocation, work)
    plan = _plan(cls, invocation, lane, work, earlier)
    if invocation.deadline_at is not None:
        left_s = (invocation.deadline_at - now).total_seconds()
        plan.fields["deadline"] = max(1, round(left_s * 1000))
    if has_session:
        plan.fields["session"] = keys.session(partition, invocation.session_id, invocation.actor_id)
        plan.fields["limit"] = work.settings.session_waiting
        if earlier is not None and earlier.fresh:
            plan.fields["fresh"] = True
    return run_id, invocation, plan


def _check_importable(cls: type[Assembly], work: Runtime) -> None:
    """Refuse a class that no other process could find by its name."""
    if work.is_embedded:
        return
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        raise DefinitionError(
            f"{registry.name_of(cls)!r} exists in this process only, so no worker could run it; "
            "move the class to a module that the workers import"
        )
    local = [text for built in cls.definitions().values() for text in built.local]
    if local:
        raise DefinitionError(f"{cls.__qualname__}: " + "; ".join(dict.fromkeys(local)))


def _check_models(cls: type[Assembly], invocation: Invocation, work: Runtime) -> None:
    """Refuse a model that is not configured: the run's own, and those its participants declare."""
    view = RunView(invocation.run_id, invocation, registry.name_of(cls))
    assembly = cls.bind(Binding(run=view, invocation=invocation))
    choose = getattr(assembly, "model_selection", None)
    if choose is not None:
        _check_model(cls, choose(), work)
    seen: set[str | None] = set()
    for part in cls.reachable()[1:]:
        chosen: Any = getattr(part, "model", "")
        # What a method chooses is known in the run only; kinds without a model have none to check.
        if part.kind != "agent" or callable(chosen):
            continue
        if isinstance(chosen, str | None):
            if chosen in seen:
                continue
            seen.add(chosen)
        _check_model(part, chosen, work)


def _check_model(owner: type[Assembly], selection: Any, work: Runtime) -> None:
    try:
        work.models.check(selection)
    except ConfigurationError as error:
        raise type(error)(f"{owner.__qualname__}.model: {error}") from error


def _plan(
    cls: type[Assembly],
    invocation: Invocation,
    lane: str,
    work: Runtime,
    earlier: Earlier | None,
) -> Plan:
    plan = work.journal.plan_create()
    limit = work.settings.max_invocation_bytes
    messages = [dumps(item.to_json()) for item in (*invocation.history, invocation.message)]
    document = dumps({**invocation.to_json(), **(earlier.links if earlier else {})})
    size = sum(len(text.encode()) for text in messages) + len(document.encode())
    if size > limit:
        raise InvocationError(
            f"message, history and context take {size} bytes; {limit} are allowed "
            "(LITTLEGHOST_MAX_INVOCATION_BYTES)",
            field="message",
        )
    older = len(invocation.history)
    if earlier is not None:
        # It was accepted once, or written by the run itself, so its size is not bounded again.
        messages, older = list(earlier.records), earlier.older
    plan.fields.update(h=older, nonce=uuid.uuid4().hex)
    plan.fields["i"] = [plan.payload(text) for text in messages]
    plan.fields["c"] = [
        [CONTEXT_STATE + key, plan.payload(dumps(value))]
        for key, value in invocation.context.items()
    ]
    facts = {
        "asm": registry.name_of(cls),
        "fp": cls.fingerprint(),
        "inv": document,
        "ln": lane,
        "cutev": stored_event(Emit("invocation_error"), ROOT),
        **{keys.definition(name): built.text for name, built in cls.definitions().items()},
    }
    plan.fields["f"] = [[name, plan.payload(value)] for name, value in facts.items()]
    participants, tasks = cls.begin(Opening(id=ROOT, queue=partial(work.settings.queue, lane=lane)))
    plan.start(participants, tasks, [])
    return plan
