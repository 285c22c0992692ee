"""The roles of worker processes: which queues, which pool, and the exact Celery command.

Imports no Celery, so that printing a command is instant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from littleghost.settings import Settings

STANDALONE = "littleghost.celery.standalone"
Lanes = Literal["", "batch", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What one kind of worker process does.

    Attributes:
        kinds: The kinds of tasks, which name its queues.
        pool: Celery's pool: threads for waiting on models, processes for the tools' own code.
        concurrency: Slots; 0 for one per processor.
    """

    name: str
    kinds: tuple[str, ...]
    pool: str
    concurrency: int

    def slots(self) -> int:
        """Give the number of slots on this machine."""
        return self.concurrency or os.cpu_count() or 1

    def queues(self, settings: Settings, lanes: Lanes = "both") -> tuple[str, ...]:
        """Name the queues, interactive before batch: the first are served first."""
        chosen = ("", "batch") if lanes == "both" else (lanes,)
        return tuple(settings.queue(kind, lane) for lane in chosen for kind in self.kinds)


ROLES = {
    role.name: role
    for role in (
        Role(name="turns", kinds=("turns",), pool="threads", concurrency=100),
        Role(name="tools", kinds=("tools",), pool="prefork", concurrency=0),
        Role(name="all", kinds=("turns", "tools"), pool="threads", concurrency=100),
    )
}


def celery_command(
    role: Role,
    settings: Settings,
    *,
    app: str = STANDALONE,
    lanes: Lanes = "both",
    concurrency: int = 0,
    loglevel: str = "INFO",
    extra: Sequence[str] = (),
) -> list[str]:
    """Write the command that starts a worker of a role.

    Args:
        app: The Celery app, as `celery -A` takes it.
        lanes: Interactive work, batch work, or both.
        concurrency: Slots instead of the role's own number.
        loglevel: Celery's log level.
        extra: Further arguments for Celery.
    """
    return [
        sys.executable,
        "-m",
        "celery",
        "-A",
        app,
        "worker",
        "-Q",
        ",".join(role.queues(settings, lanes)),
        "-P",
        role.pool,
        "-c",
        str(concurrency or role.slots()),
        "--prefetch-multiplier",
        "1",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        "-n",
        f"{role.name}-{os.getpid()}@%h",
        "-l",
        loglevel,
        *extra,
    ]
