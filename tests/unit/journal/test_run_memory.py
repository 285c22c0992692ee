"""What a process remembers of runs: bounded, counted right, and never mixed up."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from littleghost.journal.memory import Memories

INVOCATION = json.dumps({"run_id": "x"})
RECORD = json.dumps({"role": "user", "content": "hello"})


def remember(memories: Memories, run_id: str, created: str = "1") -> Any:
    return memories.recall(run_id, created, INVOCATION, None)


def counted(memories: Memories) -> int:
    return sum(memory.size_bytes for memory in memories._runs.values())


def test_a_run_is_remembered_until_it_is_forgotten() -> None:
    memories = Memories()
    first = remember(memories, "a")
    assert memories.get("a") is first
    assert memories.recall("a", "1", "", first) is first
    memories.forget("a")
    assert memories.get("a") is None
    assert memories._bytes == 0


def test_an_answer_goes_on_from_what_was_told_though_it_was_forgotten_meanwhile() -> None:
    memories = Memories(max_runs=1)
    told = remember(memories, "a")
    memories.extend("a", told, "0", 0, [RECORD] * 3)
    remember(memories, "b")
    assert memories.get("a") is None

    again = memories.recall("a", "1", "", told)

    assert again is told
    assert len(again.lists["0"]) == 3
    assert memories._bytes == counted(memories)


def test_a_new_invocation_begins_anew() -> None:
    memories = Memories()
    old = remember(memories, "a", "1")
    memories.extend("a", old, "0", 0, [RECORD])
    new = memories.recall("a", "2", INVOCATION, old)
    assert new is not old
    assert (new.created, new.lists) == ("2", {})


def test_the_least_recently_used_goes_first() -> None:
    memories = Memories(max_runs=2)
    first = remember(memories, "a")
    remember(memories, "b")
    memories.recall("a", "1", "", first)
    remember(memories, "c")
    assert list(memories._runs) == ["a", "c"]


@pytest.mark.parametrize("size", [100, 1_000, 10_000])
def test_the_bound_on_bytes_holds_whatever_is_in_use(size: int) -> None:
    memories = Memories(max_runs=50, max_bytes=20_000)
    text = json.dumps({"role": "user", "content": "x" * size})
    in_use = [remember(memories, str(number)) for number in range(20)]
    for _ in range(3):
        for number, memory in enumerate(in_use):
            memories.extend(str(number), memory, "0", len(memory.lists.get("0", [])), [text])
    assert memories._bytes == counted(memories)
    remember(memories, "last")
    assert memories._bytes == counted(memories)
    assert memories._bytes <= 20_000


def test_what_was_cut_off_is_read_again() -> None:
    memories = Memories()
    memory = remember(memories, "a")
    memories.extend("a", memory, "0", 0, [RECORD] * 5)
    memories.extend("a", memory, "0", 3, [RECORD])
    assert len(memory.lists["0"]) == 4


def test_results_of_composites_are_plain_data() -> None:
    memories = Memories()
    memory = remember(memories, "a")
    memories.extend("a", memory, "0", 0, ['{"output":1}', "[1]", "null"])
    assert memory.lists["0"] == [{"output": 1}, [1], None]


def test_the_end_of_a_run_forgets_it() -> None:
    for fields, participant, stays in (
        ({"f": 1}, "0", False),
        ({"done": 1}, "0", False),
        ({"done": 1}, "0.1", True),
    ):
        memories = Memories()
        memory = remember(memories, "a")
        lease = SimpleNamespace(run_id="a", participant=participant, memory=memory, records=[])
        plan = SimpleNamespace(fields=fields, appended=[], payloads=[])
        memories.append(lease, plan, -1)
        assert (memories.get("a") is not None) == stays


@pytest.mark.parametrize(
    ("length", "known"),
    [(4, 4), (5, 2), (3, 2), (-1, 2)],
    ids=["in place", "something came before", "read by another already", "not known"],
)
def test_what_a_commit_appended_is_put_where_the_journal_has_it(length: int, known: int) -> None:
    """Another thread of the process may read on before this one hears that it was recorded."""
    memories = Memories()
    memory = remember(memories, "a")
    memories.extend("a", memory, "0", 0, ["1", "2"])
    records = memory.lists["0"]
    lease = SimpleNamespace(run_id="a", participant="0", memory=memory, records=records)
    plan = SimpleNamespace(fields={}, appended=[3, 4], payloads=["3", "4"])
    memories.append(lease, plan, length)
    assert len(records) == known
    assert memories._bytes == counted(memories)
