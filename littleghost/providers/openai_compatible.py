"""The provider for every service that speaks the OpenAI chat dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from littleghost.providers.answer_reader import read_answer
from littleghost.providers.base import CallControl, ModelEvent, ModelRequest
from littleghost.providers.credentials import ApiKey, key_for
from littleghost.providers.history import call_ids
from littleghost.providers.http import HttpLimits, HttpService
from littleghost.providers.openai_chat import build_request, reasoning_origin
from littleghost.providers.openai_stream import ChatStream
from littleghost.providers.profiles import Profile
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import encode_body


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
        key = key_for(self.profile, self._api_key)
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
            yield from read_answer(answer, chat)
        yield from chat.finish()

    def close(self) -> None:
        """Give back this process's connections."""
        self._service.close()
