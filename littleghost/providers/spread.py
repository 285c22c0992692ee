"""Spreads requests over several httpx transports.

httpcore looks at every connection of a pool each time it assigns a request, so one pool with
1,000 connections costs ten times the CPU of twenty pools with fifty each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import httpx

from littleghost.providers.per_process import PerProcess
from littleghost.providers.watchdog import watchdog

# Requests at once on one transport.
PER_TRANSPORT = 50
# Seconds after which a transport that carries nothing is closed with its idle connections.
IDLE_S = 60.0


class _Slot:
    __slots__ = ("idle_since", "in_flight", "transport")

    def __init__(self, transport: httpx.HTTPTransport) -> None:
        self.transport = transport
        self.in_flight = 0
        self.idle_since = 0.0


class _State:
    """One process's transports."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.slots: list[_Slot] = []
        self.is_reaping = False


class Spread:
    """Lends transports, each to at most `limit` requests at once; makes more when all are full.

    Thread-safe and fork-safe: a forked child starts with none.
    """

    def __init__(
        self,
        make: Callable[[], httpx.HTTPTransport],
        *,
        limit: int = PER_TRANSPORT,
        idle_s: float = IDLE_S,
    ) -> None:
        """Start empty.

        Args:
            make: Makes one more transport; must not connect.
            limit: Requests at once on one transport.
            idle_s: Seconds until an unused transport is closed.
        """
        self._make = make
        self._limit = limit
        self._idle_s = idle_s
        self._state: PerProcess[_State] = PerProcess(_State)

    @contextmanager
    def borrow(self) -> Generator[httpx.HTTPTransport, None, None]:
        """Lend a transport for one request, until its answer is read or given up."""
        state = self._state.get()
        slot = self._take(state)
        try:
            yield slot.transport
        finally:
            with state.lock:
                slot.in_flight -= 1
                if slot.in_flight == 0:
                    slot.idle_since = time.monotonic()
                    self._plan_reaping(state)

    @property
    def size(self) -> int:
        """How many transports this process holds."""
        return len(self._state.get().slots)

    def close(self) -> None:
        """Close all of this process's transports, also those in use."""
        state = self._state.get()
        with state.lock:
            slots, state.slots = state.slots, []
        for slot in slots:
            slot.transport.close()

    def reap(self) -> None:
        """Close the transports that have carried nothing for `idle_s` seconds."""
        state = self._state.get()
        limit = time.monotonic() - self._idle_s
        with state.lock:
            state.is_reaping = False
            idle = [slot for slot in state.slots if not slot.in_flight and slot.idle_since <= limit]
            state.slots = [slot for slot in state.slots if slot not in idle]
            if any(not slot.in_flight for slot in state.slots):
                self._plan_reaping(state)
        for slot in idle:
            slot.transport.close()

    def _take(self, state: _State) -> _Slot:
        with state.lock:
            # The first with room, so that connections are used again and the last ones idle out.
            for slot in state.slots:
                if slot.in_flight < self._limit:
                    break
            else:
                slot = _Slot(self._make())
                state.slots.append(slot)
            slot.in_flight += 1
            return slot

    def _plan_reaping(self, state: _State) -> None:
        if not state.is_reaping:
            state.is_reaping = True
            watchdog().after(self._idle_s, self.reap)
