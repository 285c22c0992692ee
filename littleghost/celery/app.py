"""A Celery app for teams that have none, and the settings that any app of a fleet should have."""

from __future__ import annotations

from typing import Any

from celery import Celery

from littleghost.celery.reconnect import PromptAMQP
from littleghost.settings import Settings

TASKS_MODULE = "littleghost.celery.tasks"


def config(settings: Settings) -> dict[str, Any]:
    """Give Celery's settings for a worker of tasks.

    Why each is not the default:
    - `ack_emulation` off: the journal knows what a dying worker held, and the emulation is most of
    a   task's cost. It also lets a worker survive a restart of Redis.
    - `worker_disable_prefetch` and a prefetch of 1: a worker takes what it has free slots for, so
      nothing waits behind a slow task while another worker is idle.
    - `broker_connection_max_retries` none: a worker waits for its broker however long it is away.
    - `worker_enable_prefetch_count_reduction` off: after a lost connection Celery would raise the
      prefetch count again from the threads of the pool, which then read the broker's socket
      together with the event loop. With RabbitMQ such a worker hung for ever, alive and deaf.
    - `queue_order_strategy` priority: interactive queues are named first and served first.
    - no results, no events: the journal holds both.
    """
    url = settings.broker_url or settings.redis_url or ""
    is_redis = url.startswith(("redis", "rediss", "unix", "sentinel"))
    common: dict[str, Any] = {
        "broker_url": kombu_url(url),
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        "worker_enable_prefetch_count_reduction": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": True,
        "worker_redirect_stdouts": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "imports": (TASKS_MODULE, *settings.imports),
        "task_acks_late": not is_redis,
        "task_reject_on_worker_lost": False,
    }
    if is_redis:
        common["worker_disable_prefetch"] = True
        common["broker_transport_options"] = {
            "ack_emulation": False,
            "queue_order_strategy": "priority",
        }
    return common


def kombu_url(url: str) -> str:
    """Write a Unix socket's URL as kombu wants it."""
    return url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url


def make_app(
    settings: Settings, name: str = "littleghost", *, set_as_current: bool = True
) -> Celery:
    """Make a Celery app that carries runs.

    Args:
        set_as_current: Whether it becomes the app that shared tasks are sent with.
    """
    app = Celery(name, set_as_current=set_as_current, amqp=PromptAMQP)
    app.conf.update(config(settings))
    return app
