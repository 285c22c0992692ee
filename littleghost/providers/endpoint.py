"""The httpx transport that reaches a service: its proxy, its TLS, its cuttable sockets."""

from __future__ import annotations

import ssl
import urllib.request
from functools import cache
from urllib.parse import urlsplit

import httpx

from littleghost.providers.base_url import is_loopback
from littleghost.providers.connecting import CuttableBackend

# Seconds an unused connection is kept for the next turn.
_KEEPALIVE_S = 30.0


class CuttableTransport(httpx.HTTPTransport):
    """An httpx transport whose connections can be cut."""

    def __init__(self, base_url: str) -> None:
        is_secure = base_url.startswith("https:")
        super().__init__(
            verify=ssl_context() if is_secure else False,
            trust_env=False,
            proxy=_proxy_of(base_url),
            # No limits: `Spread` keeps the number small, and httpcore may close a connection that
            # it has just given to another thread when it thinks that there are too many.
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=None,
                keepalive_expiry=_KEEPALIVE_S,
            ),
        )
        # httpx 0.28 has no argument for httpcore's network backend, which is public there.
        self._pool._network_backend = CuttableBackend()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


@cache
def ssl_context() -> ssl.SSLContext:
    """Give the process's TLS settings, which honour SSL_CERT_FILE and SSL_CERT_DIR.

    Cost: 20 ms to read the certificates, once; all transports share it.
    """
    return httpx.create_ssl_context()


def _proxy_of(base_url: str) -> str | None:
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy
