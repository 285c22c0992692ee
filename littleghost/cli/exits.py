"""Exit codes, and which error or outcome means which."""

from __future__ import annotations

from littleghost.errors import (
    CancelledError,
    ConfigurationError,
    DeadlineExceededError,
    InvocationError,
    JournalUnavailableError,
    LittleGhostError,
    NoWorkerError,
    RunNotFoundError,
)

OK = 0
FAILED = 1
USAGE = 2
CANCELLED = 3
DEADLINE = 4
WAITING = 5
NOT_FOUND = 6
UNAVAILABLE = 75
INTERRUPTED = 130

LEGEND = (
    "0 ok, 1 a run or check failed, 2 usage, 3 cancelled, 4 deadline, 5 waiting for a person, "
    "6 not found, 75 Redis, broker or workers away, 130 interrupted"
)

_BY_ERROR: tuple[tuple[type[LittleGhostError], int], ...] = (
    (RunNotFoundError, NOT_FOUND),
    (JournalUnavailableError, UNAVAILABLE),
    # The run stays and goes on when a worker starts: nothing failed.
    (NoWorkerError, UNAVAILABLE),
    (ConfigurationError, USAGE),
    (InvocationError, USAGE),
    (CancelledError, CANCELLED),
    (DeadlineExceededError, DEADLINE),
)
_BY_STATUS = {
    "completed": OK,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "partial": DEADLINE,
    "waiting": WAITING,
}


def of_error(error: LittleGhostError) -> int:
    """Give the exit code of an error."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAILED)


def of_run(status: str, error_code: str = "") -> int:
    """Give the exit code of a run's outcome; a run that still goes on is no failure."""
    if error_code == DeadlineExceededError.code:
        return DEADLINE
    return _BY_STATUS.get(status, OK)
