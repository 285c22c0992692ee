"""Following a run: nothing missed, nothing twice, from any position, however much there is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis

from littleghost.events import StreamEvent
from littleghost.journal.connection import servers
from littleghost.journal.store import LIVE_TURNS
from littleghost.journal.tail import PAGE
from littleghost.messages import Message
from littleghost.run import Run
from tests.support.cast import Clerk
from tests.support.redis_server import wait_until
from tests.support.world import World

pytestmark = pytest.mark.redis


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have readers wait briefly for events that do not come."""
    monkeypatch.setattr("littleghost.watch.BLOCK_MS", 20)


def told(events: list[StreamEvent]) -> list[dict[str, Any]]:
    return [event.to_json() for event in events]


def speak(world: World, run_id: str, pieces: int) -> None:
    """Have the first turn say much, piece by piece, and end."""
    journal = world.workers[0].runtime.journal
    lease = journal.claim(run_id, "0-t0")
    assert lease is not None
    text = '{"type":"text_delta","p":"0","d":{"text":"%d,"}}'
    for start in range(0, pieces, 50):
        numbers = range(start, min(start + 50, pieces))
        assert journal.emit(lease, [text % number for number in numbers])
    journal.release(run_id, "0-t0", "w0")


@pytest.mark.parametrize("pieces", [1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 7])
def test_a_long_stream_is_read_in_pages(world: World, pieces: int) -> None:
    run = Clerk.enqueue("text")
    speak(world, run.id, pieces)
    world.carry(run.id)

    events = list(run.events())

    numbers = [int(event.id) for event in events]
    assert numbers == list(range(1, run.record.events + 1))
    spoken = [event.text for event in events if event.inner_type == "text_delta"]
    assert "".join(spoken[:pieces]) == "".join(f"{number}," for number in range(pieces))
    assert [event.type for event in events if event.is_terminal] == ["run_stop"]
    assert events[-1].is_terminal


@pytest.mark.parametrize("text", ["parallel", "retry 1", "slow", "error"])
def test_reading_goes_on_behind_any_event(world: World, brief: None, text: str) -> None:
    run = Clerk.enqueue(text)
    speak(world, run.id, 300)
    world.carry(run.id)
    events = told(list(run.events()))
    for place in (0, 1, 2, 5, 100, 255, 256, 257, 300, len(events) - 2, len(events) - 1):
        rest = told(list(run.events(after=events[place]["id"])))
        assert rest == events[place + 1 :]


def test_reading_behind_the_end_gives_nothing(world: World, brief: None) -> None:
    run = Clerk.enqueue("text")
    world.carry(run.id)
    assert list(run.events(after=run.refresh().record.events)) == []
    assert list(run.events(after=10**9)) == []


def test_live_text_of_old_turns_goes_and_is_still_told(world: World) -> None:
    run = Clerk.enqueue("long")
    world.carry(run.id)
    events = list(run.events())
    spoken = [event.text for event in events if event.inner_type == "text_delta"]
    assert spoken == [f"Step {number}." for number in range(31 - LIVE_TURNS, 30)] + ["The end."]
    messages = [
        Message.from_json(event.inner["data"]["response"]["message"]).text
        for event in events
        if event.inner_type == "model_stop"
    ]
    assert messages == [f"Step {number}." for number in range(30)] + ["The end."]
    numbers = [int(event.id) for event in events]
    assert numbers == sorted(set(numbers))


def test_a_tool_call_is_told_with_its_input_and_its_result(world: World) -> None:
    run = Clerk.enqueue("parallel")
    world.carry(run.id)
    data = [event.inner["data"] for event in run.events() if event.inner_type == "tool_stop"]
    assert [one["tool_use"]["name"] for one in data] == ["charge", "fetch"]
    assert [one["result"]["content"] for one in data] == ["done charge 1", "done fetch 2"]
    started = [event.inner["data"] for event in run.events() if event.inner_type == "tool_start"]
    assert [one["tool_use"]["input"] for one in started] == [{"n": 1}, {"n": 2}]


def test_agent_events_may_be_left_out(world: World) -> None:
    run = Clerk.enqueue("parallel", include_agent_events=False)
    world.carry(run.id)
    kinds = [event.type for event in run.events()]
    assert kinds == ["run_start", "invocation_stop", "run_stop"]


@pytest.mark.parametrize("chain", [1, 16])
def test_readers_who_wait_miss_nothing(worlds: Callable[..., World], chain: int) -> None:
    """A reader that is woken by one of the two streams must still see the other's events."""
    world = worlds(in_place_max=chain)
    run = Clerk.enqueue("parallel", session_id="s")
    readers = [_Reader(run.id) for _ in range(4)]
    for reader in readers:
        reader.start()
    wait_until(lambda: _blocked(world.client) >= 4, "four readers wait for events")
    world.carry(run.id)
    for reader in readers:
        reader.join(20)
    expected = told(list(Run(run.id).events()))
    for reader in readers:
        assert reader.error is None
        assert [one["id"] for one in told(reader.seen)] == [one["id"] for one in expected]


def _blocked(client: redis.Redis) -> int:
    facts = [server.info("clients") for server in servers(client).values()]
    return sum(int(found["blocked_clients"]) for found in facts)


class _Reader(threading.Thread):
    """Follows a run on a connection of its own."""

    def __init__(self, run_id: str) -> None:
        super().__init__(daemon=True)
        self.run_id = run_id
        self.seen: list[StreamEvent] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.seen.extend(Run(self.run_id).events())
        except Exception as error:
            self.error = error
