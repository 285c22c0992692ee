"""A team's own Celery app: nothing of LittleGhost's but its tasks, and Celery's own defaults."""

import os

from celery import Celery

app = Celery("own", broker=os.environ.get("OWN_BROKER") or None)
app.autodiscover_tasks(["littleghost.celery"])
app.conf.imports = ("tests.integration.site_app",)


@app.task
def add(a: int, b: int) -> int:
    """Be a task of the team's own."""
    with open(os.path.join(os.environ["SITE_DIRECTORY"], "added.txt"), "w") as file:  # noqa: PTH118, PTH123
        file.write(str(a + b))
    return a + b
