"""Gives a task back at once when the pool child that worked on it dies."""

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
        if isinstance(exc_info.exception, ChildLostError):
            self._give_back()
        return super().on_failure(exc_info, send_failed_event, return_ok)

    def _give_back(self) -> None:
        args = self.request_dict.get("args") or ()
        if len(args) != 3 or self.worker_pid is None:
            return
        try:
            # The child may have run on in place: everything that this child held comes back.
            count = runtime().release_child(self.worker_pid, str(args[0]))
            logger.warning("pool child %s died; gave back %d tasks", self.worker_pid, count)
        except LittleGhostError as error:
            logger.warning("pool child %s died; its lease will run out: %s", self.worker_pid, error)
