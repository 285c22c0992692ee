"""The one place that chooses adapters: settings in, a ready runtime out."""

from __future__ import annotations

import logging
import mmap
import os
import sys
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from littleghost import registry
from littleghost.celery.envelope import template
from littleghost.engine.perform import Performer
from littleghost.engine.ports import Collaborators, Lease
from littleghost.errors import ConfigurationError, HandOverError, StaleAttemptError
from littleghost.journal import keys
from littleghost.journal.connection import connect, disconnect, widen
from littleghost.journal.control import RunningTasks
from littleghost.journal.inbox import Inbox
from littleghost.journal.keeper import Keeper
from littleghost.journal.live import LiveEvents
from littleghost.journal.policy import check_policy, check_schema
from littleghost.journal.record import Records
from littleghost.journal.scripts import constants, guarded
from littleghost.journal.store import RedisJournal
from littleghost.journal.tail import Tail
from littleghost.journal.workers import Workers
from littleghost.providers.base import CallControl
from littleghost.providers.registry import Models
from littleghost.providers.stand_in import STAND_IN, connect_stand_in
from littleghost.settings import Settings, is_cluster

logger = logging.getLogger("littleghost")


class Runtime:
    """Everything one process needs to start, watch and carry runs."""

    def __init__(self, settings: Settings, models: Models, *, is_embedded: bool = False) -> None:
        if settings.redis_url is None:
            raise ConfigurationError(
                "no Redis is configured: set LITTLEGHOST_REDIS_URL (embedded mode is off)"
            )
        self.settings = settings
        self.models = models
        self.is_embedded = is_embedded
        self.client = connect(settings.redis_url)
        self.reader = connect(settings.redis_url, blocking=True)
        self._broker = _broker(settings)
        header = constants(
            envelope=template() if settings.same_redis else None,
            push_prefix="",
            grace_ms=round(settings.republish_grace_s * 1000),
            retention_s=round(settings.retention_s),
            session_s=round(settings.session_s),
            is_cluster=is_cluster(settings.redis_url),
        )
        self.journal = RedisJournal(
            self.client,
            header,
            partitions=settings.partitions,
            stop_grace_s=settings.stop_grace_s,
            publish=self._broker.publish if self._broker else None,
        )
        self.records = Records(self.journal)
        self.inbox = Inbox(self.journal)
        self.workers = Workers(self.client, settings.lease_s)
        self.keeper = Keeper(
            self.journal,
            self.workers,
            lease_s=settings.lease_s,
            queue_lengths=self.queue_lengths,
        )
        self.running = RunningTasks(
            lambda: connect(settings.redis_url or "", blocking=True),
            lambda: self.journal.worker_id,
            settings.partitions,
            self._hand_over_here,
            self._give_back_lost,
        )
        # Shared with the children of a prefork pool: they must see that the worker drains.
        self._draining = mmap.mmap(-1, 1)
        self._owner = os.getpid()
        self._is_checked = False
        self.performer = self._performer(())

    def _performer(self, serves: Iterable[str]) -> Performer:
        settings = self.settings
        return Performer(
            Collaborators(
                journal=self.journal,
                assemblies=registry,
                models=self.models,
                live=LiveEvents(
                    self.journal, lambda: StaleAttemptError("another worker has this task")
                ),
                running=self.running,
                serves=frozenset(serves),
                queue=settings.queue,
                in_place_max=settings.in_place_max,
                max_lost=settings.max_lost,
                refuse_changed=settings.definition_mismatch == "refuse",
                is_draining=self.is_draining,
                pause=time.sleep,
            )
        )

    def queue_lengths(self, queues: Collection[str]) -> Mapping[str, int]:
        """Give the number of messages waiting in some queues."""
        if self._broker is not None:
            return self._broker.lengths(queues)
        names = sorted(queues)
        pipeline = self.client.pipeline(transaction=False)
        for name in names:
            pipeline.llen(name)
        return dict(zip(names, pipeline.execute(), strict=True))

    def tail(self, run_id: str, *, whole: bool = False) -> Tail:
        """Give a reader of a run's events; see `Tail`."""
        return Tail(self.journal, self.reader, run_id, whole=whole)

    def check_once(self) -> None:
        """Check, before the first run of this process, that its journal is one this version knows.

        Raises:
            SchemaVersionError: Another version, or another number of partitions, wrote it.
        """
        if not self._is_checked:
            check_schema(self.client, self.settings.partitions)
            self._is_checked = True

    def check_journal(self) -> None:
        """Refuse a Redis that may lose records, or one of another journal version.

        Raises:
            UnsafeRedisError: Its memory policy may evict keys.
            SchemaVersionError: Another version, or another number of partitions, wrote it.
        """
        check_policy(self.client)
        check_schema(self.client, self.settings.partitions)

    def become_worker(self, worker_id: str, queues: Iterable[str]) -> None:
        """Take an identity under which tasks are claimed."""
        self.journal.worker_id = worker_id
        widen(self.client)
        self.performer = self._performer(queues)

    def disconnect(self) -> None:
        """Close this process's connections; they open again when needed."""
        disconnect(self.client)
        disconnect(self.reader)

    def close(self) -> None:
        """Close the connections of a runtime that is no longer used."""
        self.running.close()
        if self._broker is not None:
            self._broker.close()
        self.client.close()
        self.reader.close()

    def release_child(self, child: int) -> int:
        """Give back what a dead pool child of this worker held. Gives the number of tasks."""
        return sum(
            self.journal.release(run_id, task_id, self.journal.worker_id, child=child, lost=True)
            for run_id, task_id in self.records.held(self.journal.worker_id)
        )

    def is_draining(self) -> bool:
        """Whether this worker is stopping and takes nothing new."""
        return self._draining[0] != 0

    def start_draining(self) -> None:
        """Take nothing new."""
        self._draining[0] = 1

    def holds_tasks(self) -> bool:
        """Whether any process of this worker works on a task."""
        return bool(self.records.held(self.journal.worker_id))

    def hand_over(self) -> None:
        """Have every process of this worker give back what can go on elsewhere.

        Raises:
            JournalError: Redis did not answer; to be tried again.

        Idempotent: yes.
        """
        channel = keys.control(self.journal.worker_id)
        try:
            guarded(lambda: self.client.publish(channel, '{"drain":true}'))
        finally:
            self._hand_over_here()

    def _hand_over_here(self) -> None:
        """Give back this process's turns and idempotent calls; others are left to finish.

        A turn is cut and begins again elsewhere. A call that may be repeated is given back while
        its code still runs: in a pool child the process ends with it, in a thread its result is
        dropped.
        """
        given = False
        # Turns first: they are cut without Redis.
        for lease, control in sorted(self.running.each(), key=lambda item: item[0].kind == "call"):
            if lease.kind != "call":
                control.cut(HandOverError("this worker is stopping"))
            elif lease.idempotent:
                given = True
                self._give_back(lease, control)
        if given and os.getpid() != self._owner:
            logging.shutdown()
            os._exit(0)

    def _give_back_lost(self, lease: Lease) -> None:
        self.journal.release(
            lease.run_id,
            lease.task_id,
            self.journal.worker_id,
            attempt=lease.attempt,
            lost=True,
        )

    def _give_back(self, lease: Lease, control: CallControl) -> None:
        self.journal.give_back(lease)
        control.cut(StaleAttemptError("this worker is stopping"))


def _broker(settings: Settings) -> Any:
    if settings.same_redis:
        return None
    from littleghost.celery.publish import BrokerPublisher

    return BrokerPublisher(settings.broker_url or "")


_lock = threading.RLock()
_current: Runtime | None = None
_pid = 0
_models: Models | None = None


def models() -> Models:
    """Give this process's model connections, for configuration in code."""
    global _models
    with _lock:
        if _models is None:
            _models = Models.from_environment(os.environ)
        return _models


def configure(settings: Settings) -> Runtime:
    """Use these settings instead of the environment's; for tests and for code that has its own."""
    global _current, _pid
    with _lock:
        _current, _pid = Runtime(settings, models()), os.getpid()
        return _current


def runtime(*, for_worker: bool = False) -> Runtime:
    """Give this process's runtime; the first call makes it.

    With nothing configured that starts a private Redis and a worker inside this process.
    """
    global _current, _pid
    found = _current
    if found is not None:
        return found
    with _lock:
        if _current is None:
            settings = Settings.from_environment()
            if settings.is_embedded and not for_worker:
                _current = _embedded(settings)
            else:
                _current = Runtime(settings, models())
            _pid = os.getpid()
        return _current


def _embedded(settings: Settings) -> Runtime:
    from littleghost.embedded import PrivateRedis

    started = time.monotonic()
    server = PrivateRedis()
    settings = settings.with_(redis_url=server.url, broker_url=None, partitions=1)
    known = models()
    stand_in = known.default is None
    if stand_in:
        connect_stand_in(known)
        known.default = STAND_IN
    made = Runtime(settings, known, is_embedded=True)
    try:
        _start_worker(made)
    except BaseException:
        made.close()
        server.stop()
        raise
    took_ms = (time.monotonic() - started) * 1000
    sys.stderr.write(
        f"littleghost: embedded Redis and worker started in {took_ms:.0f} ms "
        "(set LITTLEGHOST_REDIS_URL to use a fleet)\n"
    )
    if stand_in:
        sys.stderr.write(
            "littleghost: no default model is configured; a scripted stand-in takes its place "
            "(set OPENAI_API_KEY, OPENROUTER_API_KEY or LITTLEGHOST_MODEL)\n"
        )
    return made


def _start_worker(made: Runtime) -> None:
    global _current
    from littleghost.celery.inprocess import InProcessWorker

    # The worker's own start asks for the runtime.
    _current = made
    try:
        InProcessWorker(made.settings, made.hand_over)
    except SystemExit as refusal:
        # A worker that refuses to start ends its process; this process is the application's.
        _current = None
        raise refusal.__cause__ or refusal from None
    except BaseException:
        _current = None
        raise
