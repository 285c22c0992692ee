"""The provider for every service that speaks the OpenAI chat dialect."""

from __future__ import annotations

from littleghost.providers.base import ModelRequest
from littleghost.providers.history import call_ids
from littleghost.providers.openai_chat import build_request, reasoning_origin
from littleghost.providers.openai_stream import ChatStream
from littleghost.providers.service import Prepared, ServiceProvider
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import encode_body


class OpenAICompatible(ServiceProvider):
    """Asks one service in the OpenAI chat dialect; see `ServiceProvider`."""

    def _prepare(self, request: ModelRequest) -> Prepared:
        names = WireNames(spec.name for spec in request.tools)
        return Prepared(
            "/chat/completions",
            encode_body(build_request(request, self.profile)),
            ChatStream(
                who=self._service.host,
                names=names,
                taken_ids=call_ids(request.messages),
                origin=reasoning_origin(self.profile, request.model),
            ),
        )
