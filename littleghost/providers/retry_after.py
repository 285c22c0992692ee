"""Reads how long a service asks to wait, in all the forms services use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
_UNITS_S = (86400.0, 3600.0, 60.0, 1.0, 0.001)
_ADVICE = re.compile(r"(?:try again|retry) (?:in|after) ([0-9][0-9.dhms]*)", re.IGNORECASE)
_ANTHROPIC = re.compile(r"anthropic-ratelimit-(.+)-reset")


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read the wait that an answer's headers ask for.

    Args:
        headers: The answer's headers; names in any case.
        now: The present moment; the answer's own Date header is used instead when there is one.

    Returns:
        Seconds, above 0; None when there is no usable hint. Not bounded: an hour is an hour.
        Never raises.
    """
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    now = _moment(lower.get("date", "")) or now
    value = lower.get("retry-after", "")
    milliseconds = _number(lower.get("retry-after-ms", ""))
    seconds = _number(value)
    return (
        _positive(None if milliseconds is None else milliseconds / 1000)
        or _positive(_until(value, now) if seconds is None else seconds)
        or _from_limits(lower, now)
    )


def advised_s(text: str) -> float | None:
    """Find a wait in an error's own words, such as "Please try again in 1m2.5s".

    Returns:
        Seconds, above 0, or None.
    """
    found = _ADVICE.search(text)
    return None if found is None else _positive(_duration(found[1].rstrip(".")))


def duration_s(text: str) -> float | None:
    """Read a duration such as "34.07s" or "1m2s".

    Returns:
        Seconds, above 0, or None.
    """
    return _positive(_duration(text.strip()))


def _from_limits(headers: Mapping[str, str], now: datetime) -> float | None:
    """Use the reset times of the limits that are used up; of all limits if none says so."""
    waits: dict[str, float | None] = {}
    used_up: set[str] = set()
    for name, value in headers.items():
        anthropic = _ANTHROPIC.fullmatch(name)
        if anthropic:
            waits[name] = _until(value, now)
            left = headers.get(f"anthropic-ratelimit-{anthropic[1]}-remaining")
        elif name.startswith("x-ratelimit-reset"):
            waits[name] = _reset(value, now)
            left = headers.get(name.replace("reset", "remaining"))
        else:
            continue
        if left == "0":
            used_up.add(name)
    return _longest(waits[name] for name in (used_up or waits))


def _reset(value: str, now: datetime) -> float | None:
    seconds = _number(value)
    if seconds is None:
        return _duration(value) or _until(value, now)
    if seconds > 1e11:
        # An epoch in milliseconds.
        return seconds / 1000 - now.timestamp()
    return seconds - now.timestamp() if seconds > 1e9 else seconds


def _longest(waits: Iterable[float | None]) -> float | None:
    usable = [wait for wait in map(_positive, waits) if wait is not None]
    return max(usable, default=None)


def _positive(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) and seconds > 0 else None


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _duration(value: str) -> float | None:
    """Read a Go duration such as 6m0s or 250ms, or plain seconds, in seconds."""
    found = _DURATION.fullmatch(value)
    if not value or found is None:
        return _number(value)
    parts = zip(found.groups(), _UNITS_S, strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


def _until(value: str, now: datetime) -> float | None:
    moment = _moment(value)
    return None if moment is None else (moment - now).total_seconds()


def _moment(value: str) -> datetime | None:
    """Read an HTTP date or an ISO 8601 moment."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(value)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
