"""Adds up the token counts that an Anthropic answer tells in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from littleghost.usage import Usage


class UsageCounts:
    """The counts of one answer.

    Those at its start and those at its end are of the same tokens, not parts of a sum, and either
    may lack some: the largest of each kind is right.
    """

    def __init__(self) -> None:
        """Start with no counts."""
        self._largest = Usage()

    def take(self, value: object) -> None:
        """Take a usage object; anything else is ignored."""
        if not isinstance(value, Mapping):
            return
        data = cast("Mapping[str, Any]", value)
        details = data.get("output_tokens_details")
        of_output = cast("Mapping[str, Any]", details) if isinstance(details, Mapping) else {}
        found = Usage.from_json(
            {
                "input": data.get("input_tokens"),
                "output": data.get("output_tokens"),
                "cache_read": data.get("cache_read_input_tokens"),
                "cache_write": data.get("cache_creation_input_tokens"),
                "reasoning": of_output.get("thinking_tokens"),
            }
        )
        old = self._largest
        self._largest = Usage(
            input=max(old.input, found.input),
            output=max(old.output, found.output),
            cache_read=max(old.cache_read, found.cache_read),
            cache_write=max(old.cache_write, found.cache_write),
            reasoning=max(old.reasoning, found.reasoning),
        )

    @property
    def usage(self) -> Usage | None:
        """The counts in buckets that do not overlap; None when nothing was told."""
        told = self._largest
        if not told.total:
            return None
        # Thinking is counted in the output; cached tokens are not counted in the input.
        reasoning = min(told.reasoning, told.output)
        return Usage(
            input=told.input,
            output=told.output - reasoning,
            cache_read=told.cache_read,
            cache_write=told.cache_write,
            reasoning=reasoning,
        )
