"""Sends one request to a model service and hands out its answer as it comes.

Every phase can be cut from another thread, and ends at the run's deadline. There is no total
timeout otherwise: an answer may take as long as its bytes keep coming. Nothing is retried here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx

from littleghost.errors import InvalidRequestError, StreamError
from littleghost.providers.base import CallControl
from littleghost.providers.base_url import checked_url
from littleghost.providers.endpoint import CuttableTransport
from littleghost.providers.failures import failure_of_answer
from littleghost.providers.http_body import BodyStream, network_failure, translated
from littleghost.providers.sockets import Exchange
from littleghost.providers.spread import PER_TRANSPORT, Spread
from littleghost.providers.watchdog import cut_at_deadline, watchdog

# Seconds and chunks to wait for the end of a body whose last event has come: a connection that
# ends cleanly can be used again, but nobody should wait for one that does not.
_END_LIMIT_S = 0.02
_END_CHUNKS = 4
# Seconds for the beginning of an error's body, which may drip as slowly as any other.
_ERROR_BODY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How long to wait and how much to take.

    Attributes:
        open_timeout_s: Seconds to resolve, connect and shake hands.
        read_timeout_s: Seconds without a single byte.
        max_response_bytes: Most bytes of one answer.
        max_error_bytes: Most bytes of an error's body that are read.
        per_transport: Requests at once on one httpx transport.
    """

    open_timeout_s: float = 10.0
    read_timeout_s: float = 120.0
    max_response_bytes: int = 50 * 2**20
    max_error_bytes: int = 4096
    per_transport: int = PER_TRANSPORT


class HttpService:
    """One service at one base URL, with the connections to it.

    Thread-safe and fork-safe; connections are opened when they are needed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        limits: HttpLimits | None = None,
        allow_insecure_http: bool = False,
    ) -> None:
        """Check the URL; nothing is opened.

        Args:
            base_url: Where the service is, such as `https://host/v1`.
            limits: How long to wait and how much to take.
            allow_insecure_http: Let keys and conversations travel unencrypted to another host.

        Raises:
            ConfigurationError: The URL cannot be used.
        """
        self.base_url = checked_url(base_url, allow_insecure_http)
        self.host = urlsplit(self.base_url).netloc.rpartition("@")[2]
        self.limits = limits or HttpLimits()
        self._spread = Spread(self._make_transport, limit=self.limits.per_transport)

    @contextmanager
    def post(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        control: CallControl,
        *,
        secrets: tuple[str, ...] = (),
    ) -> Generator[HttpAnswer, None, None]:
        """Send a request and lend its answer, whose body is still to be read.

        Args:
            path: Appended to the base URL.
            body: JSON in UTF-8.
            headers: Further headers.
            control: Cuts the request, and bounds it.
            secrets: Credentials that must not stand in an error's message.

        Raises:
            ProviderError: The service cannot be reached or answers with an error status.
            ControlError: The request was cut.
        """
        exchange = Exchange()
        with (
            control.closing(exchange.cut),
            cut_at_deadline(control),
            self._spread.borrow() as transport,
        ):
            request = self._request(path, body, headers)
            with translated(control, self.host), exchange.active():
                response = transport.handle_request(request)
            body_stream = BodyStream(response, exchange)
            answer = HttpAnswer(response, control, self.host, self.limits, body_stream)
            try:
                if not response.is_success:
                    raise failure_of_answer(
                        self.host,
                        response.status_code,
                        response.headers,
                        answer.read_error(),
                        now=datetime.now(UTC),
                        secrets=secrets,
                    )
                yield answer
            finally:
                response.close()

    def close(self) -> None:
        """Close this process's connections."""
        self._spread.close()

    def _request(self, path: str, body: bytes, headers: Mapping[str, str]) -> httpx.Request:
        limits = self.limits
        timeout = httpx.Timeout(
            limits.read_timeout_s, connect=limits.open_timeout_s, pool=limits.open_timeout_s
        )
        try:
            return httpx.Request(
                "POST",
                self.base_url + path,
                content=body,
                headers={
                    "content-type": "application/json",
                    "accept": "text/event-stream, application/json",
                    # Deltas are small and must not wait in a compressor.
                    "accept-encoding": "identity",
                    "user-agent": "littleghost",
                    **headers,
                },
                extensions={"timeout": timeout.as_dict()},
            )
        except (httpx.InvalidURL, UnicodeError, TypeError) as error:
            raise InvalidRequestError(
                f"the request to {self.host} has an invalid URL or header"
            ) from error

    def _make_transport(self) -> httpx.HTTPTransport:
        return CuttableTransport(self.base_url)


class HttpAnswer:
    """A good answer whose body is read piece by piece."""

    def __init__(
        self,
        response: httpx.Response,
        control: CallControl,
        host: str,
        limits: HttpLimits,
        body: BodyStream,
    ) -> None:
        self._response = response
        self._control = control
        self._host = host
        self._limits = limits
        self._body = body
        self._end_chunks: int | None = None

    def chunks(self) -> Iterator[bytes]:
        """Read the body as it comes.

        Raises:
            StreamError: It broke off, or is larger than the limit.
            ProviderTimeoutError: No byte came within the read timeout.
            ControlError: The request was cut.
        """
        received = 0
        try:
            for chunk in self._response.iter_bytes():
                self._control.check()
                if self._end_chunks is not None:
                    self._end_chunks -= 1
                    if self._end_chunks < 0:
                        return
                received += len(chunk)
                if received > self._limits.max_response_bytes:
                    limit = self._limits.max_response_bytes
                    raise StreamError(
                        f"the answer of {self._host} is larger than {limit} bytes",
                        retryable=False,
                    )
                yield chunk
        except httpx.HTTPError as error:
            self._control.check()
            if self._end_chunks is None:
                raise network_failure(self._host, error) from error
        self._control.check()

    def expect_end(self) -> None:
        """Say that all that matters has come: `chunks` then ends within a moment."""
        self._end_chunks = _END_CHUNKS
        self._body.limit_reads(_END_LIMIT_S)

    def read_error(self) -> bytes:
        """Read the beginning of an error's body; a body that breaks off is as good as it gets."""
        body = b""
        alarm = watchdog().after(_ERROR_BODY_S, self._body.abort)
        try:
            for chunk in self._response.iter_bytes():
                self._control.check()
                body += chunk
                if len(body) >= self._limits.max_error_bytes:
                    break
        except httpx.HTTPError:
            pass
        finally:
            alarm.cancel()
        self._control.check()
        return body[: self._limits.max_error_bytes]
