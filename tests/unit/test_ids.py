"""Run ids name their partition, sort by time and go safely into keys, logs and URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from littleghost.errors import InvocationError
from littleghost.ids import (
    MAX_PARTITIONS,
    check_run_id,
    hash_partition,
    new_run_id,
    partition_of,
    place_run,
)

partition_counts = st.integers(1, MAX_PARTITIONS)
own_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}", fullmatch=True)


@given(partition_counts.flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_a_new_id_is_legal_and_names_its_partition(pair: tuple[int, int]) -> None:
    partitions, partition = pair
    run_id = new_run_id(partition)
    assert check_run_id(run_id) == run_id
    assert len(run_id) == 29
    assert partition_of(run_id, partitions) == partition


def test_new_ids_differ_and_sort_by_time() -> None:
    ids = [new_run_id(3) for _ in range(1000)]
    assert len(set(ids)) == 1000
    stamps = [run_id[:13] for run_id in ids]
    assert stamps == sorted(stamps)


@given(own_ids, partition_counts)
def test_any_legal_id_has_one_partition(run_id: str, partitions: int) -> None:
    assert 0 <= partition_of(run_id, partitions) < partitions
    assert partition_of(run_id, partitions) == partition_of(run_id, partitions)


def test_a_prefix_beyond_the_partitions_is_only_text() -> None:
    assert partition_of("07-x", 8) == 7
    assert partition_of("07-x", 4) == hash_partition("07-x", 4)
    assert partition_of("07", 8) == hash_partition("07", 8)


@given(st.none() | own_ids, st.none() | st.text(min_size=1, max_size=40), partition_counts)
def test_a_run_shares_the_partition_of_its_session(
    run_id: str | None, session_id: str | None, partitions: int
) -> None:
    placed, partition = place_run(run_id, session_id, partitions)
    assert partition_of(placed, partitions) == partition
    if session_id is not None:
        assert partition == hash_partition(session_id, partitions)
    if run_id is not None:
        assert placed.endswith(run_id)
        assert place_run(run_id, session_id, partitions) == (placed, partition)


@pytest.mark.parametrize(
    "bad",
    ["", " ", "a b", "-a", ".a", "a/b", "a{b}", "a|b", "a:e", "a\n", "ü", "a" * 129, None, 5, b"a"],
)
def test_an_id_that_keys_could_not_carry_is_refused(bad: object) -> None:
    with pytest.raises(InvocationError, match="run_id") as caught:
        check_run_id(bad)
    assert caught.value.field == "run_id"
