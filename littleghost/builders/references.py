"""References to code: what a definition says in place of an object, and how a worker finds it.

A reference is `module:QualifiedName`. Whoever reads one from Redis looks it up among what is
imported already, and only in modules that declare an assembly or a tool; nothing is imported, and
no other module's code can be reached.
"""

from __future__ import annotations

import builtins
import sys
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from littleghost import registry
from littleghost.assembly import Assembly
from littleghost.errors import DefinitionError, LittleGhostError, UnknownAssemblyError
from littleghost.functions import ToolFunction
from littleghost.tool import Tool

_OWN: Final = "littleghost"
_CURE: Final = "move it to a module that the workers import"
# Modules found to declare an assembly or a tool.
_open: set[str] = set()
# What this process referred to itself, in `__main__` for instance, it may find again.
_referred: set[str] = set()


def refer_to_function(value: Any) -> str:
    """Write the reference to a function.

    Raises:
        DefinitionError: It cannot be referred to; the message says why, and the cure.
    """
    if isinstance(value, MethodType):
        raise DefinitionError(f"is a method of an object ({value.__qualname__}); {_CURE}")
    if not isinstance(value, FunctionType):
        raise DefinitionError(f"is {value!r:.80}; use a function that a module defines")
    if value.__name__ == "<lambda>":
        raise DefinitionError(f"is a lambda, which no worker can look up; {_CURE} and name it")
    return _refer(value, value)


def refer_to_class(value: Any) -> str:
    """Write the reference to a tool, a tool provider, an exception class or a base.

    Raises:
        DefinitionError: It cannot be referred to; the message says why, and the cure.
    """
    if isinstance(value, ToolFunction):
        return _refer(value, value.tool_class)
    if not isinstance(value, type):
        raise DefinitionError(f"is an object of {type(value).__qualname__}; use its class")
    return _refer(value, value)


def _refer(value: Any, named: Any) -> str:
    module, name = named.__module__, named.__qualname__
    if "<locals>" in name:
        raise DefinitionError(f"is local to a function ({name}); {_CURE}")
    reference = f"{module}:{name}"
    if _find(reference) is not value:
        # What `Tool.define` made has the tool's name, not the variable's.
        home = sys.modules.get(module)
        bound = [key for key, item in vars(home).items() if item is value] if home else []
        if not bound:
            raise DefinitionError(f"is not what {reference!r} is; {_CURE} under its own name")
        reference = f"{module}:{bound[0]}"
    _referred.add(reference)
    return reference


def local_problem(reference: str) -> str | None:
    """Say why no other process could look up a reference; None when it can."""
    module = reference.partition(":")[0]
    if module == "__main__" or "<locals>" in reference:
        return f"{reference!r} exists in this process only; {_CURE}"
    if registry.is_built(reference) or module in (builtins.__name__, _OWN) or is_open(module):
        return None
    if module.startswith(f"{_OWN}."):
        return None
    return (
        f"{reference!r} is in a module without an assembly or a tool, where workers look nothing "
        "up; move it to a module that declares one"
    )


def is_open(name: str) -> bool:
    """Say whether references may name functions of a module: it is imported and declares one."""
    if name in _open:
        return True
    module = sys.modules.get(name)
    if not isinstance(module, ModuleType):
        return False
    if any(known.startswith(f"{name}:") for known in registry.names()) or (
        name.partition(".")[0] != _OWN
        and any(_declares(value, name) for value in list(vars(module).values()))
    ):
        _open.add(name)
        return True
    return False


def _declares(value: Any, module: str) -> bool:
    # By type and not isinstance, which asks proxies for what they stand for.
    kind = type(value)
    if issubclass(kind, ToolFunction):
        return value.tool_class.__module__ == module
    return (
        issubclass(kind, type) and issubclass(value, Tool | Assembly) and value.__module__ == module
    )


def find_function(reference: Any) -> Any:
    """Find the function that a definition refers to.

    Raises:
        UnknownAssemblyError: No module that may be looked into defines it.
    """
    found = _find_open(reference)
    if type(found) is FunctionType and _names(found, reference):
        return found
    raise _unknown(reference, "function")


def find_tool(reference: Any) -> Any:
    """Find the tool or tool provider that a definition refers to.

    Raises:
        UnknownAssemblyError: No module that may be looked into defines it.
    """
    found = _find_open(reference)
    if issubclass(type(found), ToolFunction) and _is_of(found.tool_class, reference):
        return found
    if issubclass(type(found), type) and _is_of(found, reference):
        is_provider = callable(getattr(found, "tools", None)) and not issubclass(found, Assembly)
        if issubclass(found, Tool) or is_provider:
            return found
    raise _unknown(reference, "tool")


def find_exception(reference: Any) -> type[BaseException]:
    """Find the exception class that a definition refers to.

    Raises:
        UnknownAssemblyError: It is none of Python's, of this package, or of an open module.
    """
    module = _module_of(reference)
    is_own = module == _OWN or module.startswith(f"{_OWN}.")
    found = _find(reference) if is_own or module == "builtins" else _find_open(reference)
    allowed = LittleGhostError if is_own else BaseException
    if issubclass(type(found), type) and issubclass(found, allowed) and _names(found, reference):
        return found
    raise _unknown(reference, "exception class")


def find_base(reference: Any, family: type[Assembly]) -> Any:
    """Find the class that a definition adds to.

    Raises:
        UnknownAssemblyError: No imported module registers or defines such a class.
    """
    try:
        found: Any = registry.lookup(str(reference))
    except UnknownAssemblyError:
        # A base may be abstract, and then it is not registered.
        found = _find_open(reference)
        if not (issubclass(type(found), type) and _names(found, reference)):
            raise
    if not issubclass(found, family):
        raise DefinitionError(f"the base {reference!r} is no {family.__name__}")
    return found


def _find_open(reference: Any) -> Any:
    module = _module_of(reference)
    return _find(reference) if reference in _referred or is_open(module) else None


def _find(reference: str) -> Any:
    """Follow a reference through the namespaces of a module and its classes; runs no code."""
    module, _, path = reference.partition(":")
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        if not issubclass(type(found), ModuleType | type):
            return None
        found = found.__dict__.get(name)
        if isinstance(found, staticmethod):
            found = found.__func__
    return found


def _module_of(reference: Any) -> str:
    if not isinstance(reference, str):
        raise DefinitionError(f"the definition has {reference!r:.80} where a reference must be")
    return reference.partition(":")[0]


def _names(found: Any, reference: str) -> bool:
    return f"{found.__module__}:{found.__qualname__}" == reference


def _is_of(found: Any, reference: str) -> bool:
    return bool(found.__module__ == _module_of(reference))


def _unknown(reference: str, what: str) -> UnknownAssemblyError:
    module = _module_of(reference)
    if module not in sys.modules:
        why = f"import the module {module!r} in this worker"
    elif is_open(module):
        why = f"module {module!r} does not define it"
    else:
        why = f"module {module!r} declares no assembly or tool, so nothing is looked up there"
    return UnknownAssemblyError(f"no {what} {reference!r:.200} is known here; {why}")
