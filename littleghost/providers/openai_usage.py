"""Reads the token counts of OpenAI-like answers into buckets that do not overlap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from littleghost.usage import Usage


def read_usage(value: object) -> Usage | None:
    """Read a usage object.

    Returns:
        Cached tokens are taken out of the input and reasoning out of the output, which services
        count in; None when there is nothing but zeros, which some send before they know.
    """
    if not isinstance(value, Mapping):
        return None
    data = cast("Mapping[str, Any]", value)
    of_input = _details(data, "prompt_tokens_details", "input_tokens_details")
    of_output = _details(data, "completion_tokens_details", "output_tokens_details")
    found = Usage.from_json(
        {
            "input": data.get("prompt_tokens", data.get("input_tokens")),
            "output": data.get("completion_tokens", data.get("output_tokens")),
            "cache_read": of_input.get("cached_tokens", data.get("prompt_cache_hit_tokens")),
            "cache_write": of_input.get("cache_write_tokens"),
            "reasoning": of_output.get("reasoning_tokens"),
        }
    )
    if not found.total:
        return None
    output = found.output - found.reasoning
    if output < 0 or data.get("total_tokens") == found.input + found.output + found.reasoning:
        # A few services count reasoning beside the output.
        output = found.output
    return Usage(
        input=max(0, found.input - found.cache_read - found.cache_write),
        output=output,
        cache_read=found.cache_read,
        cache_write=found.cache_write,
        reasoning=found.reasoning,
    )


def _details(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = data.get(name)
        if isinstance(value, Mapping):
            return cast("Mapping[str, Any]", value)
    return {}
