"""Has workers come back soon after their broker does.

Celery waits 2, 4, 6 … 30 seconds between tries to reach a broker that is away, and has no setting
for it. So a worker would be without messages for up to half a minute after the broker is back.
"""

from __future__ import annotations

from typing import Any

from celery.app.amqp import AMQP
from kombu.connection import Connection

# Seconds between tries: the first wait, what is added to each further one, and the longest.
INTERVALS = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 2.0}


class PromptConnection(Connection):
    """A connection whose waits between tries stay short."""

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        """Connect, however often it takes; see kombu."""
        return super().ensure_connection(*args, **{**INTERVALS, **options})


class PromptAMQP(AMQP):
    """What an app makes its connections with."""

    Connection = PromptConnection
