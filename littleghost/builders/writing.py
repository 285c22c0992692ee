"""Writes a definition: data as it is, code as references, everything wrong collected."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from littleghost import registry
from littleghost.assembly import Assembly
from littleghost.builders import references
from littleghost.errors import DefinitionError
from littleghost.json_values import CALLER_LIMITS, check_json

POLICY = ("timeout_s", "retries", "retry_delay_s")


class Writer:
    """Writes the parts of one definition.

    What is of the wrong type is left out without a word: the check of the class speaks of it.

    Attributes:
        problems: What cannot be written, each with its field.
        needs: Names of the built assemblies that the definition is made of, at any depth.
        local: What only this process could look up.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.needs: set[str] = set()
        self.local: list[str] = []

    def literal(self, value: Any, where: str) -> Any:
        """Write data."""
        try:
            return check_json(value, where=where, limits=CALLER_LIMITS)
        except ValueError as error:
            self.problems.append(f"{error}; use plain data, such as text, numbers and lists")
            return None

    def function(self, value: Any, where: str) -> str | None:
        """Write a function."""
        if not callable(value):
            return None
        return self._refer(references.refer_to_function, value, where)

    def either(self, value: Any, where: str) -> dict[str, Any]:
        """Write data or a function, such that a reader can tell which."""
        if callable(value):
            return {"function": self.function(value, where)}
        return {"is": self.literal(value, where)}

    def assembly(self, value: Any, where: str) -> str | None:
        """Write an assembly, and what it needs."""
        if not (isinstance(value, type) and issubclass(value, Assembly)):
            return None
        with suppress(DefinitionError):
            # What is wrong with the class is said when that is checked.
            self.needs.update(registry.definitions_of(value))
        return self._note(registry.name_of(value), where)

    def base(self, value: type[Assembly], where: str) -> str | None:
        """Write the class that the definition adds to."""
        name = registry.name_of(value)
        if registry.is_built(name) or name in registry.names():
            return self.assembly(value, where)
        # An abstract class is not registered, but may be found in its module.
        return self._refer(references.refer_to_class, value, where)

    def tool(self, value: Any, where: str) -> str | None:
        """Write a tool class, a decorated function or a tool provider."""
        return self._refer(references.refer_to_class, value, where)

    def classes(self, value: Any, where: str) -> list[str | None]:
        """Write exception classes: one or several."""
        several = cast("Sequence[Any]", value if isinstance(value, list | tuple) else (value,))
        return [
            self._refer(references.refer_to_class, item, where)
            for item in several
            if isinstance(item, type) and issubclass(item, BaseException)
        ]

    def policy(self, value: Any, where: str) -> dict[str, Any]:
        """Write how often and how long a node or member is tried."""
        told = {name: self.literal(getattr(value, name), f"{where}: {name}") for name in POLICY}
        return {**told, "retry_on": self.classes(value.retry_on, f"{where}: retry_on")}

    def _refer(self, refer: Any, value: Any, where: str) -> str | None:
        try:
            return self._note(refer(value), where)
        except DefinitionError as error:
            self.problems.append(f"{where} {error}")
            return None

    def _note(self, reference: str, where: str) -> str:
        problem = references.local_problem(reference)
        if problem is not None:
            self.local.append(f"{where}: {problem}")
        return reference
