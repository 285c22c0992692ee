"""The provider for every service that speaks the OpenAI chat dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from littleghost.errors import CredentialError, LittleGhostError, StreamError
from littleghost.providers.base import CallControl, ModelEvent, ModelRequest
from littleghost.providers.http import HttpAnswer, HttpLimits, HttpService
from littleghost.providers.openai_chat import build_request, call_ids, reasoning_origin
from littleghost.providers.openai_stream import ChatStream
from littleghost.providers.profiles import Profile
from littleghost.providers.sse import SseParser
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import encode_body

ApiKey = str | Callable[[], str | None] | None


class OpenAICompatible:
    """Asks one service, over connections that it keeps for the next request.

    Thread-safe and fork-safe. Its repr shows no credentials.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        base_url: str = "",
        api_key: ApiKey = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits | None = None,
        allow_insecure_http: bool = False,
    ) -> None:
        """Check what can be checked; nothing is opened.

        Args:
            profile: The service's habits.
            base_url: Where it is, if not where the profile says.
            api_key: Its key, or a function that gives one for each request.
            headers: Further headers.
            limits: How long to wait and how much to take.
            allow_insecure_http: Let it be reached unencrypted on another host.

        Raises:
            ConfigurationError: The base URL is missing or cannot be used.
        """
        self.profile = profile
        self._api_key = api_key
        self._headers = {**profile.headers, **(headers or {})}
        self._service = HttpService(
            base_url or profile.base_url,
            limits=limits,
            allow_insecure_http=allow_insecure_http,
        )

    def __repr__(self) -> str:
        return f"OpenAICompatible({self.profile.name!r}, base_url={self._service.base_url!r})"

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        """Ask the model and yield its answer as it comes.

        Raises:
            CredentialError: The service needs a key and there is none.
            ProviderError: The service failed.
            ControlError: The request was cut.
        """
        control.check()
        names = WireNames(spec.name for spec in request.tools)
        body = encode_body(build_request(request, self.profile))
        key = self._resolve_key()
        headers = {"authorization": f"Bearer {key}", **self._headers} if key else self._headers
        chat = ChatStream(
            who=self._service.host,
            names=names,
            taken_ids=call_ids(request.messages),
            origin=reasoning_origin(self.profile, request.model),
        )
        secrets = (key,) if key else ()
        with self._service.post(
            "/chat/completions", body, headers, control, secrets=secrets
        ) as answer:
            yield from _read(answer, chat)
        yield from chat.finish()

    def close(self) -> None:
        """Give back this process's connections."""
        self._service.close()

    def _resolve_key(self) -> str:
        key = self._api_key
        if callable(key):
            try:
                key = key()
            except LittleGhostError:
                raise
            except Exception as error:
                raise CredentialError(
                    f"the key of {self.profile.name!r} could not be fetched: its function raised "
                    f"{type(error).__name__}"
                ) from error
        key = (key or "").strip()
        if not key and self.profile.needs_key:
            hint = " or ".join(self.profile.key_variables)
            raise CredentialError(f"{self.profile.name!r} needs a key: set {hint}, or pass api_key")
        if not (key.isascii() and key.isprintable()):
            raise CredentialError(f"the key of {self.profile.name!r} holds characters no key has")
        return key


def _read(answer: HttpAnswer, chat: ChatStream) -> Iterator[ModelEvent]:
    """Read the body to its end, whether it is a stream of events or one JSON object."""
    parser = SseParser()
    whole: bytearray | None = None
    is_first = True
    for chunk in answer.chunks():
        if is_first and chunk.strip():
            is_first = False
            # No event stream begins with a brace, and content types are not to be trusted.
            whole = bytearray() if chunk.lstrip()[:1] == b"{" else None
        if whole is not None:
            whole += chunk
            continue
        for event in parser.feed(chunk):
            yield from chat.feed(event.data, event.event)
        if chat.is_done:
            answer.expect_end()
    if whole is not None:
        yield from chat.feed_whole(bytes(whole))
    elif not chat.is_done:
        yield from _read_pending(parser, chat)


def _read_pending(parser: SseParser, chat: ChatStream) -> Iterator[ModelEvent]:
    """Take an event that only lacks its blank line; one that was cut is an error."""
    was_inside_line = parser.has_partial_line
    event = parser.pending()
    if event is not None and chat.is_whole(event.data):
        yield from chat.feed(event.data, event.event)
    elif event is not None or was_inside_line:
        raise StreamError("the answer ended in the middle of an event")
