"""A TCP proxy on loopback that fails on purpose. It parses nothing."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections import Counter

# What it may do with what a client sends, beside passing it on.
ERRORS = {
    "oom": b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "readonly": b"-READONLY You can't write against a read only replica.\r\n",
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n",
}
MODES = ("stall", "cut", "swallow", "refuse", *ERRORS)


class Proxy:
    """Passes connections on to one port, or one Unix socket.

    Modes: `pass`; `stall` forwards nothing until the mode ends; `cut` closes every connection at
    its next byte; `swallow` forwards what is sent, and closes instead of giving the answer;
    `refuse` accepts nothing new and cuts the rest; `oom`, `readonly`, `loading` answer an error.

    Attributes:
        hits: How often each mode did something.
    """

    def __init__(self, target: int | str) -> None:
        self._target = target
        self.hits: Counter[str] = Counter()
        self._mode = "pass"
        self._passes = threading.Event()
        self._passes.set()
        self._closed = False
        self._server = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, mode: str) -> None:
        self._mode = mode
        if mode == "stall":
            self._passes.clear()
        else:
            self._passes.set()

    def close(self) -> None:
        self._closed = True
        self.set("cut")
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            if self._mode == "refuse":
                self.hits["refuse"] += 1
                return
            with self._connect() as server:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while self._pump(client, server):
                    pass

    def _connect(self) -> socket.socket:
        if isinstance(self._target, int):
            server = socket.create_connection(("127.0.0.1", self._target))
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return server
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._target)
        return server

    def _pump(self, client: socket.socket, server: socket.socket) -> bool:
        ready, _, _ = select.select([client, server], [], [], 0.2)
        mode = self._mode
        if mode == "refuse" or (mode == "cut" and ready):
            self.hits[mode] += 1
            return False
        for source in ready:
            if not self._passes.is_set():
                self.hits["stall"] += 1
                self._passes.wait()
            data = source.recv(1 << 16)
            if not data:
                return False
            if source is client and self._mode in ERRORS:
                # Closed afterwards: nobody knows how many commands those bytes were.
                self.hits[self._mode] += 1
                client.sendall(ERRORS[self._mode])
                return False
            if source is server and self._mode == "swallow":
                self.hits["swallow"] += 1
                return False
            (server if source is client else client).sendall(data)
        return True
