"""Where Vertex AI is, and what a connection to it must say. Imports no HTTP client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from littleghost.errors import ConfigurationError

VERTEX_OPTIONS = frozenset({"project", "location", "token"})
_PROJECT = re.compile(r"[a-z0-9][a-z0-9.:-]{0,99}")
_LOCATION = re.compile(r"[a-z][a-z0-9-]{0,49}")


def vertex_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Say where a project's models are, in the words of Gemini's provider.

    Args:
        options: A connection's options, with its project, its location and its token.

    Returns:
        The other options, with an address, a root and the token as key.

    Raises:
        ConfigurationError: The project is missing, or it or the location cannot be used.
    """
    given = {name: value for name, value in options.items() if name not in VERTEX_OPTIONS}
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
    given["root"] = f"/projects/{project}/locations/{location}"
    given["base_url"] = options.get("base_url") or _url(location)
    if options.get("token"):
        given["api_key"] = options["token"]
    return given


def _url(location: str) -> str:
    """Give the address in a region, in the multi-regions us and eu, or global."""
    if location == "global":
        return "https://aiplatform.googleapis.com/v1"
    if location in ("us", "eu"):
        return f"https://aiplatform.{location}.rep.googleapis.com/v1"
    return f"https://{location}-aiplatform.googleapis.com/v1"
