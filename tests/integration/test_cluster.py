"""A fleet whose journal is on a Redis Cluster of three nodes, with a single Redis as its broker."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from littleghost import Run
from littleghost.errors import ConfigurationError, JournalUnavailableError
from littleghost.journal import keys
from littleghost.journal.connection import connect
from littleghost.journal.policy import check_policy
from littleghost.wiring import runtime
from tests.acceptance.processes import littleghost
from tests.faults.fleet import ROOT, RedisServer
from tests.integration.cluster_app import Clerk, Fan
from tests.integration.processes import QUIET, Site, site
from tests.integration.scripted import kinds, results, terminals, until
from tests.integration.site_app import SiteAgent
from tests.support.redis_cluster import Cluster, cluster_binary

pytestmark = [
    pytest.mark.redis,
    pytest.mark.worker,
    pytest.mark.skipif(cluster_binary() is None, reason="no Redis server can be started here"),
]
APP = "tests.integration.cluster_app"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(with_replica=True)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path_factory.mktemp("broker"))
    yield made
    made.kill()


@pytest.fixture(scope="module")
def fleet(
    cluster: Cluster, broker: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A threads worker for turns, and one that forks for calls."""
    urls = {"LITTLEGHOST_REDIS_URL": cluster.url, "LITTLEGHOST_BROKER_URL": broker.url}
    with site(tmp_path_factory.mktemp("site"), **urls) as made:
        made.worker("-Q", "lg.turns,lg.turns.batch", "-P", "threads", "-c", "24", *QUIET, app=APP)
        made.worker("-Q", "lg.tools,lg.tools.batch", "-P", "prefork", "-c", "2", *QUIET, app=APP)
        for worker in made.workers:
            worker.wait_ready()
        yield made


def waits(run: Run) -> None:
    def is_waiting() -> bool:
        assert not run.refresh().is_finished, run.error
        return run.status == "waiting"

    until(is_waiting, f"{run!r} waits")


def is_held(fleet: Site, gate: str) -> bool:
    path = fleet.directory / "traces.txt"
    return path.exists() and f"hold {gate}" in path.read_text().splitlines()


def test_an_agent_with_tools_is_streamed(fleet: Site) -> None:
    events = list(SiteAgent.stream_ask("many nonce"))
    numbers = [int(event.id) for event in events]
    assert numbers == sorted(set(numbers))
    assert [event.inner_type for event in events].count("tool_stop") == 8
    assert [event.type for event in events if event.is_terminal] == ["run_stop"]


def test_an_event_loop_streams_the_same(fleet: Site) -> None:
    async def follow() -> list[str]:
        return [event.inner_type async for event in SiteAgent.astream_ask("many nonce")]

    told = asyncio.run(follow())
    assert told.count("tool_stop") == 8
    assert told[-1] == "run_stop"


def test_a_workflow_runs_agents_at_once_and_takes_a_signal(fleet: Site) -> None:
    run = Fan.enqueue("go")
    waits(run)
    run.signal("go", "off")
    assert run.wait(30).response == "0 1 2 off", run.error


def test_a_session_goes_on_from_run_to_run(fleet: Site) -> None:
    runs = [Clerk.enqueue("hello", session_id="cluster") for _ in range(4)]
    told = [run.wait(30).response for run in runs]
    assert told == [f"asked {count} times" for count in range(1, 5)]


def test_a_cancel_reaches_a_call_and_a_turn(fleet: Site) -> None:
    for text in ("gated never-1", "hold never-2"):
        run = SiteAgent.enqueue(text)
        until(lambda text=text: is_held(fleet, text.partition(" ")[2]), text)
        started = time.monotonic()
        run.cancel("enough")
        assert run.wait(30).outcome == "cancelled"
        assert time.monotonic() - started < 5
        assert terminals(run) == ["run_cancel"]
    for number in (1, 2):
        (fleet.directory / f"never-{number}").touch()


def test_a_deadline_ends_a_run(fleet: Site) -> None:
    run = SiteAgent.enqueue("hold late", deadline_at=timedelta(seconds=1)).wait(30)
    assert run.error is not None
    assert run.error.code == "deadline_exceeded"
    (fleet.directory / "late").touch()


def test_a_person_allows_a_call(fleet: Site) -> None:
    run = Clerk.enqueue("refund")
    waits(run)
    [question] = run.pending
    run.approve(question.id, by="ana")
    assert run.wait(30).response == "paid 7", run.error


def test_a_failed_run_is_retried_and_forked(fleet: Site) -> None:
    run = Clerk.enqueue("fail").wait(30)
    assert run.outcome == "failed"
    (fleet.directory / "mended").touch()
    assert run.retry().wait(30).response == "asked 1 times"
    fork = run.fork(message="more", session_id="another-session")
    assert fork.wait(30).response == "asked 2 times", fork.error


def test_sixty_four_runs_at_once_use_every_node(fleet: Site, cluster: Cluster) -> None:
    runs = [SiteAgent.enqueue(f"many nonce-{number}") for number in range(64)]
    for number, run in enumerate(runs):
        told = [text.partition(" ")[0] for _, text in results(run.wait(60))]
        assert told == [f"nonce-{number}-{call}" for call in range(8)]
        assert terminals(run) == ["run_stop"]
    held = 0
    for node in cluster.nodes:
        with node.client() as client:
            names = {key.rpartition(":")[2] for key in client.scan_iter("lg:{*}:r:*", count=1000)}
        here = names & {run.id for run in runs}
        assert here, f"no run on {node.name}"
        held += len(here)
    assert held == 64
    assert {run.id for run in runs} <= {run_id for run_id, _ in runtime().records.recent(1000)}
    assert not runtime().records.live()


def _runs_in_every_partition(fleet: Site, gate: str) -> list[Run]:
    """Have a turn of a run at work in each partition."""
    names = [f"{number:02d}-{gate}" for number in range(runtime().settings.partitions)]
    runs = [SiteAgent.enqueue(f"hold {gate}", run_id=name) for name in names]
    assert len({runtime().journal.place(run.id)[1] for run in runs}) == len(runs)
    traces = fleet.directory / "traces.txt"
    until(lambda: traces.read_text().count(f"hold {gate}\n") >= len(runs), "every turn began")
    return runs


@pytest.mark.parametrize("number", [0, 1, 2])
def test_runs_go_on_when_a_node_was_killed_and_came_back(
    fleet: Site, cluster: Cluster, number: int
) -> None:
    """One of the three has the register of workers, one the keeper's lead, each some partitions."""
    gate = f"killed-{number}"
    runs = _runs_in_every_partition(fleet, gate)
    node = cluster.nodes[number]
    replica = cluster.replica
    if number == 0 and replica is not None:
        replica.kill()
    node.kill()
    if number == 1:
        # Long enough for the others to notice: then the whole cluster refuses commands.
        until(lambda: cluster.nodes[2].state() == "fail", "cluster_state:fail")
    (fleet.directory / gate).touch()
    node.start()
    if number == 0 and replica is not None:
        replica.start()
    cluster.wait()
    runs += [SiteAgent.enqueue(f"many {gate}-{n}") for n in range(8)]
    for run in runs:
        assert run.wait(60).outcome == "completed", run.error
        assert terminals(run) == ["run_stop"]


def test_runs_and_readers_go_on_when_a_replica_takes_over(fleet: Site, cluster: Cluster) -> None:
    """It knows no script, and its readers are sent away by the old one."""
    runs = _runs_in_every_partition(fleet, "failover")

    async def follow(run: Run) -> list[str]:
        return [event.inner_type async for event in run.events_async()]

    async def follow_all() -> list[list[str]]:
        followed = [asyncio.ensure_future(follow(run)) for run in runs]
        await asyncio.to_thread(cluster.fail_over)
        (fleet.directory / "failover").touch()
        return await asyncio.wait_for(asyncio.gather(*followed), 60)

    told = asyncio.run(follow_all())
    assert [each[-1] for each in told] == ["run_stop"] * len(runs)
    assert [kinds(run) for run in runs] == told
    more = [SiteAgent.enqueue(f"many after-{n}") for n in range(16)]
    assert {run.wait(60).outcome for run in more} == {"completed"}


def test_runs_go_on_when_a_node_is_lost_and_its_replica_elected(
    fleet: Site, cluster: Cluster
) -> None:
    runs = _runs_in_every_partition(fleet, "lost")
    cluster.lose()
    (fleet.directory / "lost").touch()
    runs += [SiteAgent.enqueue(f"many lost-{n}") for n in range(8)]
    for run in runs:
        assert run.wait(60).outcome == "completed", run.error
        assert terminals(run) == ["run_stop"]
    old = cluster.replica
    assert old is not None
    old.start()
    until(lambda: old.facts().get("master_link_status") == "up", "it follows the new one")
    cluster.wait()


def test_a_killed_worker_loses_nothing(fleet: Site) -> None:
    run = SiteAgent.enqueue("gated worker-gate")
    until(lambda: is_held(fleet, "worker-gate"), "the call began")
    fleet.workers[-1].kill()
    (fleet.directory / "worker-gate").touch()
    made = fleet.worker("-Q", "lg.tools", "-P", "threads", "-c", "4", *QUIET, app=APP)
    made.wait_ready()
    assert run.wait(30).response == "through"
    assert terminals(run) == ["run_stop"]


def test_doctor_looks_at_every_node(fleet: Site, cluster: Cluster) -> None:
    done = littleghost("doctor", "--runs", "--json", env=fleet.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = json.loads(done.stdout)["checks"]
    by_name = {
        name: [check for check in checks if check["name"] == name]
        for name in ("redis", "eviction", "replicas", "runs")
    }
    for name in ("redis", "eviction", "replicas"):
        told = " ".join(check["detail"] for check in by_name[name])
        assert all(node.name in told for node in cluster.nodes), told
    assert sorted(check["status"] for check in by_name["replicas"]) == ["ok", "warn", "warn"]
    assert "0 cannot end" in by_name["runs"][0]["detail"]


def test_a_node_that_evicts_is_refused(fleet: Site, cluster: Cluster) -> None:
    with cluster.nodes[2].client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(ConfigurationError, match=cluster.nodes[2].name):
                runtime().check_journal()
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    runtime().check_journal()


def test_a_url_that_does_not_say_cluster_is_refused(cluster: Cluster) -> None:
    client = connect(f"redis://{cluster.nodes[0].name}")
    with pytest.raises(ConfigurationError, match=r"redis\+cluster://"):
        check_policy(client)
    client.close()


def test_a_single_server_is_no_cluster(broker: RedisServer, tmp_path: Path) -> None:
    url = broker.url.replace("redis://", "redis+cluster://")
    with pytest.raises(JournalUnavailableError, match="Cluster mode is not enabled"):
        connect(url)


def test_reading_all_partitions_is_one_command_for_each_and_no_more(
    fleet: Site, cluster: Cluster
) -> None:
    """redis-py asks a server for the keys of some commands; a round trip for each is not spent."""
    work = runtime()
    work.records.recent(1)
    for node in cluster.nodes:
        with node.client() as client:
            client.config_resetstat()
    work.records.recent(5)
    work.records.live()
    work.keeper._sweep_all()
    list(SiteAgent.stream_ask("say hello"))
    told: dict[str, int] = {}
    for node in cluster.nodes:
        with node.client() as client:
            for name, facts in client.info("commandstats").items():
                told[name] = told.get(name, 0) + facts["calls"]
    assert told["cmdstat_zrevrange"] == work.settings.partitions
    assert "cmdstat_command|getkeys" not in told, told


FORK = """
import os, signal, sys, threading
from littleghost.journal.connection import connect
client = connect(sys.argv[1])
client.set("before", 1)
nodes, held = client.nodes_manager, threading.Event()
def hold():
    with client._lock, nodes._initialization_lock, nodes._lock:
        held.set()
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    # One that hangs must not outlive the test.
    signal.alarm(10)
    os._exit(7 if client.get("before") == "1" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_is_not_held_up_by_a_thread_of_its_parent(cluster: Cluster) -> None:
    """A pool child that takes a dead one's place is forked while the parent's threads work."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, cluster.url]
    assert subprocess.run(command, cwd=ROOT, timeout=30, check=False).returncode == 7


def test_partitions_are_spread_over_the_nodes(cluster: Cluster) -> None:
    client = cluster.client()
    owners = [client.get_node_from_key(keys.prefix(partition)).name for partition in range(16)]
    assert set(owners) == {node.name for node in cluster.nodes}
