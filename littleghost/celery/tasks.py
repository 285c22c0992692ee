"""The three Celery tasks. Importing this module is all that a Celery app needs to carry runs.

A message only says where to look; whoever forges or repeats one gets nothing done that was not due.
"""

from __future__ import annotations

import re
from typing import Any

from celery import Task, shared_task

from littleghost.celery import lifecycle
from littleghost.celery.consumer import wake_consumer
from littleghost.celery.request import TaskRequest
from littleghost.ids import is_run_id
from littleghost.wiring import runtime

_TASK_ID = re.compile(r"[0-9]+(\.[0-9]+)*-[a-z][0-9.]*")


class RunTask(Task):
    """Base of the three: tells the journal when a pool child dies with it."""

    abstract = True
    Request = TaskRequest
    ignore_result = True
    max_retries = 0
    typing = False


def _perform(task: Task, args: tuple[Any, ...]) -> None:
    if len(args) != 3 or not all(isinstance(item, str) for item in args[:2]):
        lifecycle.logger.warning("dropped a message that is not ours: %.200r", args)
        return
    run_id, task_id, at_ms = args
    is_ours = is_run_id(run_id) and _TASK_ID.fullmatch(task_id)
    if not is_ours or not isinstance(at_ms, int) or isinstance(at_ms, bool):
        lifecycle.logger.warning("dropped a message that is not ours: %.200r", args)
        return
    queue = (task.request.delivery_info or {}).get("routing_key") or ""
    try:
        runtime().performer.perform(run_id, task_id, at_ms=at_ms, queue=queue)
    finally:
        wake_consumer()


@shared_task(bind=True, base=RunTask, name="littleghost.turn")
def turn(self: Task, *args: Any) -> None:
    """Take one model turn of a run."""
    _perform(self, args)


@shared_task(bind=True, base=RunTask, name="littleghost.call")
def call(self: Task, *args: Any) -> None:
    """Make one tool call of a run."""
    _perform(self, args)


@shared_task(bind=True, base=RunTask, name="littleghost.advance")
def advance(self: Task, *args: Any) -> None:
    """Let a coordinator decide what is next in a run."""
    _perform(self, args)


lifecycle.connect()
