"""Readers of a run's events: they resume anywhere, agree, and can do no harm (P5)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from littleghost import Run, StreamEvent, tool
from littleghost.providers.scripted import Reply
from littleghost.wiring import Runtime
from tests.integration.scripted import Gate, calls, kinds, make_agent, until

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return f"about {topic}"


def two_turns() -> type:
    return make_agent(
        [
            Reply(
                text="I look.",
                reasoning="hm",
                tool_calls=calls(("look_up", {"topic": "a"})).tool_calls,
            ),
            Reply(text="It is so.", chunk_chars=3),
        ],
        look_up,
    )


def test_events_resume_behind_every_event() -> None:
    run = two_turns().ask("Go")
    events = list(run.events())

    assert [int(event.id) for event in events] == list(range(1, len(events) + 1))
    for position, event in enumerate(events):
        assert list(run.events(after=event.id)) == events[position + 1 :]
    assert list(run.events(after=0)) == events


def test_the_events_of_a_turn_come_in_their_documented_order() -> None:
    run = two_turns().ask("Go")

    assert kinds(run) == [
        "run_start",
        "invocation_start",
        "model_start",
        "message_start",
        "reasoning_delta",
        "text_delta",
        "tool_call_start",
        "tool_call_delta",
        "tool_call_stop",
        "usage",
        "model_stop",
        "tool_start",
        "tool_stop",
        "model_start",
        "message_start",
        "text_delta",
        "usage",
        "model_stop",
        "invocation_stop",
        "run_stop",
    ]


def test_agent_events_are_wrapped_with_their_source_and_hold_the_documented_data() -> None:
    agent = two_turns()
    run = agent.ask("Go", session_id="thread-of-events")
    by_kind: dict[str, StreamEvent] = {event.inner_type: event for event in run.events()}
    inner = {kind: event.inner["data"] for kind, event in by_kind.items()}

    for kind, event in by_kind.items():
        is_raw = kind in ("run_start", "invocation_stop", "run_stop")
        assert (event.type != "agent_stream") == is_raw, kind
        if not is_raw:
            source = event.data["source"]
            assert source["agent_id"] == agent.id()
            assert source["agent_path"] == [agent.id()]
            assert source["parent_operation_id"] is None
            assert source["assembly_path"] == []
    assert inner["run_start"] == {"run_id": run.id, "thread_id": "thread-of-events"}
    assert inner["invocation_start"] == {"agent_id": agent.id()}
    assert by_kind["invocation_start"].data["input"]["content"][0]["text"] == "Go"
    assert inner["model_start"] == {"turn": 1}
    assert inner["reasoning_delta"] == {"text": "hm"}
    assert inner["tool_start"]["tool_use"]["input"] == {"topic": "a"}
    assert inner["tool_stop"]["result"]["content"] == "about a"
    assert inner["tool_stop"]["tool_use"]["name"] == "look_up"
    assert inner["model_stop"]["response"]["message"]["content"][0]["text"] == "It is so."
    assert inner["invocation_stop"]["result"]["message"]["content"][0]["text"] == "It is so."
    assert inner["run_stop"]["outcome"] == "completed"
    assert inner["run_stop"]["response"] == "It is so."
    assert inner["run_stop"]["result"]["usage"] == run.usage.to_json()


def test_without_agent_events_only_the_wrappers_are_gone() -> None:
    run = two_turns().ask("Go", include_agent_events=False)
    assert [event.type for event in run.events()] == ["run_start", "invocation_stop", "run_stop"]
    ids = [event.id for event in run.events()]
    assert [event.id for event in run.events(after=ids[0])] == ids[1:]


def test_readers_that_start_at_different_times_see_the_same() -> None:
    gate = Gate()

    def script(_request: object) -> Reply:
        gate.enter()
        return Reply(text="one two three four", chunk_chars=2)

    run = make_agent(script).enqueue("Go")
    seen: dict[int, list[StreamEvent]] = {}

    def read(reader: int) -> None:
        seen[reader] = list(run.events())

    readers = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for reader in readers:
        reader.start()
    gate.wait_for(1)
    gate.open()
    for reader in readers:
        reader.join(20)

    late = list(run.events())
    assert all(events == late for events in seen.values())
    assert len(seen) == 4


class TestLeaving:
    """A reader that goes away cancels nothing, and attaches again where it was."""

    def going_on(self, gate: Gate) -> type:
        def script(request: object) -> Reply:
            if len(request.messages) > 2:  # type: ignore[attr-defined]
                return Reply(text="the end")
            return Reply(text="first words", tool_calls=calls("hold").tool_calls)

        @tool
        def hold() -> str:
            """Wait for the test."""
            gate.enter()
            return "held"

        return make_agent(script, hold)

    def test_closing_a_stream_goes_unnoticed_by_the_run(self) -> None:
        gate = Gate()
        stream = self.going_on(gate).stream_ask("Go")
        reader: Iterator[StreamEvent] = iter(stream)
        seen = [next(event for event in reader if event.text)]
        reader.close()  # type: ignore[attr-defined]
        gate.wait_for(1)
        gate.open()
        run = stream.run.wait(20)

        assert run.response == "the end"
        again = list(Run.get(run.id).events(after=seen[-1].id))
        assert again[0].id == str(int(seen[-1].id) + 1)
        assert again[-1].type == "run_stop"

    def test_half_of_many_async_readers_leave_and_their_connections_go(
        self, embedded: Runtime
    ) -> None:
        gate = Gate()
        run = self.going_on(gate).enqueue("Go")
        gate.wait_for(1)

        def connections() -> int:
            return int(embedded.client.info("clients")["connected_clients"])

        async def read(*, leaves: bool) -> list[str]:
            ids = []
            async for event in run.events_async():
                ids.append(event.id)
                if leaves and event.text:
                    break
            return ids

        async def watch_all() -> list[list[str]]:
            async with asyncio.TaskGroup() as group:
                leaving = [group.create_task(read(leaves=True)) for _ in range(20)]
                staying = [group.create_task(read(leaves=False)) for _ in range(20)]
                await asyncio.gather(*leaving)
                assert not any(task.done() for task in staying)
                gate.open()
            return [task.result() for task in staying]

        before = connections()
        staying = asyncio.run(watch_all())
        until(lambda: connections() <= before + 8, "the readers' connections are closed")

        expected = [event.id for event in run.events()]
        assert staying == [expected] * 20
        assert run.wait(20).response == "the end"

    def test_cancelling_an_async_wait_leaves_the_run_alone(self) -> None:
        gate = Gate()
        run = self.going_on(gate).enqueue("Go")
        gate.wait_for(1)

        async def give_up() -> None:
            waiting = asyncio.create_task(run.wait_async())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

        asyncio.run(give_up())
        gate.open()
        assert run.wait(20).response == "the end"

    def test_leaving_at_the_last_event_is_harmless(self) -> None:
        run = two_turns().enqueue("Go")
        for event in run.events():
            if event.type == "invocation_stop":
                break
        assert run.wait(20).outcome == "completed"
        rest = list(run.events(after=event.id))
        assert [item.type for item in rest] == ["run_stop"]
        assert list(run.events(after=rest[-1].id)) == []
