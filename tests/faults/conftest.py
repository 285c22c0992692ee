"""A fleet per test, and a runtime of this process that is its caller."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from littleghost import wiring
from littleghost.settings import Settings
from tests.faults.fleet import Fleet


@pytest.fixture
def settings() -> dict[str, str]:
    """Settings of the fleet; a test module or class overrides it."""
    return {}


@pytest.fixture
def appendfsync() -> str:
    """How Redis writes to disk; a test module or class overrides it."""
    return "everysec"


@pytest.fixture
def fleet(
    tmp_path: Path, settings: dict[str, str], appendfsync: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fleet]:
    made = Fleet(tmp_path, appendfsync=appendfsync, **settings)
    parsed = Settings.from_environment(made.environment)
    before: Any = wiring._current
    wiring.configure(parsed)
    try:
        yield made
    finally:
        wiring.runtime().close()
        monkeypatch.setattr(wiring, "_current", before)
        made.stop()
