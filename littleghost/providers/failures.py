"""Names what went wrong at a service: from its answers, from error objects inside a stream.

Pure. Services disagree about everything here, so the words are read as well as the numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from littleghost.errors import (
    AuthenticationError,
    ContextWindowOverflowError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitedError,
)
from littleghost.providers.google_details import details_of
from littleghost.providers.retry_after import advised_s, retry_after_s
from littleghost.providers.wire_text import clean_text

# Characters of a service's own words that are kept.
MAX_MESSAGE = 1_000
_OVERFLOW_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
)
# Phrases, not words: a tool may be called context_length_tool, and a max_tokens setting that is
# too large is no overflow.
_OVERFLOW = re.compile(
    r"maximum context len(?:gth|ght)"
    r"|maximum prompt length"
    r"|(?:exceed|larger than|longer than|greater than|overflow)[^.]{0,40}\bcontext"
    r"|context (?:window|length|size)[^.]{0,30}(?:exceeded|overflow|of only)"
    r"|prompt (?:is )?too long"
    r"|input (?:is )?too long"
    r"|input (?:token count|tokens|length)[^.]{0,40}exceed"
    r"|too many (?:input|prompt) tokens"
    r"|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
_NEVER_FITS = re.compile(r"request too large|too large for model", re.IGNORECASE)
_SPENT = re.compile(
    r"insufficient[_ ](?:quota|credits|balance|funds)|exceeded your current quota"
    r"|billing_hard_limit",
    re.IGNORECASE,
)
_SECRETS = re.compile(
    r"\b(?:sk|pk|gsk|xai|key)-[\w-]{8,}|(?<=Bearer )\S+|\bAIza[\w-]{20,}|\bya29\.[\w.-]{8,}",
    re.IGNORECASE,
)
_STATUS_OF_WORD = {
    "overloaded_error": 529,
    "overloaded": 529,
    "service_unavailable": 503,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "rate_limited": 429,
    "resource_exhausted": 429,
    "insufficient_quota": 429,
    "billing_error": 402,
    "request_too_large": 413,
    "timeout": 504,
    "timeout_error": 504,
    "server_error": 500,
    "api_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "badrequesterror": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "unavailable": 503,
    "deadline_exceeded": 504,
    "unauthenticated": 401,
    "permission_denied": 403,
    "model_not_found": 404,
}


def failure_of_answer(
    who: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: datetime,
    secrets: Iterable[str] = (),
) -> ProviderError:
    """Name the failure that an HTTP answer reports.

    Args:
        who: The service, for the message.
        status: The HTTP status.
        headers: The answer's headers, read for hints when to ask again.
        body: The first bytes of the body; JSON or any text.
        now: The present moment, for hints that are dates.
        secrets: Credentials that must not stand in the message.
    """
    text = body.decode("utf-8", "replace")
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, list) and len(cast("list[object]", value)) == 1:
        # Google wraps the error of a stream in a list.
        value = cast("list[object]", value)[0]
    details = details_of(value)
    message, words = _read(value)
    message = _safe(message, secrets)
    hint = retry_after_s(headers, now) or details.retry_after_s or advised_s(message)
    told = f": {message}" if message else ""
    if 300 <= status < 400:
        told = f" and points to {headers.get('location', 'another place')!r}: correct the base URL"
    sentence = f"{who} answered {status}{told}"
    return details.failure(sentence, status) or _failure(sentence, message, words, status, hint)


def failure_of_object(who: str, value: object) -> ProviderError:
    """Name the failure that an error object inside an answer reports.

    Args:
        who: The service, for the message.
        value: The object under "error", or a whole chunk that is an error; any JSON value.

    Returns:
        An error that may be retried when its code is 429 or 5xx, or when it has none.
    """
    message, words = _read(value)
    message = _safe(message, ())
    status = next(filter(None, map(_status_of, words)), None)
    details = details_of(value)
    hint = details.retry_after_s or advised_s(message)
    sentence = f"{who} reported an error: {message or 'it did not say what'}"
    return details.failure(sentence, status) or _failure(sentence, message, words, status, hint)


def _failure(
    sentence: str, message: str, words: list[str], status: int | None, hint: float | None
) -> ProviderError:
    """Choose the class. The order matters: what cannot succeed comes before what may."""
    is_overflow = not _OVERFLOW_CODES.isdisjoint(words) or (
        status not in (401, 403, 429) and _OVERFLOW.search(message)
    )
    if is_overflow or status == 413 or (status == 429 and _NEVER_FITS.search(message)):
        return ContextWindowOverflowError(sentence, status=status)
    if "overloaded_error" in words:
        # Gateways send it with any status.
        return OverloadedError(sentence, status=status, retry_after_s=hint)
    if status in (401, 403):
        return AuthenticationError(sentence, status=status)
    if status == 402 or any(map(_SPENT.search, (message, *words))):
        return RateLimitedError(sentence, status=status, retryable=False)
    if status == 429:
        return RateLimitedError(sentence, status=status, retry_after_s=hint)
    if status in (503, 529):
        return OverloadedError(sentence, status=status, retry_after_s=hint)
    if status in (408, 504):
        return ProviderTimeoutError(sentence, status=status, retry_after_s=hint)
    if status is None or status in (409, 425) or status >= 500:
        return ProviderError(sentence, status=status, retry_after_s=hint, retryable=True)
    if 400 <= status < 500:
        return InvalidRequestError(sentence, status=status)
    return ProviderError(sentence, status=status)


def _read(value: object) -> tuple[str, list[str]]:
    """Find the message and the code words of an error in any shape."""
    if not isinstance(value, Mapping):
        return (value if isinstance(value, str) else json.dumps(value)), []
    value = cast("Mapping[str, Any]", value)
    inner = value.get("error")
    if isinstance(inner, Mapping):
        message, words = _read(cast("Mapping[str, Any]", inner))
        return message, [*words, *_words(value)]
    if isinstance(inner, str) and inner:
        return inner, _words(value)
    message = ""
    for name in ("message", "error_message", "detail", "msg"):
        found = value.get(name)
        if found:
            message = found if isinstance(found, str) else json.dumps(found)
            break
    metadata = value.get("metadata")
    raw = cast("Mapping[str, Any]", metadata).get("raw") if isinstance(metadata, Mapping) else None
    if raw:
        # A router puts the words of the service behind it here.
        message = f"{message} ({raw if isinstance(raw, str) else json.dumps(raw)})"
    return message, _words(value)


def _words(value: Mapping[str, Any]) -> list[str]:
    named = (value.get(name) for name in ("code", "type", "error_type", "status"))
    return [str(word).lower() for word in named if isinstance(word, str | int) and word != ""]


def _status_of(word: str) -> int | None:
    if word.isdecimal() and len(word) == 3 and word[0] in "45":
        return int(word)
    return _STATUS_OF_WORD.get(word)


def _safe(message: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if secret:
            message = message.replace(secret, "***")
    message = " ".join(clean_text(_SECRETS.sub("***", message)).split())
    return message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…"
