"""Merging the two streams of a run: in order, whole, and never past what one of them hides."""

import json

import hypothesis.strategies as st
from hypothesis import given, settings

from littleghost.journal import tail
from littleghost.journal.tail import read_page


def entry(number: int) -> tuple[str, dict[str, str]]:
    return f"{number}-0", {"e": json.dumps({"type": "x", "n": number})}


def page_of(durable: list[int], live: list[int], after: int, size: int) -> list[int]:
    rows = [
        (name, [entry(number) for number in numbers if number > after][:size])
        for name, numbers in (("e", durable), ("d", live))
    ]
    return [number for number, _ in read_page([row for row in rows if row[1]])]


@settings(max_examples=300)
@given(kinds=st.lists(st.booleans(), max_size=40), size=st.integers(1, 6))
def test_every_event_is_read_once_and_in_order(kinds: list[bool], size: int) -> None:
    before, tail.PAGE = tail.PAGE, size
    try:
        durable = [number for number, is_live in enumerate(kinds, 1) if not is_live]
        live = [number for number, is_live in enumerate(kinds, 1) if is_live]
        seen: list[int] = []
        while len(seen) < len(kinds):
            page = page_of(durable, live, seen[-1] if seen else 0, size)
            assert page
            seen += page
    finally:
        tail.PAGE = before
    assert seen == list(range(1, len(kinds) + 1))


def test_no_answer_is_no_event() -> None:
    assert read_page(None) == []
    assert read_page([]) == []
