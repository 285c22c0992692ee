"""Real pools: prefork children with their own connections, one slot shared by many waits (P3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from littleghost import Run
from littleghost.errors import JournalUnavailableError
from tests.faults.fleet import wait_until
from tests.integration.processes import QUIET, Site, site
from tests.integration.scripted import kinds, results
from tests.integration.site_app import SiteAgent

pytestmark = [pytest.mark.redis, pytest.mark.worker]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One slot for turns, four prefork children for tools."""
    with site(tmp_path_factory.mktemp("site")) as made:
        turns = made.worker("-Q", "lg.turns", "-P", "threads", "-c", "1", *QUIET)
        tools = made.worker("-Q", "lg.tools,lg.gpu", "-P", "prefork", "-c", "4", *QUIET)
        turns.wait_ready()
        tools.wait_ready()
        yield made


def traces(fleet: Site) -> list[str]:
    path = fleet.directory / "traces.txt"
    return path.read_text().splitlines() if path.exists() else []


def clients(fleet: Site) -> int:
    with fleet.redis.client() as client:
        return int(client.info("clients")["connected_clients"])


def test_a_run_that_waits_for_a_retry_leaves_the_only_slot_to_others(fleet: Site) -> None:
    """P3."""
    waiting = SiteAgent.enqueue("flaky")
    wait_until(lambda: "flaky" in traces(fleet), "the first request failed")
    for number in range(5):
        assert SiteAgent.ask(f"say {number}").response == str(number)
    assert not waiting.is_finished
    assert waiting.wait(20).response == "at last"
    assert kinds(waiting).count("model_retry") == 1


def test_a_run_that_waits_for_its_tools_leaves_the_only_slot_to_others(fleet: Site) -> None:
    waiting = [SiteAgent.enqueue(f"gated gate-{number}") for number in range(4)]
    wait_until(
        lambda: sum(line.startswith("hold gate-") for line in traces(fleet)) == 4,
        "all children are held",
    )
    assert SiteAgent.ask("say other").response == "other"
    for number in range(4):
        (fleet.directory / f"gate-{number}").touch()
    assert [run.wait(20).response for run in waiting] == ["through"] * 4


def test_a_tool_in_a_child_is_interrupted_at_its_time_limit(fleet: Site) -> None:
    """The code never looks at its cancellation; the child lives on and works again."""
    run = SiteAgent.ask("endless")
    assert results(run) == [("error", "The tool did not finish within 0.3 s.")]
    children = {SiteAgent.ask(f"echo {n}").response.rpartition(" ")[2] for n in range(8)}
    assert len(children) <= 4
    tools = fleet.workers[1]
    assert tools.process.poll() is None
    assert "died" not in tools.text()


def test_a_tool_runs_where_its_queue_is_served(fleet: Site) -> None:
    assert SiteAgent.ask("render").response.startswith("rendered by ")


def test_children_of_a_pool_do_not_mix_up_each_others_answers(fleet: Site) -> None:
    """The client was used before the fork; 25 runs with 8 calls each, in four children."""
    before = clients(fleet)
    runs = [(number, SiteAgent.enqueue(f"many nonce-{number}")) for number in range(25)]
    children = set()
    for number, run in runs:
        told = [text for _, text in results(run.wait(60))]
        assert [text.partition(" ")[0] for text in told] == [
            f"nonce-{number}-{call}" for call in range(8)
        ]
        children.update(text.rpartition(" ")[2] for text in told)
    assert 1 < len(children) <= 4
    wait_until(lambda: clients(fleet) <= before + 10, "connections are as many as before")


def test_requests_on_fresh_threads_leave_no_connections_behind(fleet: Site) -> None:
    """A web process: 500 requests, each on a thread of its own, at most 50 at once."""
    before = clients(fleet)
    slots = threading.Semaphore(50)
    answers: dict[int, str] = {}

    def request(number: int) -> None:
        with slots:
            answers[number] = SiteAgent.ask(f"say nonce-{number}").response

    threads = [threading.Thread(target=request, args=(number,)) for number in range(500)]
    for thread in threads:
        thread.start()
    most = clients(fleet)
    for thread in threads:
        thread.join(60)
        most = max(most, clients(fleet))

    assert answers == {number: f"nonce-{number}" for number in range(500)}
    assert most <= before + 120
    wait_until(lambda: clients(fleet) <= before + 10, "connections are as many as before", 2)


def test_many_async_waits_in_one_loop_and_then_in_another(fleet: Site) -> None:
    before = clients(fleet)

    async def ask(number: int) -> str:
        return (await SiteAgent.aask(f"say nonce-{number}")).response

    async def ask_all() -> list[str]:
        return await asyncio.gather(*[ask(number) for number in range(200)])

    for _ in range(2):
        assert asyncio.run(ask_all()) == [f"nonce-{number}" for number in range(200)]
    wait_until(lambda: clients(fleet) <= before + 10, "connections are as many as before")


def test_an_async_wait_survives_a_restart_of_redis(tmp_path: Path) -> None:
    with site(tmp_path) as made:
        made.worker("-Q", "lg.turns", "-P", "threads", "-c", "2", *QUIET).wait_ready()
        runs = [SiteAgent.enqueue("hold gate") for _ in range(2)]
        wait_until(lambda: traces(made).count("hold gate") == 2, "both are held")

        async def wait_all() -> list[Run]:
            waits = [asyncio.create_task(run.wait_async(60)) for run in runs]
            await asyncio.to_thread(restart)
            return await asyncio.gather(*waits)

        def restart() -> None:
            with made.redis.client() as client:
                client.config_set("appendfsync", "always")
            made.redis.kill()
            # Refused so often that every waiter has met the outage as well.
            for _ in range(20):
                with pytest.raises(JournalUnavailableError):
                    Run.get(runs[0].id)
            made.redis.start()
            (made.directory / "gate").touch()

        assert [run.outcome for run in asyncio.run(wait_all())] == ["completed"] * 2
