"""Finds the key of a service at the moment it is needed, since keys may live for an hour only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from littleghost.errors import CredentialError, LittleGhostError

ApiKey: TypeAlias = str | Callable[[], str | None] | None


def resolve_key(
    key: ApiKey,
    name: str,
    *,
    variables: Sequence[str] = (),
    is_needed: bool = True,
    option: str = "api_key",
) -> str:
    """Give the key to send, "" when there is none and none is needed.

    Args:
        key: The key, or a function that gives one.
        name: The service, for messages.
        variables: Environment variables that may hold it, for messages.
        is_needed: Whether the service refuses requests without one.
        option: What the connection's option is called, for messages.

    Raises:
        CredentialError: There is none, it cannot be fetched, or it cannot be a key.
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
            f"{name!r} needs a key: set {' or '.join(variables)}, or pass {option}"
        )
    if not (key.isascii() and key.isprintable()):
        raise CredentialError(f"the key of {name!r} holds characters no key has")
    return key
