"""The provider for services that speak the OpenAI Responses dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from littleghost.providers.answer_reader import read_answer
from littleghost.providers.base import CallControl, ModelEvent, ModelRequest
from littleghost.providers.credentials import ApiKey, key_for
from littleghost.providers.history import call_ids
from littleghost.providers.http import HttpLimits, HttpService
from littleghost.providers.profiles import Profile
from littleghost.providers.responses_request import build_request, reasoning_origin
from littleghost.providers.responses_stream import ResponsesStream
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import encode_body


class OpenAIResponses:
    """Asks one service, which keeps nothing: each request carries the whole conversation.

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
        encrypted_reasoning: bool | None = None,
    ) -> None:
        """Check what can be checked; nothing is opened.

        Args:
            profile: The service's address and key.
            base_url: Where it is, if not where the profile says.
            api_key: Its key, or a function that gives one for each request.
            headers: Further headers.
            limits: How long to wait and how much to take.
            allow_insecure_http: Let it be reached unencrypted on another host.
            encrypted_reasoning: Whether to ask for reasoning that can be sent back; None asks
                models that are not known to have none.

        Raises:
            ConfigurationError: The base URL is missing or cannot be used.
        """
        self.profile = profile
        self._api_key = api_key
        self._headers = {**profile.headers, **(headers or {})}
        self._encrypted_reasoning = encrypted_reasoning
        self._service = HttpService(
            base_url or profile.base_url,
            limits=limits,
            allow_insecure_http=allow_insecure_http,
        )

    def __repr__(self) -> str:
        return f"OpenAIResponses({self.profile.name!r}, base_url={self._service.base_url!r})"

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        """Ask the model and yield its answer as it comes.

        Raises:
            CredentialError: The service needs a key and there is none.
            ProviderError: The service failed.
            ControlError: The request was cut.
        """
        control.check()
        names = WireNames(spec.name for spec in request.tools)
        origin = reasoning_origin(self._service.host, request.model)
        body = encode_body(
            build_request(request, origin, encrypted_reasoning=self._encrypted_reasoning)
        )
        key = key_for(self.profile, self._api_key)
        headers = {"authorization": f"Bearer {key}", **self._headers} if key else self._headers
        collected = ResponsesStream(
            who=self._service.host,
            names=names,
            taken_ids=call_ids(request.messages),
            origin=origin,
        )
        secrets = (key,) if key else ()
        with self._service.post("/responses", body, headers, control, secrets=secrets) as answer:
            yield from read_answer(answer, collected)
        yield from collected.finish()

    def close(self) -> None:
        """Give back this process's connections."""
        self._service.close()
