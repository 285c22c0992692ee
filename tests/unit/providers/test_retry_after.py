from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_server import load_case

from littleghost.providers.retry_after import advised_s, retry_after_s

CASE = load_case("retry-after-forms")
NOW = datetime.fromisoformat(CASE["input"]["now"])
# Waits that the policy does not sleep through are still read.
LONG = {"86400": 86400.0, "360": 360.0}


def wanted(row):
    wait = row["wait_s"]
    if not isinstance(wait, str):
        return float(wait)
    if wait.startswith("own backoff"):
        return None
    return 86400.0 if "retry-after" in row["headers"] else 360.0


@pytest.mark.parametrize("row", CASE["input"]["rows"], ids=lambda row: str(row["headers"]))
def test_a_hint_is_read_in_every_form(row):
    assert retry_after_s(row["headers"], NOW) == pytest.approx(wanted(row))


def test_names_of_headers_may_be_in_any_case():
    assert retry_after_s({"Retry-After": "3"}, NOW) == 3


def test_a_date_is_measured_by_the_clock_of_the_server():
    headers = {
        "Date": "Thu, 15 Jan 2026 12:00:00 GMT",
        "Retry-After": "Thu, 15 Jan 2026 12:00:09 GMT",
    }

    assert retry_after_s(headers, NOW) == 9


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"x-ratelimit-reset": "1768471205000"}, 5.0),
        ({"x-ratelimit-reset": "1768471205"}, 5.0),
        ({"x-ratelimit-reset-tokens": "1h0m1s"}, 3601.0),
        (
            {
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "60s",
                "x-ratelimit-remaining-tokens": "999",
            },
            2.0,
        ),
        ({"retry-after": "soon", "x-ratelimit-reset-tokens": "4s"}, 4.0),
    ],
)
def test_reset_times_are_used_when_nothing_better_is_there(headers, wait):
    assert retry_after_s(headers, NOW) == pytest.approx(wait)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "retry-after",
                "retry-after-ms",
                "date",
                "x-ratelimit-reset-tokens",
                "anthropic-ratelimit-tokens-reset",
                "x-ratelimit-reset",
            ]
        ),
        st.text(max_size=30) | st.floats().map(str) | st.datetimes().map(str),
    )
)
def test_no_header_makes_it_raise(headers):
    wait = retry_after_s(headers, datetime.now(UTC))

    assert wait is None or wait > 0


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("Rate limit reached. Please try again in 2s.", 2.0),
        ("Please try again in 1m2.5s. Visit", 62.5),
        ("try again in 250ms", 0.25),
        ("Please retry in 39.5s", 39.5),
        ("try again in a while", None),
    ],
)
def test_advice_in_words_is_read(text, wait):
    assert advised_s(text) == wait
