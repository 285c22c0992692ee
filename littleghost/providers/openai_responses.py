"""The provider for services that speak the OpenAI Responses dialect."""

from __future__ import annotations

from typing import Any

from littleghost.providers.base import ModelRequest
from littleghost.providers.history import call_ids
from littleghost.providers.profiles import Profile
from littleghost.providers.responses_request import build_request, reasoning_origin
from littleghost.providers.responses_stream import ResponsesStream
from littleghost.providers.service import Prepared, ServiceProvider
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import encode_body


class OpenAIResponses(ServiceProvider):
    """Asks one service in the OpenAI Responses dialect; see `ServiceProvider`.

    The service keeps nothing: each request carries the whole conversation.
    """

    def __init__(
        self, profile: Profile, *, encrypted_reasoning: bool | None = None, **options: Any
    ) -> None:
        """Check what can be checked; other options and errors as for `ServiceProvider`.

        Args:
            profile: The service's address and key.
            encrypted_reasoning: Whether to ask for reasoning that can be sent back; None asks
                models that are not known to have none.
        """
        super().__init__(profile, **options)
        self._encrypted_reasoning = encrypted_reasoning

    def _prepare(self, request: ModelRequest) -> Prepared:
        names = WireNames(spec.name for spec in request.tools)
        origin = reasoning_origin(self._service.host, request.model)
        body = build_request(request, origin, encrypted_reasoning=self._encrypted_reasoning)
        return Prepared(
            "/responses",
            encode_body(body),
            ResponsesStream(
                who=self._service.host,
                names=names,
                taken_ids=call_ids(request.messages),
                origin=origin,
            ),
        )
