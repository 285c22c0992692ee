"""Probes for containers.

    python -m workers.health live      the worker's loop has moved lately (looks at a file)
    python -m workers.health ready     this host has a worker in the register (asks Redis)

Liveness must not ask Redis: an outage of it would restart every worker at once.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from celery import Celery, bootsteps

from littleghost.errors import LittleGhostError
from littleghost.wiring import runtime
from workers.config import WorkerConfig


class Heartbeat(bootsteps.StartStopStep):
    """Touches the heartbeat file from the worker's own timer."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._config = WorkerConfig.from_environment()
        self._entry: Any = None

    def start(self, parent: Any) -> None:
        """Begin to touch."""
        self._touch()
        self._entry = parent.timer.call_repeatedly(self._config.heartbeat_s, self._touch)

    def stop(self, parent: Any) -> None:
        """Leave nothing behind that looks alive."""
        del parent
        if self._entry is not None:
            self._entry.cancel()
        self._config.heartbeat_file.unlink(missing_ok=True)

    def _touch(self) -> None:
        self._config.heartbeat_file.touch()


def add_heartbeat(app: Celery) -> None:
    """Have the app's workers keep their heartbeat file young."""
    steps: Any = app.steps
    steps["worker"].add(Heartbeat)


def live(config: WorkerConfig) -> str:
    """Say why the worker here counts as stalled; empty when it does not."""
    try:
        age_s = time.time() - config.heartbeat_file.stat().st_mtime
    except OSError as error:
        return f"no heartbeat: {error}"
    if age_s > config.stalled_s:
        return f"the last heartbeat is {age_s:.0f} s old; {config.stalled_s:.0f} are allowed"
    return ""


def ready() -> str:
    """Say why no worker of this host takes work; empty when one does."""
    try:
        workers = runtime(for_worker=True).workers.list()
    except LittleGhostError as error:
        return str(error)
    host = socket.gethostname()
    if not any(worker.host == host for worker in workers):
        return f"no live worker of host {host} is in the register"
    return ""


def main(arguments: Sequence[str]) -> int:
    """Run a probe: exit 0 when all is well, 1 with a sentence when not."""
    if list(arguments) == ["live"]:
        trouble = live(WorkerConfig.from_environment())
    elif list(arguments) == ["ready"]:
        trouble = ready()
    else:
        sys.stderr.write("usage: python -m workers.health live|ready\n")
        return 2
    if trouble:
        sys.stderr.write(trouble + "\n")
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
