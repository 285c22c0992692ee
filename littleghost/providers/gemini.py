"""The provider for Gemini models, at the Gemini API and at Vertex AI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from littleghost.errors import InvalidRequestError
from littleghost.providers.answer_reader import read_answer
from littleghost.providers.base import CallControl, ModelEvent, ModelRequest
from littleghost.providers.credentials import ApiKey, key_for
from littleghost.providers.gemini_request import build_request
from littleghost.providers.gemini_signatures import signature_origin
from littleghost.providers.gemini_stream import GeminiStream
from littleghost.providers.history import call_ids
from littleghost.providers.http import HttpLimits, HttpService
from littleghost.providers.profiles import Profile
from littleghost.providers.tool_names import WireNames, letter_first_name
from littleghost.providers.wire_text import encode_body

# The collections a model's full name begins with.
_COLLECTIONS = ("models", "tunedModels", "publishers", "endpoints", "projects")


class Gemini:
    """Asks Gemini over connections that it keeps for the next request.

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
        root: str = "",
    ) -> None:
        """Check what can be checked; nothing is opened.

        Args:
            profile: The service: "gemini" or "vertex".
            base_url: Where it is, with its version, if not where the profile says.
            api_key: Its key, or for Vertex AI an OAuth token; or a function that gives one for
                each request.
            headers: Further headers.
            limits: How long to wait and how much to take.
            allow_insecure_http: Let it be reached unencrypted on another host.
            root: `/projects/…/locations/…` for Vertex AI, which also takes the key as a token.

        Raises:
            ConfigurationError: The base URL is missing or cannot be used.
        """
        self.profile = profile
        self._api_key = api_key
        self._headers = {**profile.headers, **(headers or {})}
        self._root = root
        self._service = HttpService(
            base_url or profile.base_url,
            limits=limits,
            allow_insecure_http=allow_insecure_http,
        )

    def __repr__(self) -> str:
        return f"Gemini({self.profile.name!r}, base_url={self._service.base_url!r})"

    def stream(self, request: ModelRequest, control: CallControl) -> Iterator[ModelEvent]:
        """Ask the model and yield its answer as it comes.

        Raises:
            CredentialError: There is no key.
            DefinitionError: A tool's schema cannot be said in Gemini's subset.
            ProviderError: The service failed.
            ControlError: The request was cut.
        """
        control.check()
        names = WireNames((spec.name for spec in request.tools), letter_first_name)
        origin = signature_origin(self.profile.name, request.model)
        body = encode_body(build_request(request, origin))
        path = self._path(request.model)
        key = key_for(self.profile, self._api_key)
        stream = GeminiStream(
            who=self._service.host,
            names=names,
            taken_ids=call_ids(request.messages),
            origin=origin,
        )
        secrets = (key,) if key else ()
        with self._service.post(path, body, self._signed(key), control, secrets=secrets) as answer:
            yield from read_answer(answer, stream)
        yield from stream.finish()

    def close(self) -> None:
        """Give back this process's connections."""
        self._service.close()

    def _signed(self, key: str) -> Mapping[str, str]:
        if not key:
            return self._headers
        if self._root:
            return {"authorization": f"Bearer {key}", **self._headers}
        return {"x-goog-api-key": key, **self._headers}

    def _path(self, model: str) -> str:
        """Give the path of a model, named by its id or in full."""
        steps = model.split("/")
        if any(step in ("", ".", "..") for step in steps):
            raise InvalidRequestError(f"model {model!r} is not the name of a model")
        if steps[0] not in _COLLECTIONS:
            steps = ["publishers", "google", "models", *steps] if self._root else ["models", *steps]
        root = "" if steps[0] == "projects" else self._root
        name = "/".join(quote(step, safe="@") for step in steps)
        return f"{root}/{name}:streamGenerateContent?alt=sse"
