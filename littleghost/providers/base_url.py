"""Says whether a base URL may be used. Imports no HTTP client."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from littleghost.errors import ConfigurationError


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by name or number; nothing is resolved."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_url(base_url: str, allow_insecure_http: bool) -> str:
    """Give the URL without a last slash.

    Raises:
        ConfigurationError: It is no URL of a service, or it is not safe.
    """
    parts = urlsplit(base_url)
    if "@" in parts.netloc:
        # Not shown: what stands there is a password.
        raise ConfigurationError("a base URL must not hold credentials: use api_key or headers")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"base URL {base_url!r} must start with https:// and name a host")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"base URL {base_url!r} must not have a query or a fragment")
    if parts.scheme == "http" and not (allow_insecure_http or is_loopback(parts.hostname)):
        raise ConfigurationError(
            f"base URL {base_url!r} would send keys and conversations unencrypted: use https://, "
            "or allow_insecure_http=True for a network that you trust"
        )
    return base_url.rstrip("/")
