"""What the providers of all dialects share: one service, its key, and one request's way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from littleghost.providers.answer_reader import AnswerStream, read_answer
from littleghost.providers.base import CallControl, ModelEvent, ModelRequest
from littleghost.providers.credentials import ApiKey, key_for
from littleghost.providers.http import HttpLimits, HttpService
from littleghost.providers.profiles import Profile


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request in the words of a dialect.

    Attributes:
        path: Where it goes, below the base URL.
        body: The encoded body.
        answer: What collects the answer.
    """

    path: str
    body: bytes
    answer: AnswerStream


class ServiceProvider:
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
        self._headers: Mapping[str, str] = {**profile.headers, **(headers or {})}
        self._service = HttpService(
            base_url or profile.base_url,
            limits=limits,
            allow_insecure_http=allow_insecure_http,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.profile.name!r}, base_url={self._service.base_url!r})"

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        """Ask the model and yield its answer as it comes.

        Raises:
            CredentialError: The service needs a key and there is none.
            DefinitionError: A tool's schema cannot be said in the dialect.
            ProviderError: The service failed.
            ControlError: The request was cut.
        """
        control.check()
        asked = self._prepare(request)
        key = key_for(self.profile, self._api_key)
        headers = {**self._key_header(key), **self._headers} if key else self._headers
        secrets = (key,) if key else ()
        with self._service.post(asked.path, asked.body, headers, control, secrets=secrets) as http:
            yield from read_answer(http, asked.answer)
        yield from asked.answer.finish()

    def close(self) -> None:
        """Give back this process's connections."""
        self._service.close()

    def _prepare(self, request: ModelRequest) -> Prepared:
        """Say a request in the words of the dialect."""
        raise NotImplementedError

    def _key_header(self, key: str) -> Mapping[str, str]:
        """Give the header that carries the key."""
        return {"authorization": f"Bearer {key}"}
