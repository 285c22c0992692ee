"""The assemblies this process knows, by name.

A name in Redis or in a message is looked up here and never imported: only modules that the
application imported can run. What a builder made has a name of its content (`built:<digest>`); a
process that does not know one makes the class from the definition that the run keeps.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final
from weakref import WeakValueDictionary

from littleghost.errors import DefinitionError, LittleGhostError, UnknownAssemblyError

BUILT: Final = "built:"
_BUILT_NAME: Final = re.compile(r"built:[0-9a-f]{32}")
# How many built classes this process keeps that nothing else holds, the newest used.
MAX_BUILT: Final = 256
# How many definitions one run may keep.
MAX_DEFINITIONS: Final = 64

# Gives definitions by name, as far as the run keeps them.
ReadDefinitions = Callable[[Sequence[str]], Mapping[str, str]]

_assemblies: dict[str, Any] = {}
_built: WeakValueDictionary[str, Any] = WeakValueDictionary()
_recent: OrderedDict[str, Any] = OrderedDict()
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class Built:
    """Where a class comes from that a builder made.

    Attributes:
        name: `built:` and 32 hex digits of the SHA-256 of the text.
        text: The definition, as JSON.
        local: Sentences about what no other process could look up; empty when all can.
    """

    name: str
    text: str
    local: tuple[str, ...] = ()


def built_of(cls: type) -> Built | None:
    """Say whether a builder made this very class, and of what."""
    return cls.__dict__.get("built")


def is_built(name: object) -> bool:
    """Say whether a name is one of a built assembly."""
    return isinstance(name, str) and _BUILT_NAME.fullmatch(name) is not None


def name_of(cls: type) -> str:
    """Give the name of a class: `module:QualifiedName`, or `built:<digest>`."""
    built = built_of(cls)
    return f"{cls.__module__}:{cls.__qualname__}" if built is None else built.name


def register(cls: type) -> None:
    """Make an assembly known; a later class of the same name replaces it (a module reload).

    A class that a builder made is known only when it was found right; see `keep`.
    """
    if built_of(cls) is not None:
        return
    with _lock:
        _assemblies[name_of(cls)] = cls


def keep(cls: type) -> None:
    """Make a checked class of a builder known, for as long as it is used or among the newest."""
    name = name_of(cls)
    with _lock:
        _built[name] = cls
        _use(name, cls)


def _use(name: str, cls: Any) -> None:
    _recent[name] = cls
    _recent.move_to_end(name)
    while len(_recent) > MAX_BUILT:
        _recent.popitem(last=False)


def find_built(name: str) -> Any:
    """Give a class that a builder made, or None."""
    with _lock:
        found = _built.get(name)
        if found is not None:
            _use(name, found)
        return found


def learn(name: str, read: ReadDefinitions) -> None:
    """Make a built assembly known, if it is not, from the definition that a run keeps.

    Args:
        name: Any registered name; only one of a built assembly is looked at.
        read: Reads definitions; called only when something is unknown.

    Raises:
        UnknownAssemblyError: The run has no such definition, or it refers to what no imported
            module defines.
        DefinitionError: The definition is damaged or wrong.
    """
    if name.startswith(BUILT) and is_built(name) and find_built(name) is None:
        # By name, since what makes classes of definitions stands above this module.
        import_module("littleghost.builders").learn(name, read)


def definitions_of(cls: Any) -> dict[str, Built]:
    """Give what a run of an assembly must keep: the definitions of all that it is built of.

    Raises:
        DefinitionError: There are too many, or an assembly inside it is declared wrongly.
    """
    found: dict[str, Built] = {}
    seen: set[Any] = set()
    left = [cls]
    while left:
        item = left.pop()
        if item in seen:
            continue
        seen.add(item)
        for base in item.__mro__:
            built = built_of(base)
            if built is not None:
                found[built.name] = built
        for part in item.parts():
            # A tool's assembly is checked by nobody else before a run exists.
            part.check()
            left.append(part)
    if len(found) > MAX_DEFINITIONS:
        raise DefinitionError(
            f"{cls.__qualname__} is made of {len(found)} built assemblies; {MAX_DEFINITIONS} are "
            "allowed in one run, so declare some of them as classes of a module"
        )
    return found


def lookup(name: str) -> Any:
    """Give a registered assembly.

    Raises:
        UnknownAssemblyError: No imported module has it.
    """
    found = _assemblies.get(name)
    if found is None and name.startswith(BUILT):
        found = find_built(name)
        if found is None and is_built(name):
            raise UnknownAssemblyError(f"the definition of {name!r} is not known here")
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
