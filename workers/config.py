"""What a worker container may be told, by environment variables of its own.

LittleGhost's settings are `LITTLEGHOST_…`; these are about the process around it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def _heartbeat_file() -> Path:
    return Path(tempfile.gettempdir()) / "littleghost-worker.heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Settings of a worker container.

    Attributes:
        heartbeat_file: Touched by the worker's loop; `WORKER_HEARTBEAT_FILE`.
        heartbeat_s: Seconds between touches; `WORKER_HEARTBEAT_S`.
        stalled_s: Age at which the file means a stalled worker; `WORKER_STALLED_S`. Long, so that
            an outage of Redis restarts no worker.
    """

    heartbeat_file: Path = field(default_factory=_heartbeat_file)
    heartbeat_s: float = 15.0
    stalled_s: float = 600.0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> WorkerConfig:
        """Read the variables."""
        environ = os.environ if environ is None else environ
        made = cls()
        return cls(
            heartbeat_file=Path(environ.get("WORKER_HEARTBEAT_FILE") or made.heartbeat_file),
            heartbeat_s=float(environ.get("WORKER_HEARTBEAT_S") or made.heartbeat_s),
            stalled_s=float(environ.get("WORKER_STALLED_S") or made.stalled_s),
        )
