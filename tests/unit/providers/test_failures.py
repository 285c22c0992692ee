import json
from datetime import UTC, datetime

import pytest
from wire_server import load_case

from littleghost.errors import ProviderError
from littleghost.providers.failures import MAX_MESSAGE, failure_of_answer, failure_of_object

ROWS = load_case("overflow-classification")["input"]["rows"]


def fail(status, body, headers=None, secrets=()):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return failure_of_answer(
        "api.test", status, headers or {}, data, now=datetime.now(UTC), secrets=secrets
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['status']} {row['class'][:20]}")
def test_overflow_is_told_from_what_looks_like_it(row):
    body = row["body"].encode() if isinstance(row["body"], str) else row["body"]
    error = fail(row["status"], body)

    assert error.code in row["class"]
    assert error.is_retryable == ("retryable)" in row["class"] and "not" not in row["class"])
    text = row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])
    assert str(error).partition(": ")[2] in text


@pytest.mark.parametrize(
    ("status", "code", "is_retryable"),
    [
        (400, "invalid_request", False),
        (401, "auth", False),
        (403, "auth", False),
        (404, "invalid_request", False),
        (408, "timeout", True),
        (409, "provider_error", True),
        (413, "context_overflow", False),
        (422, "invalid_request", False),
        (429, "rate_limited", True),
        (402, "rate_limited", False),
        (500, "provider_error", True),
        (502, "provider_error", True),
        (503, "overloaded", True),
        (504, "timeout", True),
        (529, "overloaded", True),
        (307, "provider_error", False),
    ],
)
def test_a_status_says_whether_asking_again_can_help(status, code, is_retryable):
    error = fail(status, {"error": {"message": "no"}})

    assert (error.code, error.is_retryable, error.status) == (code, is_retryable, status)


def test_a_spent_quota_is_not_asked_again():
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}

    assert not fail(429, body).is_retryable


def test_the_wait_is_read_from_headers_or_words():
    assert fail(429, {}, {"retry-after": "7"}).retry_after_s == 7
    assert fail(429, {"error": {"message": "try again in 2s."}}).retry_after_s == 2
    assert fail(503, b"", {"Retry-After": "1"}).retry_after_s == 1


def test_keys_never_stand_in_a_message_and_it_is_bounded():
    body = b"Bearer topsecretvalue and sk-abcdefgh12345 and topsecretvalue " + b"x" * 5000
    text = str(fail(401, body, secrets=("topsecretvalue",)))

    assert "topsecret" not in text
    assert "sk-abc" not in text
    assert len(text) < MAX_MESSAGE + 100


@pytest.mark.parametrize(
    ("value", "code", "is_retryable"),
    [
        ("overloaded, sorry", "provider_error", True),
        ({"message": "m", "code": None}, "provider_error", True),
        ({"message": "m", "code": 502}, "provider_error", True),
        ({"message": "m", "code": "429"}, "rate_limited", True),
        ({"message": "m", "code": 400}, "invalid_request", False),
        ({"message": "m", "type": "overloaded_error"}, "overloaded", True),
        ({"error": {"message": "m", "code": "context_length_exceeded"}}, "context_overflow", False),
        ({"error_type": "x", "error_message": "prompt is too long"}, "context_overflow", False),
        (["odd"], "provider_error", True),
        (None, "provider_error", True),
    ],
)
def test_an_error_object_is_read_in_any_shape(value, code, is_retryable):
    error = failure_of_object("api.test", value)

    assert isinstance(error, ProviderError)
    assert (error.code, error.is_retryable) == (code, is_retryable)
