"""The embedded runtime, shared by the modules that ask for it, and a registry that forgets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from littleghost import registry, wiring
from littleghost.settings import Settings
from littleghost.wiring import Runtime


@pytest.fixture(scope="session")
def _embedded_runtime() -> Runtime:
    """One private Redis and one worker inside this process; they end with it."""
    before = wiring._current
    made = wiring._embedded(Settings())
    wiring._current = before
    return made


@pytest.fixture
def embedded(_embedded_runtime: Runtime) -> Iterator[Runtime]:
    """This process's runtime is the embedded one, and assemblies of the test are forgotten."""
    before, known = wiring._current, dict(registry._assemblies)
    wiring._current = _embedded_runtime
    yield _embedded_runtime
    wiring._current = before
    registry._assemblies.clear()
    registry._assemblies.update(known)
