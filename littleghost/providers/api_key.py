"""Finds a connection's key for one request, and refuses what can be no key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from littleghost.errors import CredentialError, LittleGhostError

ApiKey = str | Callable[[], str | None] | None


def resolve_key(
    name: str, key: ApiKey, *, is_needed: bool = False, variables: Sequence[str] = ()
) -> str:
    """Give the key for one request.

    Args:
        name: The service, for messages.
        key: The key, or a function that gives one.
        is_needed: Whether the service refuses requests without one.
        variables: The environment variables that may hold it, for the message.

    Returns:
        The key; "" when there is none and none is needed.

    Raises:
        CredentialError: It is missing, could not be fetched, or cannot stand in a header.
    """
    if callable(key):
        try:
            key = key()
        except LittleGhostError:
            raise
        except Exception as error:
            raise CredentialError(
                f"the key of {name!r} could not be fetched: its function raised "
                f"{type(error).__name__}"
            ) from error
    key = (key or "").strip()
    if not key and is_needed:
        raise CredentialError(
            f"{name!r} needs a key: set {' or '.join(variables)}, or pass api_key"
        )
    if not (key.isascii() and key.isprintable()):
        raise CredentialError(f"the key of {name!r} holds characters no key has")
    return key
