"""The provider for Gemini models, at the Gemini API and at Vertex AI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from littleghost.errors import InvalidRequestError
from littleghost.providers.base import ModelRequest
from littleghost.providers.gemini_request import build_request
from littleghost.providers.gemini_signatures import signature_origin
from littleghost.providers.gemini_stream import GeminiStream
from littleghost.providers.history import call_ids
from littleghost.providers.profiles import Profile
from littleghost.providers.service import Prepared, ServiceProvider
from littleghost.providers.tool_names import WireNames, letter_first_name
from littleghost.providers.wire_text import encode_body

# The collections a model's full name begins with.
_COLLECTIONS = ("models", "tunedModels", "publishers", "endpoints", "projects")


class Gemini(ServiceProvider):
    """Asks Gemini; see `ServiceProvider`. Its base URL includes the version."""

    def __init__(self, profile: Profile, *, root: str = "", **options: Any) -> None:
        """Check what can be checked; other options and errors as for `ServiceProvider`.

        Args:
            profile: The service: "gemini" or "vertex".
            root: `/projects/…/locations/…` for Vertex AI, where the key is an OAuth token.
        """
        super().__init__(profile, **options)
        self._root = root

    def _prepare(self, request: ModelRequest) -> Prepared:
        names = WireNames((spec.name for spec in request.tools), letter_first_name)
        origin = signature_origin(self.profile.name, request.model)
        body = encode_body(build_request(request, origin))
        return Prepared(
            self._path(request.model),
            body,
            GeminiStream(
                who=self._service.host,
                names=names,
                taken_ids=call_ids(request.messages),
                origin=origin,
            ),
        )

    def _key_header(self, key: str) -> Mapping[str, str]:
        return super()._key_header(key) if self._root else {"x-goog-api-key": key}

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
