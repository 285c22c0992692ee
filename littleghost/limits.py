"""What an agent may use up in one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from littleghost.errors import DefinitionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one agent invocation.

    Attributes:
        max_turns: Model turns; None is no limit.
        max_tool_calls: Tool calls; a batch that would pass it is not run at all. None is no limit.
        max_tool_result_tokens: Tokens (4 bytes each) of one tool result; the middle is cut out.
        max_parallel_calls: Tool calls of one batch that may run at once.
        max_model_retries: How often a failed model request is made again.
        model_settings: Settings of every model request of this agent, such as `temperature`.
    """

    max_turns: int | None = 100
    max_tool_calls: int | None = 1_000
    max_tool_result_tokens: int = 10_000
    max_parallel_calls: int = 8
    max_model_retries: int = 4
    model_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for name in ("max_turns", "max_tool_calls"):
            value = getattr(self, name)
            if value is not None and not _is_count(value, 1):
                raise DefinitionError(f"limits: {name} is {value!r}; use 1 or more, or None")
        for name, least in (
            ("max_tool_result_tokens", 1),
            ("max_parallel_calls", 1),
            ("max_model_retries", 0),
        ):
            if not _is_count(getattr(self, name), least):
                raise DefinitionError(
                    f"limits: {name} is {getattr(self, name)!r}; use {least} or more"
                )

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form, for the definition's fingerprint."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**values, "model_settings": dict(self.model_settings)}


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
