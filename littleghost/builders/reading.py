"""Reads the parts of a definition: data as it is, references looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from littleghost.builders import references
from littleghost.builders.writing import POLICY


class Reader:
    """Reads the parts of one definition, which may be forged.

    What it gives is as the definition says, of any type; the check of the class judges it.
    """

    def __init__(self, assembly: Callable[[Any], Any]) -> None:
        """Read with a way to find assemblies.

        Args:
            assembly: Gives the class of a registered name, built ones included.
        """
        self.assembly = assembly

    def function(self, reference: Any) -> Any:
        """Find a function; None stays None.

        Raises:
            UnknownAssemblyError: It is not known here.
        """
        return None if reference is None else references.find_function(reference)

    def either(self, data: Mapping[str, Any]) -> Any:
        """Read data or a function."""
        return self.function(data["function"]) if "function" in data else data["is"]

    def tool(self, reference: Any) -> Any:
        """Find a tool or a tool provider."""
        return references.find_tool(reference)

    def classes(self, data: Any) -> tuple[type[BaseException], ...]:
        """Find exception classes."""
        return tuple(map(references.find_exception, data))

    def policy(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Read how often and how long a node or member is tried."""
        told = {name: data[name] for name in POLICY}
        return {**told, "retry_on": self.classes(data["retry_on"])}
