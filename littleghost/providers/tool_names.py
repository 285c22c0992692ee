"""Maps tool names to names that services accept, and back.

The wire name depends on the tool's name alone, so every worker, restart and order of tools gives
the same one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

from littleghost.errors import InvalidRequestError

# What OpenAI and Anthropic accept.
_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL_RUN = re.compile(r"[^a-zA-Z0-9_-]+")
# 64 characters less an underscore and eight digits of a hash.
_STEM = 55


def wire_name(name: str) -> str:
    """Give the name to send for a tool: its own, or one with a hash that no other tool gets."""
    if _LEGAL.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = _ILLEGAL_RUN.sub("_", name)[:_STEM].strip("_")
    return f"{stem or 'tool'}_{digest}"


def letter_first_name(name: str) -> str:
    """Give the name to send to services that want a letter or an underscore first."""
    wire = wire_name(name)
    if wire[0].isalpha() or wire[0] == "_":
        return wire
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"t_{wire[: _STEM - 2].strip('-')}_{digest}"


class WireNames:
    """The names of the tools offered in one request."""

    def __init__(
        self, names: Iterable[str] = (), to_wire: Callable[[str], str] = wire_name
    ) -> None:
        """Map the names.

        Args:
            names: The tools' own names.
            to_wire: The rule of the service.

        Raises:
            InvalidRequestError: Two tools have one name on the wire.
        """
        self._originals: dict[str, str] = {}
        for name in names:
            other = self._originals.setdefault(to_wire(name), name)
            if other != name:
                raise InvalidRequestError(f"tools {other!r} and {name!r} need different names")

    def original(self, name: str) -> str:
        """Give the tool that a model's call means; a name that was not offered stays as it is."""
        return self._originals.get(name, name)
