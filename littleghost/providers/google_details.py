"""Reads the details that Google's services put into their errors.

Source: https://cloud.google.com/apis/design/errors#error_details
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from littleghost.errors import AuthenticationError, ProviderError, RateLimitedError
from littleghost.providers.retry_after import duration_s
from littleghost.providers.wire_text import mappings_of

# What is left to find when the body is too long to be read as a whole, or is a gateway's.
_DELAY = re.compile(r'(?:"retryDelay":\s*"|Please retry in )((?:\d+m(?!s))?\d+(?:\.\d+)?m?s)')
_BAD_KEY = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "ACCESS_TOKEN_EXPIRED"})


@dataclass(frozen=True, slots=True)
class GoogleDetails:
    """What the details of one error say.

    Attributes:
        retry_after_s: Seconds to wait, from RetryInfo; None when there is none.
        has_bad_key: Whether the key is refused, which comes as 400.
        is_daily: Whether a quota of a whole day is used up: waiting for a minute cannot help.
    """

    retry_after_s: float | None = None
    has_bad_key: bool = False
    is_daily: bool = False

    def failure(self, sentence: str, status: int | None) -> ProviderError | None:
        """Name the failure, when the details decide it; None otherwise.

        Every 429 of Google says "You exceeded your current quota", whether the minute's or the
        account's; only RetryInfo tells that waiting helps.
        """
        if self.has_bad_key:
            return AuthenticationError(sentence, status=status)
        if status == 429 and self.is_daily:
            return RateLimitedError(sentence, status=status, retryable=False)
        if status == 429 and self.retry_after_s is not None:
            return RateLimitedError(sentence, status=status, retry_after_s=self.retry_after_s)
        return None


def details_of(value: object) -> GoogleDetails:
    """Read the details of an error, wherever it stands in a body; never raises."""
    text = _text(value)
    found = _DELAY.search(text)
    retry_after_s = duration_s(found[1]) if found else None
    has_bad_key, is_daily = False, "PerDay" in text
    for detail in _details(value):
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            retry_after_s = duration_s(delay) or retry_after_s
        has_bad_key = has_bad_key or detail.get("reason") in _BAD_KEY
        for violation in mappings_of(detail.get("violations")):
            is_daily = is_daily or "PerDay" in str(violation.get("quotaId"))
    return GoogleDetails(retry_after_s, has_bad_key, is_daily)


def _details(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        data = cast("Mapping[str, Any]", value)
        error: object = data.get("error") or data
        if isinstance(error, Mapping):
            yield from mappings_of(cast("Mapping[str, Any]", error).get("details"))


def _text(value: object) -> str:
    """Give the words of an error: its message, or a body that is no JSON."""
    if isinstance(value, Mapping):
        data = cast("Mapping[str, Any]", value)
        error: object = data.get("error") or data
        value = (
            cast("Mapping[str, Any]", error).get("message") if isinstance(error, Mapping) else ""
        )
    return value if isinstance(value, str) else ""
