"""What an HTTP answer's body needs: letting go of its connection in time, and naming its errors."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import httpx

from littleghost.errors import (
    InvalidRequestError,
    ProviderError,
    ProviderTimeoutError,
    StreamError,
)
from littleghost.providers.base import CallControl
from littleghost.providers.sockets import CuttableStream, Exchange


class BodyStream(httpx.SyncByteStream):
    """A body that lets go of its connection before httpcore gives it to another request."""

    def __init__(self, response: httpx.Response, exchange: Exchange) -> None:
        inner = response.stream
        assert isinstance(inner, httpx.SyncByteStream)
        self._inner = inner
        self._exchange = exchange
        connection: object = response.extensions.get("network_stream")
        self._connection = connection if isinstance(connection, CuttableStream) else None
        if self._connection is not None:
            exchange.hold(self._connection)
        response.stream = self

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._inner)

    def limit_reads(self, limit_s: float) -> None:
        """Wait at most `limit_s` seconds for each further piece."""
        if self._connection is not None:
            self._connection.limit_s = limit_s

    def abort(self) -> None:
        """Break the body off."""
        if self._connection is not None:
            self._connection.abort()

    def close(self) -> None:
        """Give the connection back, or close it when the body has not ended."""
        self._exchange.release()
        if self._connection is not None:
            self._connection.limit_s = None
            self._connection = None
        self._inner.close()


@contextmanager
def translated(control: CallControl, host: str) -> Generator[None, None, None]:
    """Turn httpx's errors into ours, and those of a cut request into the reason of the cut."""
    try:
        yield
    except httpx.HTTPError as error:
        control.check()
        raise network_failure(host, error) from error


def network_failure(host: str, error: httpx.HTTPError) -> ProviderError:
    """Name the failure of a connection."""
    why = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        return ProviderTimeoutError(f"{host} could not be reached in time: {why}")
    if isinstance(error, httpx.TimeoutException):
        return ProviderTimeoutError(f"{host} sent nothing within the read timeout")
    if isinstance(error, httpx.ConnectError):
        is_refused = "CERTIFICATE_VERIFY_FAILED" in why
        return StreamError(f"{host} could not be reached: {why}", retryable=not is_refused)
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return InvalidRequestError(f"the request to {host} is not valid HTTP")
    return StreamError(f"the connection to {host} broke off: {why}")
