"""Reads the token counts of Gemini's answers into buckets that do not overlap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from littleghost.usage import Usage


def read_usage(data: Mapping[str, Any]) -> Usage | None:
    """Read `usageMetadata`.

    Returns:
        Cached tokens are taken out of the prompt, which counts them in; thoughts are beside the
        candidates; what tools put into the prompt counts as input. None when all is 0.
    """
    found = Usage.from_json(
        {
            "input": data.get("promptTokenCount"),
            "output": data.get("candidatesTokenCount"),
            "cache_read": data.get("cachedContentTokenCount"),
            "reasoning": data.get("thoughtsTokenCount"),
        }
    )
    of_tools = Usage.from_json({"input": data.get("toolUsePromptTokenCount")}).input
    if not found.total:
        return None
    output = found.output
    if found.reasoning and data.get("totalTokenCount") == found.input + found.output:
        # Some gateways count thoughts in.
        output = max(0, found.output - found.reasoning)
    return Usage(
        input=max(0, found.input - found.cache_read) + of_tools,
        output=output,
        cache_read=found.cache_read,
        reasoning=found.reasoning,
    )
