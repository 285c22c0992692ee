"""Asks whether the broker can be reached."""

from __future__ import annotations

from kombu.connection import Connection
from kombu.exceptions import KombuError, OperationalError

from littleghost.celery.app import kombu_url

TIMEOUT_S = 2


def broker_trouble(url: str) -> str:
    """Say why the broker cannot be reached; empty when it can."""
    options = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
    try:
        with Connection(
            kombu_url(url), connect_timeout=TIMEOUT_S, transport_options=options
        ) as connection:
            connection.ensure_connection(max_retries=1, timeout=TIMEOUT_S, interval_start=0)
    except (OSError, KombuError, OperationalError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
