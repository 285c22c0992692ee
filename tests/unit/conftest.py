"""Assemblies that a unit test defines, good or bad, are forgotten with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from littleghost import registry


@pytest.fixture(autouse=True)
def _forgetful_registry() -> Iterator[None]:
    known = dict(registry._assemblies)
    yield
    registry._assemblies.clear()
    registry._assemblies.update(known)
