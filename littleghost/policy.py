"""How often and how long a composite tries one of its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from littleghost.errors import DefinitionError


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPolicy:
    """Bounds of one step: each attempt is a fresh participant.

    Attributes:
        timeout_s: Seconds that one attempt may take from when it is started; None is no limit.
        retries: How often a failed attempt is followed by another.
        retry_on: Exception classes that are worth another attempt, with their subclasses.
        retry_delay_s: Seconds between two attempts.
    """

    timeout_s: float | None = None
    retries: int = 0
    retry_on: tuple[type[BaseException], ...] = ()
    retry_delay_s: float = 0.0

    @classmethod
    def read(cls, owner: str, **values: Any) -> StepPolicy:
        """Check a policy.

        Args:
            owner: What error messages call it.
            **values: The attributes; `retry_on` may be one class or several.

        Raises:
            DefinitionError: A value is out of range; the message names owner and field.
        """
        chosen: Any = values.get("retry_on") or ()
        classes = tuple(chosen) if isinstance(chosen, list | tuple) else (chosen,)
        named: dict[str, Any] = {**values, "retry_on": classes}
        policy = cls(**named)
        problems: list[str] = []
        if policy.timeout_s is not None and not _is_seconds(policy.timeout_s, above=0):
            problems.append(f"timeout_s is {policy.timeout_s!r}; use more than 0 seconds, or None")
        if isinstance(policy.retries, bool) or not isinstance(policy.retries, int):
            problems.append(f"retries is {policy.retries!r}; use a whole number")
        elif policy.retries < 0:
            problems.append(f"retries is {policy.retries!r}; use 0 or more")
        elif policy.retries and not classes:
            problems.append("retries need retry_on: the exception classes worth another attempt")
        if not _is_seconds(policy.retry_delay_s, least=0):
            problems.append(f"retry_delay_s is {policy.retry_delay_s!r}; use 0 seconds or more")
        problems += [
            f"retry_on holds {item!r}; use exception classes"
            for item in classes
            if not (isinstance(item, type) and issubclass(item, BaseException))
        ]
        if problems:
            raise DefinitionError(f"{owner}: " + "; ".join(problems))
        return policy


def _is_seconds(value: object, *, above: float | None = None, least: float | None = None) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return (above is None or value > above) and (least is None or value >= least)
