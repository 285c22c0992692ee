"""DBOS: workflows whose steps are rows of a SQLite database."""

from __future__ import annotations

from dbos import DBOS, DBOSConfig

from benchmarks.peers.work import PAYLOAD, SLOTS, STEPS, Peer, Place, measure, sqlite_bytes

# By default a queue and a waiting workflow look once a second, which instant steps would show.
POLL_S = 0.1


@DBOS.step()
def step(payload: str) -> str:
    return payload


@DBOS.workflow()
def three(payload: str) -> str:
    for _ in range(STEPS):
        payload = step(payload)
    return payload


@DBOS.workflow()
def leaf(payload: str) -> str:
    return step(payload)


@DBOS.workflow()
def fan_out(width: int) -> int:
    handles = [DBOS.enqueue_workflow("peer", leaf, PAYLOAD) for _ in range(width)]
    return len([handle.get_result(polling_interval_sec=POLL_S) for handle in handles])


@DBOS.workflow()
def agent(turns: int) -> int:
    for _ in range(turns):
        # The answer, then the call's result.
        step(PAYLOAD)
        step(PAYLOAD)
    return turns


class Workflows(Peer):
    """Workflows of three steps; fan-outs through a queue, as its documentation advises."""

    name = "DBOS, SQLite"
    packages = ("dbos",)
    stores = (
        "SQLite: a row per step with its output; a workflow goes on when its own process starts "
        "again"
    )
    workers = (
        f"in the caller's process, {SLOTS} threads; queue and results polled each {POLL_S} s "
        "instead of 1 s"
    )

    def start(self) -> None:
        self._path = self.place.directory / "dbos.sqlite"
        config: DBOSConfig = {
            "name": "peer",
            "system_database_url": f"sqlite:///{self._path}",
            "log_level": "ERROR",
            # A workflow that waits for others holds one.
            "max_executor_threads": SLOTS + 1,
        }
        DBOS(config=config)
        DBOS.launch()
        DBOS.register_queue("peer", worker_concurrency=SLOTS, polling_interval_sec=POLL_S)

    def run(self, count: int) -> None:
        handles = [DBOS.start_workflow(three, PAYLOAD) for _ in range(count)]
        for handle in handles:
            assert handle.get_result() == PAYLOAD

    def fan(self, width: int) -> None:
        assert DBOS.start_workflow(fan_out, width).get_result() == width

    def converse(self, turns: int) -> int:
        before = sqlite_bytes(self._path)
        assert DBOS.start_workflow(agent, turns).get_result() == turns
        return sqlite_bytes(self._path) - before


if __name__ == "__main__":
    measure(Workflows(Place()))
