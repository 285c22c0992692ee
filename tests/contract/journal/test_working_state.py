"""Working state: operations in the journal give what they give in Python, on any data."""

import json
import math
from typing import Any

import hypothesis.strategies as st
import pytest
import redis
from hypothesis import HealthCheck, given, settings

from littleghost.engine import commands as c
from littleghost.state import State, apply_operations
from littleghost.usage import Usage
from tests.support.checks import check_journal
from tests.support.direct import (
    PARTITIONS,
    answer,
    batch,
    begin,
    fields_of,
    journal_of,
    result,
    take,
)

pytestmark = pytest.mark.redis

keys = st.sampled_from(["a", "b", "ключ", "with space", "x" * 256])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=8)
    | st.floats(-1e9, 1e9, allow_nan=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
amounts = st.integers(-(10**12), 10**12) | st.floats(-1e6, 1e6)
operations = st.one_of(
    st.fixed_dictionaries({"op": st.just("set"), "key": keys, "value": values}),
    st.fixed_dictionaries({"op": st.just("append"), "key": keys, "value": values}),
    st.fixed_dictionaries({"op": st.just("delete"), "key": keys}),
    st.fixed_dictionaries({"op": st.just("increment"), "key": keys, "by": amounts}),
)


def apply(client: redis.Redis, run_id: str, changes: list[Any]) -> dict[str, Any]:
    """Commit operations and read the state."""
    journal = journal_of(client)
    begin(journal, run_id)
    lease = take(journal, run_id)
    assert journal.commit(lease, [c.ChangeState(changes), c.TryAgain(1, 1)]).recorded
    name = f"{journal.place(run_id)[0]}:s:0"
    return {key: json.loads(value) for key, value in client.hgetall(name).items()}


def same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool) or not isinstance(left, int | float):
        return left == right
    return isinstance(right, int | float) and math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-9)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(operations, max_size=8))
def test_the_journal_applies_operations_as_python_does(
    client: redis.Redis, changes: list[Any]
) -> None:
    client.flushall()
    found = apply(client, "00-1", changes)
    expected = apply_operations({}, changes)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert same(value, found[key]), (key, value, found[key])


@pytest.mark.parametrize(
    ("start", "by", "expected"),
    [
        (0, 1, 1),
        (10**14, 1, 10**14 + 1),
        (10**15, 1, 10**15 + 1),
        (2**53, 1, 2**53 + 1),
        (10**17, 7, 10**17 + 7),
        (-(10**17), -7, -(10**17) - 7),
        (10**18, 1, 10**18),
        (1.5, 1, 2.5),
        (0.1, 0.2, 0.1 + 0.2),
        (-0.0, 1, 1),
        ("text", 2, 2),
        (True, 2, 2),
        ([1], 2, 2),
        ({}, 2, 2),
        (None, 2, 2),
        (1e308, 1e308, 1e308),
        (5, 10**400, 5),
        (10**400, 1, None),
    ],
)
def test_numbers_are_exact_or_at_least_numbers(
    client: redis.Redis, start: Any, by: Any, expected: Any
) -> None:
    changes = [
        {"op": "set", "key": "n", "value": start},
        {"op": "increment", "key": "n", "by": by},
    ]
    found = apply(client, "00-1", changes)["n"]
    assert isinstance(found, int | float)
    assert expected is None or math.isclose(found, expected, rel_tol=1e-15)
    if isinstance(expected, int) and abs(expected) < 10**18:
        assert found == expected
    check_journal(client, PARTITIONS)


def test_what_tools_do_at_the_same_time_adds_up(client: redis.Redis) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    journal.commit(take(journal, "00-1"), [*answer("a"), batch(0, 8)])
    leases = [take(journal, "00-1", f"0-c0.{number}") for number in range(8)]
    for number, lease in enumerate(leases):
        state = State({key: json.loads(value) for key, value in lease.working.items()})
        state.increment("count", 2)
        state.append("seen", number)
        changes = [*state.operations]
        for _ in range(2):
            # The second call is stale and changes nothing.
            journal.commit(lease, [c.ChangeState(changes), *result("r")])
    lease = take(journal, "00-1", "0-t1")
    assert json.loads(lease.working["count"]) == 16
    assert sorted(json.loads(lease.working["seen"])) == list(range(8))


@pytest.mark.parametrize("amount", [1.5, -3, True, "many", 10**30, float("inf"), None])
def test_odd_counts_of_a_provider_do_not_break_a_commit(client: redis.Redis, amount: Any) -> None:
    journal = journal_of(client)
    begin(journal, "00-1")
    usage = Usage(input=amount, output=3)
    assert journal.commit(take(journal, "00-1"), [c.AddUsage(usage), c.TryAgain(1, 1)]).recorded
    assert json.loads(fields_of(journal, "00-1")["u:0"])["output"] == 3
    check_journal(client, PARTITIONS)
