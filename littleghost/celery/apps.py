"""Finds the Celery app that a module holds, and makes sure that it carries runs."""

from __future__ import annotations

from celery import Celery
from celery.app.utils import find_app as celery_find_app

from littleghost.celery.app import TASKS_MODULE
from littleghost.errors import ConfigurationError


def find_app(target: str) -> Celery | None:
    """Give the Celery app that `celery -A target` would use, or None.

    Args:
        target: "module", "package" with a `celery` module, or "module:attribute".
    """
    try:
        found = celery_find_app(target)
    except AttributeError:
        return None
    return found if isinstance(found, Celery) else None


def load_tasks(target: str) -> Celery | None:
    """Import what the Celery app of a module would import in a worker, as far as there is one."""
    app = find_app(target)
    if app is not None:
        app.loader.import_default_modules()
        app.finalize()
    return app


def require_tasks(app: Celery, target: str) -> None:
    """Refuse an app whose workers could not carry runs.

    Raises:
        ConfigurationError: It does not import LittleGhost's tasks.
    """
    if "littleghost.turn" not in app.tasks:
        raise ConfigurationError(
            f"the Celery app {target!r} does not carry runs: add {TASKS_MODULE!r} to its imports "
            f"(app.conf.imports += ({TASKS_MODULE!r},))"
        )
