"""What can be wrong with the declaration of one tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final
from weakref import WeakSet

from littleghost.errors import DefinitionError
from littleghost.tool import NAME_PATTERN, QUEUE_PATTERN, Tool

_FINE: Final[WeakSet[type[Tool]]] = WeakSet()


def tool_problems(tool: type[Tool]) -> list[str]:
    """Say everything that is wrong with a tool class.

    Returns:
        Sentences that name the class, the field and the cure; empty when it is fine.
    """
    # Remembered, since providers may hand out the same class for every turn.
    if tool in _FINE:
        return []
    owner = f"{tool.__module__}.{tool.__qualname__}"
    problems = [f"{owner}.{problem}" for problem in _field_problems(tool)]
    try:
        tool.specification()
    except DefinitionError as error:
        problems.append(f"{tool.__module__}: {error}")
    except AttributeError:
        # A name or description that is no text: said above already.
        if not problems:
            raise
    if not problems:
        _FINE.add(tool)
    return problems


def _field_problems(tool: type[Tool]) -> Iterator[str]:
    # Declared types may be broken by code that no type checker has seen.
    fields: Callable[[str], Any] = lambda name: getattr(tool, name)  # noqa: E731
    name, description = fields("name"), fields("description")
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        yield f"name {name!r} must be 1 to 64 of the characters a-z A-Z 0-9 _ -"
    if not isinstance(description, str) or not description.strip():
        yield "description is missing; say what the tool does in words for the model"
    for flag in ("exclusive", "idempotent"):
        if not isinstance(fields(flag), bool):
            yield f"{flag} {fields(flag)!r} must be True or False"
    timeout = fields("timeout_s")
    if timeout is not None and not _is_positive(timeout):
        yield f"timeout_s {timeout!r} must be a number of seconds above 0, or None"
    if not _is_positive(fields("approval_timeout_s")):
        yield f"approval_timeout_s {fields('approval_timeout_s')!r} must be seconds above 0"
    queue = fields("queue")
    if queue is not None and not (isinstance(queue, str) and QUEUE_PATTERN.fullmatch(queue)):
        yield f"queue {queue!r} must be 1 to 64 of the characters a-z 0-9 . _ -, or None"
    yield from _callable_problems(tool)


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < float("inf")


def _callable_problems(tool: type[Tool]) -> Iterator[str]:
    if tool.available_if is not None and not _takes(tool.available_if, 1):
        yield "available_if must take one argument, the binding, or be None"
    asks: Any = tool.requires_approval
    is_method = not isinstance(inspect.getattr_static(tool, "requires_approval"), staticmethod)
    if not isinstance(asks, bool) and not _takes(asks, 1 + is_method):
        yield "requires_approval must be True, False, or a method that takes (self, input)"
    if inspect.iscoroutinefunction(asks):
        yield "requires_approval must be an ordinary method, not async"
    if tool.call is Tool.call:
        yield "call is missing; implement call(self, input)"
    elif not _takes(tool.call, 2):
        yield "call must take (self, input)"


def _takes(function: Any, count: int) -> bool:
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True
