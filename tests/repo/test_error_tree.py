"""The tree of errors: documented, with stable codes, complete in its own picture."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

import pytest

import littleghost
from littleghost import errors
from littleghost.errors import LittleGhostError


def _all_errors() -> list[type[LittleGhostError]]:
    for module in pkgutil.walk_packages(littleghost.__path__, "littleghost."):
        if not module.name.startswith(("littleghost.contrib", "littleghost.celery.standalone")):
            importlib.import_module(module.name)
    found: list[type[LittleGhostError]] = []
    waiting = [LittleGhostError]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting += kind.__subclasses__()
    return [kind for kind in dict.fromkeys(found) if kind.__module__.startswith("littleghost.")]


ERRORS = _all_errors()
PUBLIC = [kind for kind in ERRORS if kind.__module__ == "littleghost.errors"]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_each_says_what_it_means(kind):
    assert kind.__dict__.get("__doc__", "").strip()
    assert kind.__name__.endswith("Error")


def test_each_public_error_has_a_code_of_its_own():
    assert all("code" in kind.__dict__ for kind in PUBLIC)
    counts = Counter(kind.code for kind in PUBLIC)
    assert not [code for code, count in counts.items() if count > 1]


def test_the_picture_at_the_top_of_the_module_is_complete():
    assert not [kind.__name__ for kind in PUBLIC if kind.__name__ not in (errors.__doc__ or "")]
