"""Gives a task back when Celery reports that the pool child which worked on it is dead.

The second net: `children.py` notices sooner, but looks at a pool's inner parts to do so.
"""

from __future__ import annotations

import logging
from typing import Any

from billiard.exceptions import WorkerLostError as ChildLostError
from celery.worker.request import Request

from littleghost.errors import LittleGhostError
from littleghost.wiring import runtime

logger = logging.getLogger("littleghost.celery")


class TaskRequest(Request):
    """Celery's view of one message in the worker's main process."""

    def on_failure(
        self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False
    ) -> Any:
        """Handle a failed task; a dead child is the journal's business, at once."""
        error = exc_info.exception
        if isinstance(getattr(error, "exc", error), ChildLostError):
            self._give_back()
        return super().on_failure(exc_info, send_failed_event, return_ok)

    def _give_back(self) -> None:
        if self.worker_pid is None:
            return
        try:
            # The child may have run on in place: everything that it held comes back.
            count = runtime().release_child(self.worker_pid)
            logger.warning("pool child %s died; gave back %d tasks", self.worker_pid, count)
        except LittleGhostError as error:
            logger.warning("pool child %s died; its lease will run out: %s", self.worker_pid, error)
