"""Retries a run: a new run goes on where one that did not end well ended."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from littleghost import registry
from littleghost.engine.commands import Emit
from littleghost.engine.opening import ROOT
from littleghost.errors import (
    NotResumableError,
    RunNotFoundError,
    SchemaVersionError,
    SessionChangedError,
    UnknownAssemblyError,
)
from littleghost.ids import check_run_id, id_in, partition_of
from littleghost.invocation import Invocation, read_deadline
from littleghost.journal import keys
from littleghost.journal.plan import Plan, stored_event
from littleghost.journal.record import RunRecord
from littleghost.journal.remains import Remains, begin_again, read_remains
from littleghost.journal.revival import revive
from littleghost.json_values import dumps
from littleghost.start import Earlier, launch
from littleghost.wiring import Runtime, runtime

Deadline = datetime | timedelta | str | None
# What of a revival the script is told as it is.
_TOLD = ("drop", "keys", "cuts", "voids", "gone", "back", "joins", "tasks")


def retry_run(old_id: str, *, new_id: str | None, deadline: Deadline) -> str:
    """Create the run that goes on from another one, and give its id; see `Run.retry`."""
    work, now = runtime(), datetime.now(UTC)
    work.check_once()
    old = read_remains(work.journal, old_id)
    if old is None:
        raise RunNotFoundError(f"no run {old_id!r} to retry")
    record = cast("RunRecord", work.records.find(old_id))
    _check(record, old)
    partition = partition_of(old_id, work.settings.partitions)
    own = None if new_id is None else check_run_id(str(new_id))
    run_id = check_run_id(id_in(partition, own, work.settings.partitions))
    ends_at = _deadline(record, deadline, now)
    if record.waits_for_session:
        return _start_over(work, record, old, run_id, ends_at, now)
    now_ms = work.journal.now_ms(run_id)
    new_key, _ = work.journal.place(run_id)
    revival = revive(old, run_id=old_id, new_key=new_key, now_ms=now_ms)
    if revival is None:
        raise NotResumableError(
            f"run {old_id!r} left nothing to go on from; an older version of littleghost wrote it"
        )
    plan = work.journal.plan_create()
    plan.fields.update(nonce=uuid.uuid4().hex, old=old_id, ended=old.fields["ended"])
    told = asdict(revival)
    plan.fields.update({name: told[name] for name in _TOLD})
    if revival.holder is not None:
        plan.fields["holder"] = revival.holder
    facts = {**revival.fields, **_facts(record, run_id, ends_at)}
    plan.fields["f"] = [[name, plan.payload(value)] for name, value in facts.items()]
    if ends_at is not None:
        plan.fields["deadline"] = max(1, round((ends_at - now).total_seconds() * 1000))
    _join_session(plan, record, old)
    begin_again(work.journal, run_id, old_id, plan)
    return run_id


def _check(record: RunRecord, old: Remains) -> None:
    if not record.is_over:
        raise NotResumableError(
            f"run {record.run_id!r} is {record.status}; only a run that has ended can be retried, "
            "a fork can begin at any time"
        )
    if record.status == "completed":
        raise NotResumableError(
            f"run {record.run_id!r} has completed, so there is nothing to retry; fork it to take "
            "it another way"
        )
    version = old.fields.get("v")
    if version != str(keys.SCHEMA_VERSION):
        raise SchemaVersionError(
            f"run {record.run_id!r} has journal version {version!r}, this process writes "
            f"{keys.SCHEMA_VERSION}; retry it with the version that ran it"
        )


def _deadline(record: RunRecord, deadline: Deadline, now: datetime) -> datetime | None:
    """Give the deadline that was asked for, else the old run's if it is still ahead."""
    if deadline is not None:
        return read_deadline(deadline, now)
    before = record.invocation.get("deadline_at")
    at = datetime.fromisoformat(before) if before else None
    return at if at is not None and at > now else None


def _request(record: RunRecord, run_id: str, ends_at: datetime | None) -> dict[str, Any]:
    """Give the invocation of the new run."""
    asked = dict(record.invocation)
    asked.pop("forked_from", None)
    for name in ("invocation_id", "session_id"):
        if asked[name] == record.run_id:
            asked[name] = run_id
    asked.pop("deadline_at", None)
    if ends_at is not None:
        asked["deadline_at"] = ends_at.isoformat()
    return {**asked, "run_id": run_id, "retry_of": record.run_id}


def _facts(record: RunRecord, run_id: str, ends_at: datetime | None) -> dict[str, str]:
    facts = {"inv": dumps(_request(record, run_id, ends_at))}
    try:
        cls = registry.lookup(record.assembly)
        cls.check()
        # A retry often comes after a fix, so the new run is of the definition as it is now.
        facts["fp"] = cls.fingerprint()
    except UnknownAssemblyError:
        # This process has not imported it; the workers compare with what the old run recorded.
        pass
    facts["cutev"] = stored_event(Emit("invocation_error"), ROOT)
    return facts


def _join_session(plan: Plan, record: RunRecord, old: Remains) -> None:
    """Make the new run the next one of the old one's session, if that is as the old one left it."""
    session = old.fields.get("session")
    if session is None:
        return
    plan.fields["session"] = session
    if record.participants[ROOT]["m"] != f"{session}:m":
        # A composite has a list of its own, and adds to the session only when it has completed.
        older = int(old.fields.get("hist", 0))
        plan.fields["lengths"] = [record.base, 0] if record.base == older else [record.base]
        return
    plan.fields["lengths"] = [record.last_record + 1]
    if ROOT in old.tails:
        _check_tail(record, old)


def _check_tail(record: RunRecord, old: Remains) -> None:
    """Refuse to leave in a session what the failing turn said: a session is never rewritten."""
    length, _ = old.notes()[ROOT]
    results = {
        text
        for name, text in old.results.items()
        if text.startswith("#") and name.partition("-")[0] == ROOT and int(text[1:]) >= length
    }
    if record.last_record + 1 - length > len(results):
        raise SessionChangedError(
            f"what run {record.run_id!r} failed with stands in its session's conversation already; "
            "fork the run instead"
        )


def _start_over(
    work: Runtime,
    record: RunRecord,
    old: Remains,
    run_id: str,
    ends_at: datetime | None,
    now: datetime,
) -> str:
    """Start a run again that never got its session: it waits for it once more."""
    rows = cast("list[str]", work.client.lrange(f"{old.key}:i", 0, -1))
    links = {"retry_of": record.run_id}
    earlier = Earlier(links=links, records=rows, older=int(old.fields["hist"]), fresh=False)
    invocation = Invocation.from_json(_request(record, run_id, ends_at))
    registry.learn(record.assembly, lambda names: work.journal.definitions(record.run_id, names))
    cls = registry.lookup(record.assembly)
    return launch(cls, invocation, record.lane, now, earlier)[0]
