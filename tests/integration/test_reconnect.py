"""Workers of our own app look for a broker that is away every two seconds, for ever."""

from __future__ import annotations

import pytest

from littleghost.celery.app import make_app
from littleghost.settings import Settings
from tests.faults.fleet import free_port


def test_the_waits_between_tries_stay_short() -> None:
    settings = Settings(redis_url=f"redis://127.0.0.1:{free_port()}/0")
    app = make_app(settings, "reconnects", set_as_current=False)
    waits: list[float] = []

    class EnoughError(Exception):
        pass

    def note(error: Exception, wait_s: float) -> None:
        waits.append(wait_s)

    def stop() -> None:
        if len(waits) >= 5:
            raise EnoughError

    connection = app.connection_for_read().clone()
    with pytest.raises(EnoughError):
        connection.ensure_connection(note, app.conf.broker_connection_max_retries, callback=stop)
    assert waits == [0.5, 1.0, 1.5, 2.0, 2.0]
