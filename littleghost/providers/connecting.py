"""Opens connections that can be cut while a name is resolved and while they are made."""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
import threading
from collections.abc import Iterable
from typing import Any

import httpcore

from littleghost.providers.sockets import CuttableStream, Exchange, current_exchange

# Seconds between looks at the cut flag while a connection is being opened.
_SLICE_S = 0.05
# Seconds for a connection when the caller sets no limit.
_NO_LIMIT_S = 60.0
_CUT = "the request was cut"


class CuttableBackend(httpcore.NetworkBackend):
    """Opens cuttable connections for httpcore."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve and connect; each address gets a fair share of the time."""
        exchange = current_exchange() or Exchange()
        limit = _NO_LIMIT_S if timeout is None else timeout
        try:
            addresses = _resolve(host, port, exchange, limit)
            sock = _connect_any(addresses, exchange, limit)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for option in socket_options or ():
                sock.setsockopt(*option)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return CuttableStream(sock)


class _Resolution:
    """A name being looked up by a thread of its own, since getaddrinfo cannot be interrupted."""

    def __init__(self, host: str, port: int) -> None:
        self.addresses: list[Any] = []
        self.error: OSError | None = None
        self._done = threading.Event()
        self._address = (host, port)
        threading.Thread(target=self._look_up, name="littleghost-resolve", daemon=True).start()

    def abort(self) -> None:
        self._done.set()

    def wait(self, timeout_s: float) -> bool:
        return self._done.wait(timeout_s)

    def _look_up(self) -> None:
        try:
            self.addresses = socket.getaddrinfo(*self._address, 0, socket.SOCK_STREAM)
        except OSError as error:
            self.error = error
        self._done.set()


def _resolve(host: str, port: int, exchange: Exchange, timeout_s: float) -> list[Any]:
    if _is_local(host):
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    resolution = _Resolution(host, port)
    exchange.hold(resolution)
    if not resolution.wait(timeout_s):
        raise TimeoutError(f"the name {host!r} was not resolved in {timeout_s:g} s")
    if exchange.is_cut:
        raise ConnectionAbortedError(_CUT)
    if resolution.error is not None:
        raise resolution.error
    return resolution.addresses


def _connect_any(addresses: list[Any], exchange: Exchange, timeout_s: float) -> socket.socket:
    failure: OSError = ConnectionError("the name has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            connect(sock, address, exchange, timeout_s / (len(addresses) - number))
            return sock
        except OSError as error:
            sock.close()
            failure = error
            if exchange.is_cut:
                break
    raise failure


def connect(sock: socket.socket, address: Any, exchange: Exchange, timeout_s: float) -> None:
    """Connect a socket, looking at the cut flag all the time.

    Raises:
        OSError: It was refused, cut, or took longer than `timeout_s`.
    """
    # In slices, because not every system lets a socket be shut down while it connects.
    sock.setblocking(False)
    error = sock.connect_ex(address)
    if error not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
        raise OSError(error, os.strerror(error))
    poller = select.poll()
    poller.register(sock, select.POLLOUT)
    slices = max(1, round(timeout_s / _SLICE_S))
    for _ in range(slices):
        if exchange.is_cut:
            raise ConnectionAbortedError(_CUT)
        if poller.poll(1000 * min(_SLICE_S, timeout_s)):
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            return
    raise TimeoutError(f"no connection in {timeout_s:g} s")


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
