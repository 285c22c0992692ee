"""Finds what the user named: a run by the beginning of its id, an assembly by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from littleghost import registry
from littleghost.cli.options import import_named
from littleghost.errors import InvocationError, RunNotFoundError, UnknownAssemblyError
from littleghost.ids import check_run_id
from littleghost.run import Run

if TYPE_CHECKING:
    from littleghost.wiring import Runtime

# How many of the newest runs a shortened id is looked for in.
SEARCHED = 10_000
_SHOWN = 5


def find_run(work: Runtime, text: str) -> Run:
    """Find a run by its id or any unique beginning of it, with or without the partition.

    Raises:
        RunNotFoundError: There is none.
        InvocationError: There are several; the message lists some.
    """
    record = work.records.find(check_run_id(text))
    if record is not None:
        return Run.get(text)
    names = [name for name, _ in work.records.recent(SEARCHED)]
    found = [name for name in names if name.startswith(text)]
    found = found or [name for name in names if name[2:3] == "-" and name[3:].startswith(text)]
    if not found:
        raise RunNotFoundError(
            f"no run {text!r}, and none of the newest {SEARCHED} begins with it: the id is wrong, "
            "or the run ended longer ago than it is kept (littleghost runs lists the newest)"
        )
    if len(found) > 1:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InvocationError(
            f"{len(found)} runs begin with {text!r}: {', '.join(found[:_SHOWN])}{more}; "
            "say more of the id"
        )
    return Run.get(found[0])


def find_assembly(text: str) -> Any:
    """Find an assembly by "module:Class", by its id, or by its class name.

    Raises:
        UnknownAssemblyError: Nothing imported has the name, or several things have.
    """
    if ":" in text:
        return _in_module(text)
    known = {name: registry.lookup(name) for name in registry.names()}
    matches = [name for name, cls in known.items() if text in (cls.id(), cls.__name__)]
    if len(matches) == 1:
        return known[matches[0]]
    if matches:
        raise UnknownAssemblyError(f"{text!r} is the name of {_listed(matches)}; use one of these")
    cure = _listed(sorted(known)) if known else "none: import their module with -A my.module"
    raise UnknownAssemblyError(f"no assembly {text!r} is known here; known are {cure}")


def _in_module(text: str) -> Any:
    import_named(text)
    if text in registry.names():
        return registry.lookup(text)
    module = text.partition(":")[0]
    there = [name for name in registry.names() if name.startswith(f"{module}:")]
    has = f"it has {_listed(there)}" if there else "it has none"
    raise UnknownAssemblyError(f"module {module!r} has no assembly {text!r}; {has}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
