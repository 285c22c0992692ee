"""Checks the options of connections to Gemini and Vertex AI. Imports no HTTP client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from littleghost.errors import ConfigurationError
from littleghost.providers.base_url import checked_url
from littleghost.providers.profiles import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from littleghost.providers.base import Provider

_OPTIONS = frozenset({"base_url", "api_key", "headers", "allow_insecure_http"})
_VERTEX_OPTIONS = _OPTIONS | {"project", "location", "token"}
_LIMITS = (
    "open_timeout_s",
    "read_timeout_s",
    "max_response_bytes",
    "max_error_bytes",
    "per_transport",
)
_PROJECT = re.compile(r"[a-z0-9][a-z0-9.:-]{0,99}")
_LOCATION = re.compile(r"[a-z][a-z0-9-]{0,49}")


def gemini_factory(profile: Profile, options: Mapping[str, Any]) -> Callable[..., Provider]:
    """Check a connection's options and give what makes its provider.

    Raises:
        ConfigurationError: An option is unknown, missing or cannot be used.
    """
    is_vertex = profile.name == "vertex"
    known = (_VERTEX_OPTIONS if is_vertex else _OPTIONS) | frozenset(_LIMITS)
    unknown = sorted(set(options) - known)
    if unknown:
        raise ConfigurationError(
            f"adapter {profile.name!r} has no option {unknown[0]!r}; it has: "
            f"{', '.join(sorted(known))}"
        )
    base_url = options.get("base_url") or profile.base_url
    if is_vertex:
        project, location = options.get("project"), options.get("location") or "global"
        if not isinstance(project, str) or not _PROJECT.fullmatch(project):
            raise ConfigurationError(
                f"adapter 'vertex' needs the option 'project', the id of a project, not {project!r}"
            )
        if not isinstance(location, str) or not _LOCATION.fullmatch(location):
            raise ConfigurationError(
                f"adapter 'vertex': location {location!r} is no region; use one such as "
                "'us-central1', or 'global'"
            )
        base_url = options.get("base_url") or vertex_url(location)
    checked_url(base_url, bool(options.get("allow_insecure_http")))
    return partial(_make, profile)


def vertex_url(location: str) -> str:
    """Give the address of Vertex AI in a region, in the multi-regions us and eu, or global."""
    if location == "global":
        return "https://aiplatform.googleapis.com/v1"
    if location in ("us", "eu"):
        return f"https://aiplatform.{location}.rep.googleapis.com/v1"
    return f"https://{location}-aiplatform.googleapis.com/v1"


def _make(profile: Profile, **options: Any) -> Provider:
    # httpx takes a tenth of a second to import; only a process that asks a service pays it.
    from littleghost.providers.gemini import Gemini
    from littleghost.providers.http import HttpLimits

    given = {name: value for name, value in options.items() if value is not None}
    limits: HttpLimits = HttpLimits(**{n: given.pop(n) for n in _LIMITS if n in given})
    token = given.pop("token", None)
    if token:
        given["api_key"] = token
    if profile.name == "vertex":
        project, location = given.pop("project"), given.pop("location", None) or "global"
        given["root"] = f"/projects/{project}/locations/{location}"
        given["base_url"] = given.get("base_url") or vertex_url(location)
    return Gemini(profile, limits=limits, **given)
