"""The journal on Redis: creating runs, claiming tasks and recording what became of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from littleghost.engine.commands import Command, TaskKind
from littleghost.engine.ports import Committed, Lease, ReadyTask, RunMemory
from littleghost.errors import DuplicateRunError, SchemaVersionError, SessionBusyError
from littleghost.ids import partition_of
from littleghost.journal import keys
from littleghost.journal.connection import AnyPipeline, Client, time_ms
from littleghost.journal.headers import read_participant
from littleghost.journal.memory import Memories
from littleghost.journal.plan import Plan
from littleghost.journal.scripts import Scripts, guarded

_CREATE_FIRST_PAYLOAD = 4
_COMMIT_FIRST_PAYLOAD = 10
# Live text of this many of a run's newest turns stays; older turns are told by their messages.
LIVE_TURNS = 8

Publish = Callable[[Sequence[ReadyTask]], None]


def ready_tasks(rows: Iterable[Sequence[str]]) -> list[ReadyTask]:
    """Read what a script says became ready."""
    return [
        ReadyTask(cast("TaskKind", kind), queue, run_id, task_id, int(at))
        for kind, queue, run_id, task_id, at in rows
    ]


class RedisJournal:
    """Runs in Redis, as one worker or caller sees them.

    Every method is one script call, so it happens whole or not at all. A repeated call (redis-py
    sends a command again when its reply is lost) gets the first answer.
    """

    def __init__(
        self,
        client: Client,
        header: str,
        *,
        partitions: int,
        worker_id: str = "",
        stop_grace_s: float = 0.5,
        publish: Publish | None = None,
    ) -> None:
        """Use a Redis.

        Args:
            client: A client that decodes replies.
            header: The constants of the scripts.
            partitions: How many partitions the journal has.
            worker_id: Who claims; empty for a caller that claims nothing.
            stop_grace_s: Seconds that running tasks have to let go of a stopped run.
            publish: Sends messages, when the scripts do not push them themselves.
        """
        self.client = client
        self.scripts = Scripts(client, header)
        self.partitions = partitions
        self.worker_id = worker_id
        self.stop_grace_s = stop_grace_s
        self.memories = Memories()
        self._publish = publish

    @staticmethod
    def prefix(partition: int) -> str:
        """Give the prefix of a partition's keys."""
        return keys.prefix(partition)

    def place(self, run_id: str) -> tuple[str, str]:
        """Give the key of a run and the prefix of its partition."""
        partition = partition_of(run_id, self.partitions)
        return keys.run(partition, run_id), keys.prefix(partition)

    def now_ms(self, run_id: str) -> int:
        """Give the time by which a run's scripts go."""
        key, _ = self.place(run_id)
        return guarded(lambda: time_ms(self.client, key))

    def publish(self, ready: Sequence[ReadyTask]) -> None:
        """Send the messages that the scripts did not push."""
        if self._publish is not None and ready:
            self._publish(ready)

    def create(self, run_id: str, plan: Plan) -> int:
        """Create a run.

        Returns:
            The creation time in the journal's milliseconds.

        Raises:
            DuplicateRunError: The id is taken.
            SessionBusyError: Too many runs wait for the session.
            JournalUnavailableError: Redis did not take it; no run exists, or the next try finds it.

        Atomic: one script. Idempotent: yes, for the same plan.
        """
        key, prefix = self.place(run_id)
        answer = self.scripts.run("create", key, prefix, run_id, *plan.arguments())
        self.publish(self.created(run_id, answer))
        return int(answer[1])

    @staticmethod
    def created(run_id: str, answer: Sequence[Any]) -> list[ReadyTask]:
        """Read what the script answered; gives the tasks to publish, and raises as `create`."""
        if answer[0] == "duplicate":
            raise duplicate(run_id)
        if answer[0] == "taken":
            raise SessionBusyError(
                "this session holds a conversation already, or a run that begins one; give the "
                "fork a session of its own",
                field="session_id",
            )
        if answer[0] == "busy":
            raise SessionBusyError(
                f"{answer[1]} runs wait for this session already; try again when some have ended",
                field="session_id",
            )
        return ready_tasks(answer[2])

    def plan_create(self) -> Plan:
        """Begin the plan of a new run, for `create` or `revive`."""
        return Plan("0", _CREATE_FIRST_PAYLOAD)

    def claim(
        self, run_id: str, task_id: str, *, at_ms: int | None = None, queue: str = ""
    ) -> Lease | None:
        """Take the sole right to work on a task.

        Args:
            at_ms: When the message that named the task was published; None without a message.
            queue: The queue the message came from.

        Returns:
            The lease, or None when the task is done, leased to another or not ready.

        Raises:
            SchemaVersionError: The run was written by another version.

        Atomic: one script. Cost: one round trip; records this process knows are not read again.
        """
        key, prefix = self.place(run_id)
        memory = self.memories.get(run_id)
        participant = task_id.partition("-")[0]
        known = len(memory.lists.get(participant, ())) if memory else 0
        answer = self.scripts.run(
            "claim",
            key,
            prefix,
            run_id,
            task_id,
            self.worker_id,
            str(os.getpid()),
            "" if at_ms is None else str(at_ms),
            queue,
            memory.created if memory else "",
            known,
            os.urandom(6).hex(),
        )
        if answer[0] == "version":
            raise SchemaVersionError(
                f"run {run_id!r} has journal version {answer[1]!r}, this worker reads "
                f"{keys.SCHEMA_VERSION}; use workers of the version that started it"
            )
        if answer[0] != "ok":
            return None
        if len(answer) > 3:
            self.publish(ready_tasks(answer[3]))
        return self._lease(run_id, answer[2], memory, int(answer[1]))

    def commit(
        self, lease: Lease, commands: Sequence[Command], *, serves: Iterable[str] = ()
    ) -> Committed:
        """Record the outcome of a leased task, and make ready what follows.

        Args:
            lease: The right under which the work was done.
            commands: What happens next.
            serves: Queues whose next task this worker may run in place.

        Returns:
            Whether it was recorded, and the lease of the next task when it may run here.

        Atomic: one script, fenced by the attempt. Idempotent: yes; the same commit gets the same
        answer for two minutes. Cost: one round trip, whatever the length of the run.
        """
        key, prefix = self.place(lease.run_id)
        plan = Plan(lease.participant, _COMMIT_FIRST_PAYLOAD)
        plan.add_all(commands)
        if serves:
            plan.fields["next"] = dict.fromkeys(serves, True)
        if lease.kind == "turn":
            plan.fields["cut"] = LIVE_TURNS
        parent = lease.memory.lists.get(str(lease.header.get("up", "")))
        if parent:
            plan.fields["up"] = len(parent)
        known = len(lease.records) + len(plan.fields.get("m", ()))
        answer = self.scripts.run(
            "commit",
            key,
            prefix,
            lease.run_id,
            lease.task_id,
            lease.attempt,
            self.worker_id,
            str(os.getpid()),
            lease.memory.created,
            known,
            *plan.arguments(),
        )
        if answer[0] == "mail":
            return Committed(recorded=False, has_mail=True)
        if answer[0] != "ok":
            if len(answer) > 1:
                self.publish(ready_tasks(answer[1]))
            self.memories.forget(lease.run_id)
            return Committed(recorded=False)
        self.memories.append(lease, plan, int(answer[4] or -1))
        self.publish(ready_tasks(answer[1]))
        row = answer[2]
        following = self._lease(lease.run_id, row, lease.memory, int(answer[3])) if row else None
        return Committed(recorded=True, lease=following)

    def give_back(self, lease: Lease) -> None:
        """Return a leased task undone, so that another worker takes it at once.

        Atomic: one script. Idempotent: yes; a task that moved on is left alone.
        """
        self.release(lease.run_id, lease.task_id, self.worker_id, attempt=lease.attempt)

    def publish_again(self, run_id: str, task_id: str) -> None:
        """Send the message of a ready task once more; nothing when it is not ready."""
        _, prefix = self.place(run_id)
        ready = self.scripts.run("republish", prefix + "ready", prefix, f"{run_id}|{task_id}", "1")
        self.publish(ready_tasks(ready))

    def definitions(self, run_id: str, names: Sequence[str]) -> dict[str, str]:
        """Read definitions of built assemblies that a run keeps, as far as it has them.

        Cost: one round trip; needed only by a process that does not know an assembly yet.
        """
        key, _ = self.place(run_id)
        fields = [keys.definition(name) for name in names]
        found = cast(
            "list[str | None]", guarded(lambda: self.client.hmget(key, fields)) if fields else []
        )
        return {name: text for name, text in zip(names, found, strict=True) if text is not None}

    def release(
        self,
        run_id: str,
        task_id: str,
        worker_id: str,
        *,
        attempt: int | None = None,
        child: int | None = None,
        lost: bool = False,
    ) -> bool:
        """Give a task back for a worker, or for a child process of it that died.

        Returns:
            Whether the task was leased so; otherwise nothing changed.
        """
        key, prefix = self.place(run_id)
        answer = self.scripts.run(
            "release",
            key,
            prefix,
            run_id,
            task_id,
            worker_id,
            "" if attempt is None else attempt,
            "" if child is None else str(child),
            "1" if lost else "",
        )
        if len(answer) > 1:
            self.publish(ready_tasks(answer[1]))
        return bool(answer[0])

    def emit(self, lease: Lease, events: Sequence[str]) -> bool:
        """Append live events of the current attempt.

        Returns:
            False when the attempt is stale or the run is being stopped; nothing was added.
        """
        key, args = self._emit_arguments(lease, os.urandom(6).hex(), events)
        return cast("Any", self.scripts.run("emit", key, *args)) == 1

    def queue_emit(
        self, pipeline: AnyPipeline, lease: Lease, name: str, events: Sequence[str]
    ) -> None:
        """Add an `emit` to a pipeline, to append for many attempts in one round trip.

        Args:
            name: What this append is called; the same one again appends nothing more.
        """
        key, args = self._emit_arguments(lease, name, events)
        self.scripts.queue(pipeline, "emit", key, *args)

    def _emit_arguments(
        self, lease: Lease, name: str, events: Sequence[str]
    ) -> tuple[str, list[str | int]]:
        key, prefix = self.place(lease.run_id)
        named = [prefix, lease.run_id, lease.task_id, lease.attempt, self.worker_id]
        return key, [*named, name, *events]

    def clear(self, run_id: str, *, pieces: int) -> bool:
        """Clear up what a run had open that has ended, is being stopped, or lost participants.

        Args:
            pieces: How many pieces to do at most, each a script of a few milliseconds.

        Returns:
            Whether nothing is left to be done.

        Idempotent: yes. The keeper does what others leave.
        """
        key, prefix = self.place(run_id)
        for _ in range(pieces):
            more, ready = self.scripts.run("clear", key, prefix, run_id)
            self.publish(ready_tasks(ready))
            if not more:
                return True
        return False

    def stop_run(self, run_id: str, why: str, error: Mapping[str, Any]) -> str:
        """Stop a run.

        Args:
            why: cancel, deadline, or force for one that did not let go in time.
            error: The failure its caller will see.

        Returns:
            The run's status afterwards; empty when there is no such run.

        Atomic: one script. Idempotent: yes; the first reason stays.
        """
        key, prefix = self.place(run_id)
        grace_ms = round(self.stop_grace_s * 1000)
        answer = self.scripts.run("stop", key, prefix, run_id, why, json.dumps(error), grace_ms)
        if len(answer) > 1:
            self.publish(ready_tasks(answer[1]))
        return str(answer[0])

    def _lease(self, run_id: str, row: Sequence[Any], told: RunMemory | None, now_ms: int) -> Lease:
        task_id, header, payload, invocation, participant, state, left, start, records = row[:9]
        working, fingerprint, assembly, lane, created, base, awaited = row[9:16]
        task = json.loads(header)
        part = read_participant(task["p"], participant)
        memory = self.memories.recall(run_id, created, invocation, told)
        if task["k"] != "call":
            self.memories.extend(run_id, memory, task["p"], int(start), records)
        return Lease(
            run_id=run_id,
            task_id=task_id,
            kind=task["k"],
            participant=task["p"],
            queue=task["q"],
            attempt=task["a"],
            lost=task.get("l", 0),
            failures=task.get("f", 0),
            idempotent=task.get("i", False),
            payload=json.loads(payload) if payload else {},
            assembly=part["a"],
            root_assembly=assembly,
            participant_kind=part["k"],
            state=json.loads(state),
            memory=memory,
            left_s=int(left) / 1000 if left else None,
            working=dict(zip(working[::2], working[1::2], strict=True)),
            fingerprint=fingerprint or "",
            lane=lane,
            base=int(base) if task["p"] == "0" else 0,
            now_ms=now_ms,
            header=part,
            awaited=json.loads(awaited) if awaited else None,
            origin=task.get("o", ""),
            answer=json.loads(task["an"]) if "an" in task else None,
        )


def duplicate(run_id: str) -> DuplicateRunError:
    """Make the error about an id that is taken."""
    return DuplicateRunError(
        f"a run with the id {run_id!r} exists already; choose another run_id", field="run_id"
    )
