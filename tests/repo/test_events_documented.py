"""Every event that the library writes is described where its readers look."""

from __future__ import annotations

import re

from littleghost.engine.turn import _LIVE
from littleghost.events import ASSEMBLY_TYPES, StreamEvent
from tests.repo.tree import ROOT, sources

EMITTED = re.compile(r"""(?:Emit|writer\.add)\(\s*"(\w+)\"""")
SCRIPTED = re.compile(r"""\{"type":"(\w+)\"""")


def _written() -> set[str]:
    """Give the types that occur in the source, and those that providers may add."""
    found = set(_LIVE)
    for path in sources("littleghost"):
        found.update(EMITTED.findall(path.read_text("utf-8")))
    for path in (ROOT / "littleghost/journal/lua").rglob("*.lua"):
        found.update(SCRIPTED.findall(path.read_text("utf-8")))
    return found


def test_the_docstring_of_a_stream_event_names_every_type() -> None:
    written = _written()
    assert {"model_start", "run_start", "assembly_step_retry", "assembly_fork"} <= written
    described = set(re.findall(r"\w+", StreamEvent.__doc__ or ""))
    assert sorted(written - described) == []


def test_composite_events_are_told_as_they_are() -> None:
    assert {kind for kind in _written() if kind.startswith("assembly_")} == ASSEMBLY_TYPES


def test_the_page_on_assemblies_names_the_composite_events() -> None:
    page = (ROOT / "docs/assemblies.md").read_text("utf-8")
    assert [kind for kind in sorted(ASSEMBLY_TYPES) if f"`{kind}`" not in page] == []
