"""Durations, exit codes, roles: the small decisions of the command line."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from littleghost.celery.roles import ROLES, celery_command
from littleghost.cli import exits
from littleghost.cli.options import Options, merged
from littleghost.cli.run import Duration
from littleghost.errors import (
    ConfigurationError,
    DeadlineExceededError,
    InvocationError,
    JournalUnavailableError,
    LittleGhostError,
    NoWorkerError,
    RunNotFoundError,
)
from littleghost.settings import Settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", timedelta(seconds=90)),
        ("10m", timedelta(minutes=10)),
        ("1h30m", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        ("0.5s", timedelta(milliseconds=500)),
    ],
)
def test_durations(text: str, expected: timedelta) -> None:
    assert Duration().convert(text, None, None) == expected


@pytest.mark.parametrize("text", ["", "10", "soon", "1x", "0s", "-1m", "1m junk", "9" * 30 + "d"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(click.UsageError):
        Duration().convert(text, None, None)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunNotFoundError("x"), 6),
        (JournalUnavailableError("x"), 75),
        (NoWorkerError("x"), 75),
        (ConfigurationError("x"), 2),
        (InvocationError("x"), 2),
        (LittleGhostError("x"), 1),
    ],
)
def test_exit_codes_of_errors(error: LittleGhostError, code: int) -> None:
    assert exits.of_error(error) == code


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        ("completed", "", 0),
        ("failed", "auth", 1),
        ("cancelled", "cancelled", 3),
        ("partial", DeadlineExceededError.code, 4),
        ("failed", DeadlineExceededError.code, 4),
        ("running", "", 0),
    ],
)
def test_exit_codes_of_runs(status: str, error: str, code: int) -> None:
    assert exits.of_run(status, error) == code


def test_options_after_the_verb_come_on_top() -> None:
    before = merged(Options(), {"app": "a", "verbose": 1})
    after = merged(before, {"app": "b,c", "as_json": True, "verbose": 0})
    assert after.modules == ["b", "c"]
    assert (after.as_json, after.verbosity) == (True, 1)


def test_queues_are_named_by_the_settings_interactive_first() -> None:
    settings = Settings(redis_url="redis://x", queue_prefix="team")
    line = celery_command(ROLES["all"], settings)
    names = line[line.index("-Q") + 1].split(",")
    assert names == ["team.turns", "team.tools", "team.turns.batch", "team.tools.batch"]
