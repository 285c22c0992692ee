"""The effective settings without their secrets."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from littleghost.settings import Settings

_MASK = "***"
_USERINFO = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<user>[^/@:]*)(?P<password>:[^/]*)?@", re.I
)
_QUERY = re.compile(r"(?P<name>[?&](?:password|passwd|token|secret|key)=)[^&#]*", re.I)


def masked_url(text: str) -> str:
    """Hide the password of a URL, or of each of several joined by ";"."""
    parts = [_USERINFO.sub(_hide, part) for part in text.split(";")]
    return _QUERY.sub(lambda match: match["name"] + _MASK, ";".join(parts))


def masked_settings(settings: Settings) -> dict[str, Any]:
    """Give every setting by name; passwords in URLs are hidden."""
    found: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        is_url = isinstance(value, str) and "://" in value
        found[item.name] = masked_url(value) if is_url else value
    return found


def _hide(match: re.Match[str]) -> str:
    hidden = f":{_MASK}" if match["password"] else ""
    return f"{match['scheme']}{match['user']}{hidden}@"
