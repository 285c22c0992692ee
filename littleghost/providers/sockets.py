"""Sockets that another thread can cut at any moment, and the exchange they work for.

Closing an httpx response from another thread does not reliably wake a blocked read, and closing a
socket that a thread reads from may hit a stranger that was given the same number. Shutting the
socket down does wake it, at once, and leaves the closing to the thread that owns it.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import httpcore

_here = threading.local()
# Every open socket of this process: a forked child closes its copies, so that a connection ends
# when the parent ends it.
open_sockets: set[socket.socket] = set()


class Abortable(Protocol):
    """What an exchange waits on at the moment."""

    def abort(self) -> None:
        """Wake whoever waits. Thread-safe and idempotent."""
        ...


class Exchange:
    """One request and its answer, as seen by whoever wants to cut it.

    Thread-safe: one thread sends and reads, any thread may cut. What is held is aborted under a
    lock, so a connection that was released can never be hit: by then it may carry another request.
    """

    def __init__(self) -> None:
        self.is_cut = False
        self._lock = threading.Lock()
        self._held: Abortable | None = None

    def hold(self, held: Abortable) -> None:
        """Name what the exchange waits on from now on; aborted at once if it was cut before."""
        if self._held is held:
            return
        with self._lock:
            self._held = held
            if self.is_cut:
                held.abort()

    def release(self) -> None:
        """Let go of what is held; called before a connection is given back."""
        with self._lock:
            self._held = None

    def cut(self) -> None:
        """Make the waiting thread return or raise now."""
        with self._lock:
            self.is_cut = True
            if self._held is not None:
                self._held.abort()

    @contextmanager
    def active(self) -> Generator[None, None, None]:
        """Make this the exchange that sockets of the current thread work for."""
        _here.exchange = self
        try:
            yield
        finally:
            _here.exchange = None


def current_exchange() -> Exchange | None:
    """Give the exchange that the current thread sends for."""
    return getattr(_here, "exchange", None)


class CuttableStream(httpcore.NetworkStream):
    """A connected socket, TLS or not.

    Attributes:
        limit_s: Most seconds one read waits, whatever the caller asks for; None is no limit.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.limit_s: float | None = None
        self._sock = sock
        # Held to close, shut down or replace the socket: never on a number somebody else owns.
        self._guard = threading.Lock()
        self._timeout: float | None = sock.gettimeout()
        open_sockets.add(sock)

    def abort(self) -> None:
        """Wake the thread that reads or writes."""
        with self._guard, suppress(OSError):
            # Not SSLSocket.shutdown, which takes the TLS layer away under the reader's feet.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there, or wait for it."""
        self._begin(timeout if self.limit_s is None else min(self.limit_s, timeout or self.limit_s))
        try:
            return self._sock.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write everything."""
        rest = memoryview(buffer)
        try:
            while rest:
                self._begin(timeout)
                rest = rest[self._sock.send(rest) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        """Close the socket."""
        with self._guard:
            open_sockets.discard(self._sock)
            self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Go on in TLS, on the same stream."""
        if isinstance(self._sock, ssl.SSLSocket):
            raise httpcore.ConnectError("TLS inside TLS is not supported: use an http:// proxy")
        try:
            with self._guard:
                open_sockets.discard(self._sock)
                self._sock.settimeout(timeout)
                # The handshake comes after the swap, so that it can be cut too.
                self._sock = ssl_context.wrap_socket(
                    self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
                )
                self._timeout = timeout
                open_sockets.add(self._sock)
            self._begin(timeout)
            self._sock.do_handshake()
        except TimeoutError as error:
            self.close()
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            self.close()
            raise httpcore.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        """Tell what httpcore asks about the socket."""
        if info == "is_readable":
            return _is_readable(self._sock)
        if info == "socket":
            return self._sock
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock
        return None

    def _begin(self, timeout: float | None) -> None:
        exchange = current_exchange()
        if exchange is not None:
            exchange.hold(self)
        # Setting a timeout is a system call, and it is nearly always the same one.
        if timeout != self._timeout:
            self._sock.settimeout(timeout)
            self._timeout = timeout


def _is_readable(sock: socket.socket) -> bool:
    number = sock.fileno()
    if number < 0:
        return True
    poller = select.poll()
    poller.register(number, select.POLLIN)
    return bool(poller.poll(0))


def _close_inherited() -> None:
    for sock in list(open_sockets):
        with suppress(OSError):
            sock.close()
    open_sockets.clear()


os.register_at_fork(after_in_child=_close_inherited)
