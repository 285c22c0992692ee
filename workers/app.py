"""The Celery app: `celery -A workers.app worker -Q lg.turns,lg.turns.batch -P threads`.

`LITTLEGHOST_REDIS_URL` says where the journal is, `LITTLEGHOST_IMPORTS` which modules hold agents.
"""

from __future__ import annotations

from littleghost.celery.app import make_app
from littleghost.settings import Settings
from workers.health import add_heartbeat

app = make_app(Settings.from_environment(), "workers")
add_heartbeat(app)
