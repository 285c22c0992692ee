"""Live text: joined, appended in order, in the current attempt's name only, never lost or twice."""

import threading
from collections.abc import Iterator

import pytest
import redis

from littleghost import Agent, Run, registry, wiring
from littleghost.engine.ports import Lease
from littleghost.errors import CancelledError, JournalUnavailableError, StaleAttemptError
from littleghost.journal.connection import connect
from littleghost.journal.live import LiveEvents, Writer
from littleghost.providers.base import CallControl
from littleghost.providers.registry import Models
from littleghost.settings import Settings
from littleghost.wiring import Runtime
from tests.faults.proxy import Proxy
from tests.support.redis_server import Server

pytestmark = pytest.mark.redis


class PromptedLive(LiveEvents):
    """Appends when the test says so: no thread of its own."""

    def touch(self, writer: Writer, *, at_once: bool) -> None:
        del at_once
        self._dirty.add(writer)


@pytest.fixture
def work(redis_server: Server, client: redis.Redis) -> Iterator[Runtime]:
    before, known = wiring._current, dict(registry._assemblies)
    models = Models({})
    models.connect("live", "scripted", script=["never"])
    made = Runtime(Settings(redis_url=redis_server.url, partitions=1), models, is_embedded=True)
    made.become_worker("one", ())
    wiring._current = made
    yield made
    made.close()
    wiring._current = before
    registry._assemblies.clear()
    registry._assemblies.update(known)


@pytest.fixture
def run(work: Runtime) -> Run:
    return type("LiveAgent", (Agent,), {"model": "live:m"}).enqueue("Go")


@pytest.fixture
def lease(work: Runtime, run: Run) -> Lease:
    found = work.journal.claim(run.id, "0-t0")
    assert found is not None
    return found


@pytest.fixture
def live(work: Runtime) -> PromptedLive:
    work.journal.scripts.load()
    return PromptedLive(work.journal, lambda: StaleAttemptError("another has it"))


def stored(work: Runtime, run: Run) -> list[tuple[str, dict]]:
    page = work.tail(run.id).read(0, None)
    return [(event["type"], event.get("d", {})) for _, event in page][2:]


def test_adjacent_pieces_of_one_text_become_one_event(
    live: PromptedLive, work: Runtime, run: Run, lease: Lease
) -> None:
    writer = live.open(lease, CallControl())
    for kind, data in [
        ("text_delta", {"text": "a"}),
        ("text_delta", {"text": "b"}),
        ("reasoning_delta", {"text": "c"}),
        ("text_delta", {"text": "d"}),
        ("tool_call_delta", {"index": 0, "arguments": "{"}),
        ("tool_call_delta", {"index": 0, "arguments": "}"}),
        ("tool_call_delta", {"index": 1, "arguments": "[]"}),
        ("usage", {"usage": {}}),
        ("usage", {"usage": {}}),
    ]:
        writer.add(kind, data)
    live.flush()
    assert stored(work, run) == [
        ("text_delta", {"text": "ab"}),
        ("reasoning_delta", {"text": "c"}),
        ("text_delta", {"text": "d"}),
        ("tool_call_delta", {"index": 0, "arguments": "{}"}),
        ("tool_call_delta", {"index": 1, "arguments": "[]"}),
        ("usage", {"usage": {}}),
        ("usage", {"usage": {}}),
    ]


def test_the_callers_data_is_not_changed(live: PromptedLive, lease: Lease) -> None:
    data = {"text": "a"}
    writer = live.open(lease, CallControl())
    writer.add("text_delta", data)
    writer.add("text_delta", {"text": "b"})
    assert data == {"text": "a"}
    assert [emit.data for emit in writer.rest()] == [{"text": "ab"}]


def test_what_was_appended_is_no_part_of_the_rest(
    live: PromptedLive, work: Runtime, run: Run, lease: Lease
) -> None:
    writer = live.open(lease, CallControl())
    writer.add("text_delta", {"text": "first "})
    live.flush()
    live.flush()
    writer.add("text_delta", {"text": "second"})
    rest = writer.rest()

    assert stored(work, run) == [("text_delta", {"text": "first "})]
    assert [(emit.type, emit.data, emit.live) for emit in rest] == [
        ("text_delta", {"text": "second"}, True)
    ]
    writer.add("text_delta", {"text": "too late"})
    live.flush()
    assert len(stored(work, run)) == 1
    assert not writer.hold()


def test_text_of_a_lost_attempt_is_refused_and_the_attempt_is_cut(
    live: PromptedLive, work: Runtime, run: Run, lease: Lease
) -> None:
    """P2."""
    control = CallControl()
    writer = live.open(lease, control)
    assert work.journal.release(run.id, "0-t0", "one", lost=True)
    writer.add("text_delta", {"text": "stale"})
    live.flush()
    with pytest.raises(StaleAttemptError):
        control.check()
    assert [kind for kind, _ in stored(work, run)] == ["model_retry"]


def test_text_of_a_stopped_run_is_refused_and_the_attempt_is_cut(
    live: PromptedLive, work: Runtime, run: Run, lease: Lease
) -> None:
    """P6: the second way in which a running turn hears of a cancel."""
    control = CallControl()
    writer = live.open(lease, control)
    run.cancel()
    writer.add("text_delta", {"text": "stale"})
    live.flush()
    with pytest.raises(CancelledError):
        control.check()


def test_scripts_that_redis_forgot_lose_no_text(
    live: PromptedLive, work: Runtime, run: Run, lease: Lease, client: redis.Redis
) -> None:
    writer = live.open(lease, CallControl())
    writer.add("text_delta", {"text": "kept"})
    client.script_flush()
    live.flush()
    live.flush()
    assert stored(work, run) == [("text_delta", {"text": "kept"})]


def test_many_threads_write_and_every_piece_comes_once_and_in_order(
    work: Runtime, run: Run, lease: Lease
) -> None:
    """With the real thread: what it did not append comes with the rest."""
    live = LiveEvents(work.journal, lambda: StaleAttemptError("another has it"))
    writer = live.open(lease, CallControl())

    def write(index: int) -> None:
        for number in range(200):
            writer.add("tool_call_delta", {"index": index, "arguments": f"{number},"})

    threads = [threading.Thread(target=write, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    rest = [(emit.type, dict(emit.data)) for emit in writer.rest()]
    told = [*stored(work, run), *rest]
    for index in range(4):
        text = "".join(data["arguments"] for _, data in told if data["index"] == index)
        assert text == "".join(f"{number}," for number in range(200))


@pytest.fixture
def proxy(redis_server: Server, work: Runtime) -> Iterator[Proxy]:
    """What the journal writes to goes through a proxy."""
    made = Proxy(redis_server.url.removeprefix("unix://").partition("?")[0])
    client = connect(f"redis://127.0.0.1:{made.port}/0")
    work.journal.client, work.journal.scripts._client = client, client
    yield made
    client.close()
    made.close()


def lose_answer(live: PromptedLive, writer: Writer, proxy: Proxy, text: str) -> None:
    """Have text appended whose answer never comes, however often it is asked for."""
    writer.add("text_delta", {"text": text})
    proxy.set("swallow")
    with pytest.raises(JournalUnavailableError):
        live.flush()
    proxy.set("pass")


def test_an_append_whose_answer_was_lost_is_not_made_again(
    live: PromptedLive, proxy: Proxy, work: Runtime, run: Run, lease: Lease
) -> None:
    """P2: also when more text has come meanwhile."""
    writer = live.open(lease, CallControl())
    lose_answer(live, writer, proxy, "once ")
    assert len(stored(work, run)) == 1
    writer.add("text_delta", {"text": "and more"})
    live.flush()
    live.flush()
    assert [data["text"] for _, data in stored(work, run)] == ["once ", "and more"]
    assert writer.rest() == []


def test_a_commit_does_not_append_again_what_may_be_there(
    live: PromptedLive, proxy: Proxy, work: Runtime, run: Run, lease: Lease
) -> None:
    writer = live.open(lease, CallControl())
    lose_answer(live, writer, proxy, "once ")
    writer.add("text_delta", {"text": "and more"})
    work.journal.commit(lease, writer.rest())
    assert [data["text"] for _, data in stored(work, run)] == ["once ", "and more"]


def test_a_commit_appends_what_did_not_get_through(
    live: PromptedLive, proxy: Proxy, work: Runtime, run: Run, lease: Lease
) -> None:
    writer = live.open(lease, CallControl())
    writer.add("text_delta", {"text": "lost?"})
    proxy.set("refuse")
    work.journal.client.connection_pool.disconnect()
    with pytest.raises(JournalUnavailableError):
        live.flush()
    proxy.set("pass")
    assert stored(work, run) == []
    work.journal.commit(lease, writer.rest())
    assert [data["text"] for _, data in stored(work, run)] == ["lost?"]
