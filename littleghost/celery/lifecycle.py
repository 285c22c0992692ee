"""What a worker process does beside its tasks: heartbeat, keeper, and an orderly stop."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from celery import signals

from littleghost import registry
from littleghost.celery.app import kombu_url
from littleghost.celery.children import ChildWatch, pool_processes
from littleghost.errors import ConfigurationError, LittleGhostError
from littleghost.journal.workers import WorkerFacts
from littleghost.version import __version__
from littleghost.wiring import Runtime, runtime

logger = logging.getLogger("littleghost.worker")
# A worker registers before its pool is up; this lease covers the start.
START_LEASE_S = 30.0

_connected = False


class Duties:
    """The threads of a worker's main process; user code in pool children cannot hold them up."""

    def __init__(self, work: Runtime, facts: WorkerFacts) -> None:
        self.work = work
        self.facts = facts
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, consumer: Any) -> None:
        """Start the heartbeat, the keeper, and the watch over a prefork pool's children."""
        settings = self.work.settings
        duties: list[tuple[str, Callable[[], None], float]] = [
            ("littleghost-heartbeat", self._renew, settings.heartbeat_s),
            ("littleghost-keeper", self._keep, settings.sweep_s),
        ]
        if pool_processes(consumer):
            watch = ChildWatch(lambda: pool_processes(consumer), self._child_died)
            duties.append(("littleghost-children", watch.look, 0.0))
        for name, duty, every_s in duties:
            thread = threading.Thread(
                target=self._repeat, args=(duty, every_s), daemon=True, name=name
            )
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End the threads and leave the register."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2.0)
        try:
            self.work.workers.leave(self.facts.id)
        except LittleGhostError as error:
            logger.warning("could not leave the register, the lease will run out: %s", error)

    def _repeat(self, duty: Any, every_s: float) -> None:
        is_well = True
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                duty()
                is_well = True
            except LittleGhostError as error:
                if is_well:
                    logger.warning("%s: %s", threading.current_thread().name, error)
                is_well = False
            except Exception:
                logger.exception("%s failed; it goes on", threading.current_thread().name)
            self._stop.wait(max(0.01, every_s - (time.monotonic() - started)))

    def _renew(self) -> None:
        self.work.workers.renew(self.facts)

    def _keep(self) -> None:
        self.work.keeper.round()

    def _child_died(self, child: int) -> None:
        count = self.work.release_child(child)
        if count:
            logger.warning("pool child %s died; gave back %d tasks", child, count)


_duties: Duties | None = None


def connect() -> None:
    """Hook into Celery's worker signals, once per process."""
    global _connected
    if _connected:
        return
    _connected = True
    signals.worker_init.connect(_on_init, weak=False)
    signals.worker_ready.connect(_on_ready, weak=False)
    signals.worker_shutting_down.connect(_on_shutting_down, weak=False)
    signals.worker_shutdown.connect(_on_shutdown, weak=False)


def _our_queues(work: Runtime, app: Any) -> tuple[str, ...]:
    """Give the queues of ours that the worker serves; all of them when none was chosen."""
    queues = app.amqp.queues
    prefix = work.settings.queue_prefix + "."
    if queues._consume_from is None:  # noqa: SLF001 - Celery has no other way to ask
        for name in work.settings.standard_queues():
            queues.select_add(name)
    return tuple(name for name in queues.consume_from if name.startswith(prefix))


def _on_init(sender: Any, **_: Any) -> None:
    """Begin to be a worker, or end the process with the reason.

    Celery logs what a signal's handler raises and goes on, so a refusal must leave it as an exit.
    """
    try:
        _begin(sender)
    except LittleGhostError as error:
        sys.stderr.write(f"littleghost: this worker does not start: {error}\n")
        sys.stderr.flush()
        raise SystemExit(1) from error


def _begin(sender: Any) -> None:
    """Check what can be checked before the first task, and take an identity."""
    work = runtime(for_worker=True)
    app = sender.app
    expected = kombu_url(work.settings.broker_url or work.settings.redis_url or "")
    # What Celery takes when nothing is set.
    actual = app.conf.broker_read_url or app.conf.broker_url or "amqp://"
    if expected and _place(expected) != _place(actual):
        raise ConfigurationError(
            f"this Celery app takes messages from {_place(actual)!r} and LittleGhost sends them to "
            f"{_place(expected)!r}; set LITTLEGHOST_BROKER_URL to the app's broker"
        )
    work.check_journal()
    registry.check_all()
    queues = _our_queues(work, app)
    worker_id = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    facts = WorkerFacts(
        id=worker_id,
        host=socket.gethostname(),
        pid=os.getpid(),
        queues=queues,
        pool=str(getattr(sender.pool_cls, "__module__", sender.pool_cls)).rpartition(".")[2],
        concurrency=int(sender.concurrency or 1),
        version=__version__,
    )
    work.become_worker(worker_id, queues)
    work.workers.renew(facts, lease_s=START_LEASE_S)
    # Children of a prefork pool must not share this process's sockets.
    work.disconnect()
    global _duties
    _duties = Duties(work, facts)


def _place(url: str) -> str:
    """Give a URL without credentials, in one spelling."""
    head, at, tail = url.rpartition("@")
    scheme = head.partition("://")[0] if at else ""
    text = f"{scheme}://{tail}" if at else url
    text = text.replace("localhost", "127.0.0.1").rstrip("/")
    return text.removesuffix("/0") if text.startswith("redis") else text


def _on_ready(sender: Any, **_: Any) -> None:
    if _duties is not None:
        _duties.start(sender)
        logger.info("worker %s serves %s", _duties.facts.id, ", ".join(_duties.facts.queues))


def _on_shutting_down(**_: Any) -> None:
    """Stop taking tasks; after the drain time, give back what still runs."""
    if _duties is None:
        return
    work = _duties.work
    work.start_draining()
    threading.Thread(target=_drain, args=(work,), daemon=True, name="littleghost-drain").start()


def _drain(work: Runtime) -> None:
    deadline = time.monotonic() + work.settings.drain_timeout_s
    while time.monotonic() < deadline and _holds_tasks(work):
        time.sleep(min(0.1, max(0.0, deadline - time.monotonic())))
    while True:
        try:
            work.hand_over()
            return
        except LittleGhostError as error:
            # The process ends without it once its tasks have ended; those that go on are handed
            # over as soon as Redis answers.
            logger.warning("could not hand tasks over yet: %s", error)
            time.sleep(0.5)


def _holds_tasks(work: Runtime) -> bool:
    try:
        return work.holds_tasks()
    except LittleGhostError:
        return True


def _on_shutdown(**_: Any) -> None:
    global _duties
    if _duties is not None:
        duties, _duties = _duties, None
        duties.stop()
