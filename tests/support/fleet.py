"""Workers without Celery: runtimes whose every journal operation goes through a tap.

A tap sees each script call before and after it ran, so that a test can kill a worker there, send
the call again, or lose what it published. A killed worker does nothing any more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import redis

from littleghost.celery.envelope import redis_message
from littleghost.engine.perform import Performer
from littleghost.engine.ports import ReadyTask
from littleghost.journal import keys
from littleghost.journal.live import LiveEvents, Writer
from littleghost.journal.memory import Memories
from littleghost.journal.scripts import Scripts
from littleghost.providers.registry import Models
from littleghost.settings import Settings
from littleghost.wiring import Runtime

QUEUES = ("lg.turns", "lg.tools", "lg.turns.batch", "lg.tools.batch")
# Longer than any test, so that nothing happens by itself: the world lets time pass.
LEASE_S = 3600.0


class KilledError(BaseException):
    """A worker was killed here; nothing of ours may catch it."""


class Tap(Protocol):
    """Stands between a worker and the journal."""

    def operate(self, who: str, name: str, work: Callable[[], Any]) -> Any:
        """Do an operation, or something worse."""
        ...


class DirectTap:
    """Does what is asked."""

    def operate(self, who: str, name: str, work: Callable[[], Any]) -> Any:
        return work()


class TappedScripts(Scripts):
    """Scripts whose calls, and pipelines of calls, go through a tap."""

    def __init__(self, inner: Scripts, worker: Worker) -> None:
        super().__init__(inner._client, inner._header)
        self._worker = worker

    def run(self, name: str, key: str, *args: Any) -> list[Any]:
        call = super().run
        return self._worker.operate(name, lambda: call(name, key, *args))

    def queue(self, pipeline: Any, name: str, key: str, *args: Any) -> None:
        if not hasattr(pipeline, "queued_calls"):
            pipeline.queued_calls = []
            execute = pipeline.execute
            pipeline.execute = lambda **options: self._execute(pipeline, execute, options)
        pipeline.queued_calls.append((name, key, args))
        super().queue(pipeline, name, key, *args)

    def _execute(self, pipeline: Any, execute: Any, options: Any) -> Any:
        calls = pipeline.queued_calls
        is_first = [True]

        def work() -> Any:
            if not is_first:
                # The stack of a pipeline is empty after its first use.
                return [Scripts.run(self, name, key, *args) for name, key, args in calls]
            is_first.clear()
            return execute(**options)

        return self._worker.operate(calls[0][0], work)


class PromptLive(LiveEvents):
    """Appends the first text of an attempt where it is made, and leaves the rest to the commit."""

    def touch(self, writer: Writer, *, at_once: bool) -> None:
        self._dirty.add(writer)
        if at_once:
            self.flush()


class RecordedBroker:
    """A broker of lists in this process, for a journal whose scripts push nothing."""

    def __init__(self) -> None:
        self.queues: dict[str, list[ReadyTask]] = {}
        self.tap: Callable[[Callable[[], None]], None] = lambda work: work()

    def publish(self, ready: Sequence[ReadyTask]) -> None:
        """Take messages; the tap may lose them."""
        self.tap(lambda: self._take(ready))

    def _take(self, ready: Sequence[ReadyTask]) -> None:
        for task in ready:
            self.queues.setdefault(task.queue, []).append(task)

    def lengths(self, queues: Collection[str]) -> Mapping[str, int]:
        """Give the number of waiting messages."""
        return {queue: len(self.queues.get(queue, ())) for queue in queues}

    def close(self) -> None:
        """Nothing is open."""


class Worker:
    """One worker, or a caller: a runtime under an identity."""

    def __init__(
        self, settings: Settings, models: Models, name: str, broker: RecordedBroker | None = None
    ) -> None:
        if broker is not None:
            settings = settings.with_(broker_url="memory://recorded")
        self.name = name
        self.tap: Tap = DirectTap()
        self.is_alive = True
        self.runtime = Runtime(settings, models)
        if broker is not None:
            self.runtime._broker = broker
            self.runtime.journal._publish = self._publish
        self._broker = broker
        self.runtime.become_worker(name, QUEUES)
        journal = self.runtime.journal
        journal.scripts = TappedScripts(journal.scripts, self)
        abandon = self.runtime.running.abandon
        # A killed process gives nothing back.
        self.runtime.running.abandon = lambda lease: abandon(lease) if self.is_alive else None
        env = self.runtime.performer._env
        live = PromptLive(journal, env.live._stale)  # type: ignore[attr-defined]
        self.runtime.performer = Performer(replace(env, live=live, pause=_no_pause))

    def operate(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a journal operation through the tap; a killed worker does none."""
        if not self.is_alive:
            raise KilledError(self.name)
        return self.tap.operate(self.name, name, work)

    def _publish(self, ready: Sequence[ReadyTask]) -> None:
        assert self._broker is not None
        broker = self._broker
        self.operate("publish", lambda: broker.publish(ready))

    def reset(self, tap: Tap | None = None) -> None:
        """Begin anew after Redis was emptied."""
        self.is_alive = True
        self.tap = tap or DirectTap()
        self.runtime.journal.memories = Memories()
        self.runtime.running._tasks.clear()
        keeper = self.runtime.keeper
        keeper._had_trouble, keeper._reclaim_after = False, 0.0

    def rename(self, name: str) -> None:
        """Become another worker; each process has a name of its own."""
        self.name = self.runtime.journal.worker_id = name

    def register(self, client: redis.Redis) -> None:
        """Stand in the register of live workers for as long as it lives."""
        now_s, _ = client.time()
        client.zadd(keys.WORKERS, {self.name: int((now_s + LEASE_S) * 1000)})

    def kill(self, client: redis.Redis) -> None:
        """Die, and have the lease and the lead run out at once."""
        self.is_alive = False
        client.zrem(keys.WORKERS, self.name)
        if client.get(keys.KEEPER) == self.name:
            client.delete(keys.KEEPER)
        self.runtime.running._tasks.clear()
        # Nor does it append what its model had still to say.
        self.runtime.performer._env.live._dirty.clear()  # type: ignore[attr-defined]


def _no_pause(seconds: float) -> None:
    del seconds


def message_of(task: ReadyTask) -> str:
    """Give the text that the scripts push for a task."""
    return redis_message(task.kind, task.queue, task.run_id, task.task_id, task.at_ms)


def read_message(text: str) -> tuple[str, str, int, str]:
    """Read a pushed message: run, task, time, queue."""
    outer = json.loads(text)
    run_id, task_id, at_ms = json.loads(outer["body"])[0]
    return run_id, task_id, at_ms, outer["properties"]["delivery_info"]["routing_key"]
