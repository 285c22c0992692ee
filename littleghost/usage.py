"""Token counts of model requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


def _count(value: object) -> int:
    """Read one count; what is no sensible count is 0, since providers send anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if value != value or value < 0 or value > 1e15:
        return 0
    return int(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens in buckets that do not overlap; their sum is the total.

    Shape: JSON `{"input": n, "output": n, "cache_read": n, "cache_write": n, "reasoning": n}`;
    buckets that are 0 may be missing.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """The sum of all buckets."""
        return self.input + self.output + self.cache_read + self.cache_write + self.reasoning

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in BUCKETS})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Usage:
        """Read counts; negative or non-numeric ones become 0."""
        return cls(**{name: _count(data.get(name)) for name in BUCKETS})

    def to_json(self) -> dict[str, int]:
        """Give the buckets that are not 0."""
        return {name: value for name in BUCKETS if (value := getattr(self, name))}


BUCKETS: tuple[str, ...] = tuple(field.name for field in fields(Usage))


def sums_of(usage_of: Mapping[str, Usage]) -> dict[str, Usage]:
    """Give for each participant what it used with everything below it.

    Args:
        usage_of: What each used itself, by id; a child's id begins with its parent's and a dot.
    """
    counts: dict[str, dict[str, int]] = {}
    for name, usage in usage_of.items():
        used = usage.to_json()
        while name:
            own = counts.setdefault(name, {})
            for bucket, count in used.items():
                own[bucket] = own.get(bucket, 0) + count
            name = name.rpartition(".")[0]
    return {name: Usage(**own) for name, own in counts.items()}
