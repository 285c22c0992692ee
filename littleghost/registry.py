"""The assemblies this process knows, by name.

A name in Redis or in a message is looked up here and never imported: only modules that the
application imported can run.
"""

from __future__ import annotations

import threading
from typing import Any

from littleghost.errors import LittleGhostError, UnknownAssemblyError

_assemblies: dict[str, Any] = {}
_lock = threading.Lock()


def name_of(cls: type) -> str:
    """Give the name under which a class is registered: `module:QualifiedName`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def register(cls: type) -> None:
    """Make an assembly known; a later class of the same name replaces it (a module reload)."""
    with _lock:
        _assemblies[name_of(cls)] = cls


def lookup(name: str) -> Any:
    """Give a registered assembly.

    Raises:
        UnknownAssemblyError: No imported module has it.
    """
    found = _assemblies.get(name)
    if found is None:
        module = name.partition(":")[0]
        raise UnknownAssemblyError(
            f"no assembly {name!r} is known here; import the module {module!r} in this worker "
            "(littleghost worker -A …, or the Celery app's imports)"
        )
    return found


def names() -> list[str]:
    """Give the names of all registered assemblies, sorted."""
    return sorted(_assemblies)


def check_all() -> None:
    """Check every registered definition, as a worker does before it starts.

    Raises:
        LittleGhostError: The first wrong definition; the message names class and field.
    """
    for name in names():
        try:
            _assemblies[name].check()
        except LittleGhostError as error:
            raise type(error)(f"{name}: {error}") from error
