"""The broker message of a task, as plain JSON and without Celery.

The journal's scripts push this very text when broker and journal are one Redis; elsewhere kombu
sends the same fields. Read by any Celery worker (task message protocol 2,
docs.celeryq.dev/en/stable/internals/protocol.html).
"""

from __future__ import annotations

import json
from typing import Any

from littleghost.engine.ports import ReadyTask


def headers(kind: str, run_id: str, task_id: str) -> dict[str, Any]:
    """Give the headers of a task message."""
    return {
        "lang": "py",
        "task": f"littleghost.{kind}",
        "id": f"{run_id}|{task_id}",
        "root_id": run_id,
        "ignore_result": True,
    }


def arguments(run_id: str, task_id: str, at: int | str) -> list[Any]:
    """Give the body of a task message: positional arguments, no keywords, no canvas."""
    return [[run_id, task_id, at], {}, {}]


def body(task: ReadyTask) -> str:
    """Give the body of a task message as JSON."""
    return json.dumps(arguments(task.run_id, task.task_id, task.at_ms), separators=(",", ":"))


def redis_message(kind: str, queue: str, run_id: str, task_id: str, at: int | str) -> str:
    """Give the text that kombu's Redis transport keeps in a queue's list."""
    inner = json.dumps(arguments(run_id, task_id, at), separators=(",", ":"))
    message = {
        "body": inner.replace('"@AT@"', "@AT@"),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers(kind, run_id, task_id),
        "properties": {
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": None,
            "delivery_tag": f"{run_id}|{task_id}|{at}",
        },
    }
    return json.dumps(message, separators=(",", ":"))


def template() -> str:
    """Give the Redis message with `@KIND@`, `@QUEUE@`, `@ID@`, `@TID@` and `@AT@` to fill in."""
    return redis_message("@KIND@", "@QUEUE@", "@ID@", "@TID@", "@AT@")
