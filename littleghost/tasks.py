"""Where a Celery app's `autodiscover_tasks(["littleghost"])` looks for tasks."""

from __future__ import annotations

from littleghost.celery.tasks import advance, call, turn

__all__ = ["advance", "call", "turn"]
