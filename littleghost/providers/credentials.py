"""Gets a service's key for one request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from littleghost.errors import CredentialError, LittleGhostError
from littleghost.providers.profiles import Profile

ApiKey: TypeAlias = str | Callable[[], str | None] | None


def key_for(profile: Profile, key: ApiKey) -> str:
    """Give the key to send.

    Args:
        profile: The service, for messages and for whether it needs a key.
        key: The key, or a function that is asked now.

    Returns:
        The key without blanks around it; "" when there is none and none is needed.

    Raises:
        CredentialError: It is missing, holds characters no key has, or its function failed.
    """
    if callable(key):
        try:
            key = key()
        except LittleGhostError:
            raise
        except Exception as error:
            raise CredentialError(
                f"the key of {profile.name!r} could not be fetched: its function raised "
                f"{type(error).__name__}"
            ) from error
    key = (key or "").strip()
    if not key and profile.needs_key:
        hint = " or ".join(profile.key_variables)
        raise CredentialError(f"{profile.name!r} needs a key: set {hint}, or pass api_key")
    if not (key.isascii() and key.isprintable()):
        raise CredentialError(f"the key of {profile.name!r} holds characters no key has")
    return key
