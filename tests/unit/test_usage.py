"""Token counts add up, whatever a service sends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from littleghost import Usage
from littleghost.usage import BUCKETS

usages = st.builds(Usage, **{name: st.integers(0, 10**9) for name in BUCKETS})


@given(usages, usages)
def test_adding_adds_every_bucket(one: Usage, two: Usage) -> None:
    both = one + two
    assert all(getattr(both, n) == getattr(one, n) + getattr(two, n) for n in BUCKETS)
    assert both.total == one.total + two.total
    assert one + Usage() == one


@given(usages)
def test_the_json_form_reads_back_and_leaves_out_zeros(usage: Usage) -> None:
    data = usage.to_json()
    assert Usage.from_json(data) == usage
    assert 0 not in data.values()


@pytest.mark.parametrize(
    "bad",
    [-1, float("nan"), float("inf"), "5", None, True, [], {}, 1e300, object()],
)
def test_what_is_no_sensible_count_is_zero(bad: object) -> None:
    assert Usage.from_json({"input": bad, "output": 3}) == Usage(output=3)


def test_fractions_are_cut_and_unknown_buckets_ignored() -> None:
    assert Usage.from_json({"input": 2.9, "bananas": 7}) == Usage(input=2)
