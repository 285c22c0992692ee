"""The provider for Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from littleghost.providers.anthropic_request import build_request, reasoning_origin
from littleghost.providers.anthropic_stream import MessageStream
from littleghost.providers.base import ModelRequest
from littleghost.providers.history import call_ids
from littleghost.providers.profiles import Profile
from littleghost.providers.service import Prepared, ServiceProvider
from littleghost.providers.tool_names import WireNames
from littleghost.providers.wire_text import encode_body

_VERSION = "2023-06-01"


class Anthropic(ServiceProvider):
    """Asks one service in the dialect of Anthropic's Messages API; see `ServiceProvider`.

    Its base URL may end with `/v1` or not; its headers may hold `anthropic-beta`.
    """

    def __init__(self, profile: Profile, **options: Any) -> None:
        """Check what can be checked; options and errors as for `ServiceProvider`."""
        super().__init__(profile, **options)
        self._headers = {"anthropic-version": _VERSION, **self._headers}
        has_version = self._service.base_url.endswith("/v1")
        self._path = "/messages" if has_version else "/v1/messages"

    def _prepare(self, request: ModelRequest) -> Prepared:
        names = WireNames(spec.name for spec in request.tools)
        return Prepared(
            self._path,
            encode_body(build_request(request, self.profile)),
            MessageStream(
                who=self._service.host,
                names=names,
                taken_ids=call_ids(request.messages),
                origin=reasoning_origin(self.profile, request.model),
            ),
        )

    def _key_header(self, key: str) -> Mapping[str, str]:
        return {"x-api-key": key}
