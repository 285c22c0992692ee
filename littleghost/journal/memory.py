"""What a process remembers of runs, so that a task reads only what is new to it.

A list in the journal is only ever appended to, and by one task at a time, so what was read once
stays true. The memory is bounded; a run that fell out is read again as a whole.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence

from littleghost.engine.ports import Lease, RunMemory
from littleghost.journal.plan import Plan
from littleghost.messages import Message

MAX_RUNS = 512
MAX_BYTES = 64 * 1024 * 1024


class Memories:
    """Remembered runs, the least recently used forgotten first. Thread-safe."""

    def __init__(self, max_runs: int = MAX_RUNS, max_bytes: int = MAX_BYTES) -> None:
        self._runs: OrderedDict[str, RunMemory] = OrderedDict()
        self._lock = threading.Lock()
        self._max_runs, self._max_bytes, self._bytes = max_runs, max_bytes, 0

    def get(self, run_id: str) -> RunMemory | None:
        """Give what is remembered of a run."""
        with self._lock:
            return self._runs.get(run_id)

    def recall(
        self, run_id: str, created: str, invocation: str, told: RunMemory | None
    ) -> RunMemory:
        """Give the memory of a run, begun anew when the journal sent the invocation.

        Args:
            told: The memory whose extent the journal was told; its answer goes on from there, even
                if the run was forgotten meanwhile.
        """
        with self._lock:
            if invocation or told is None:
                told = RunMemory(created=created, invocation=json.loads(invocation))
                told.size_bytes = len(invocation)
            if self._runs.get(run_id) is not told:
                self._drop(run_id)
                self._runs[run_id] = told
                self._bytes += told.size_bytes
            self._runs.move_to_end(run_id)
            self._shrink(run_id)
            return told

    def extend(
        self,
        run_id: str,
        memory: RunMemory,
        participant: str,
        start: int,
        records: Sequence[str],
    ) -> None:
        """Take in records of a participant's list, from an index on."""
        read = list(map(_read, records))
        with self._lock:
            # What the journal has told last, to whoever holds the lease, is all there is.
            memory.lists.setdefault(participant, [])[start:] = read
        self._grow(run_id, memory, sum(map(len, records)))

    def append(self, lease: Lease, plan: Plan, length: int) -> None:
        """Take in the records that a commit appended, and forget a run that it ended.

        Args:
            length: How many records the list had behind them; -1 is not known.
        """
        if "f" in plan.fields or ("done" in plan.fields and lease.participant == "0"):
            self.forget(lease.run_id)
            return
        if not plan.appended:
            return
        with self._lock:
            # Another thread may have read on already, and something may stand before them that
            # this process has not read; then the next lease brings what is missing.
            records = lease.records
            if len(records) != length - len(plan.appended):
                return
            records.extend(plan.appended)
        self._grow(lease.run_id, lease.memory, sum(map(len, plan.payloads)))

    def forget(self, run_id: str) -> None:
        """Forget a run."""
        with self._lock:
            self._drop(run_id)

    def _grow(self, run_id: str, memory: RunMemory, size: int) -> None:
        with self._lock:
            memory.size_bytes += size
            # A forgotten run's memory may still be in use, and is not counted.
            if self._runs.get(run_id) is memory:
                self._bytes += size

    def _drop(self, run_id: str) -> None:
        gone = self._runs.pop(run_id, None)
        if gone is not None:
            self._bytes -= gone.size_bytes

    def _shrink(self, keep: str) -> None:
        while len(self._runs) > self._max_runs or self._bytes > self._max_bytes:
            oldest = next(iter(self._runs))
            if oldest == keep:
                return
            self._drop(oldest)


def _read(record: str) -> Message | object:
    """Read one record: an agent's list holds messages, a composite's holds results."""
    data = json.loads(record)
    return Message.from_json(data) if isinstance(data, dict) and "role" in data else data
