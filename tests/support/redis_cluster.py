"""A real Redis Cluster for tests: three nodes on loopback that share the slots, and a replica."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import redis
from redis.cluster import ClusterNode, RedisCluster

from littleghost.embedded import find_server
from littleghost.errors import ConfigurationError
from tests.support.redis_server import VARIABLE, wait_until

SLOTS = 16_384
NODES = 3


def cluster_binary() -> str | None:
    """Give a server that can be a node of a cluster; None where there is none."""
    try:
        return os.environ.get(VARIABLE, "").strip() or find_server()
    except ConfigurationError:
        return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port(taken: set[int]) -> int:
    """Find a port whose bus port is free as well: a node listens 10,000 higher, too."""
    for _ in range(200):
        port = random.randrange(20_000, 32_000)
        if port not in taken and _is_free(port) and _is_free(port + 10_000):
            taken.add(port)
            return port
    raise AssertionError("no free port for a node")


class Node:
    """One node; it comes back on its port with its slots and what it had written."""

    def __init__(self, binary: str, directory: Path, port: int) -> None:
        self.port = port
        self.name = f"127.0.0.1:{port}"
        self._binary = binary
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True)

    def start(self) -> None:
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self._directory),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": "1500",
        }
        command = [self._binary]
        for name, value in options.items():
            command += [f"--{name}", value]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self.answers, f"node {self.name} answers")

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True, protocol=2, socket_timeout=5)

    def answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "log").read_text()[-2000:]
        with self.client() as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def is_well(self, nodes: int) -> bool:
        """Whether it sees the whole cluster at work."""
        facts = self._info()
        return facts.get("cluster_state") == "ok" and int(facts["cluster_known_nodes"]) == nodes

    def state(self) -> str:
        """Give the state of the cluster as this node sees it: ok or fail."""
        return self._info().get("cluster_state", "")

    def _info(self) -> dict[str, str]:
        with self.client() as client:
            try:
                return client.execute_command("CLUSTER INFO")
            except redis.RedisError:
                return {}

    def sends_to(self) -> int:
        """Give the port of the node that it takes for the owner of slot 0."""
        with self.client() as client:
            slots: Any = client.execute_command("CLUSTER SLOTS")
        return next(owner[1] for first, _last, owner, *_replicas in slots if first == 0)

    def facts(self) -> Any:
        """Give what it says about replication."""
        with self.client() as client:
            return client.info("replication")

    def kill(self) -> None:
        if self._process is not None and self.is_up:
            self._process.kill()
            self._process.wait(10)


class Cluster:
    """A cluster that a test module owns.

    Attributes:
        nodes: Those that have slots.
        replica: Of the first node, if there is one.
    """

    def __init__(self, *, with_replica: bool = False) -> None:
        binary = cluster_binary()
        assert binary is not None
        self.directory = Path(tempfile.mkdtemp(prefix="lgt-cluster-"))
        taken: set[int] = set()
        self.nodes = [
            Node(binary, self.directory / str(number), _free_port(taken)) for number in range(NODES)
        ]
        self.replica: Node | None = None
        if with_replica:
            self.replica = Node(binary, self.directory / "replica", _free_port(taken))
        self.url = "redis+cluster://" + ",".join(node.name for node in self.nodes)
        self._clients: list[RedisCluster] = []

    def start(self) -> Cluster:
        """Start the nodes, give each its share of the slots, and wait until they agree."""
        for number, node in enumerate(self.nodes):
            node.start()
            with node.client() as client:
                first, end = number * SLOTS // NODES, (number + 1) * SLOTS // NODES
                client.execute_command("CLUSTER ADDSLOTS", *range(first, end))
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        with self.nodes[0].client() as client:
            for node in self.nodes[1:]:
                client.execute_command("CLUSTER MEET", "127.0.0.1", node.port)
        self.wait()
        if self.replica is not None:
            self._add(self.replica)
        return self

    def _add(self, replica: Node) -> None:
        replica.start()
        with self.nodes[0].client() as client, replica.client() as new:
            client.execute_command("CLUSTER MEET", "127.0.0.1", replica.port)
            self.wait()
            new.execute_command("CLUSTER REPLICATE", client.execute_command("CLUSTER MYID"))
        wait_until(lambda: replica.facts()["master_link_status"] == "up", "the replica follows")

    def fail_over(self) -> None:
        """Have the replica take the first node's slots, without a loss."""
        assert self.replica is not None
        with self.replica.client() as client:
            client.execute_command("CLUSTER FAILOVER")
        self._swap()

    def lose(self) -> None:
        """Kill the first node, and wait until the replica has taken over by itself."""
        assert self.replica is not None
        self.nodes[0].kill()
        self._swap()

    def _swap(self) -> None:
        replica = self.replica
        assert replica is not None
        wait_until(lambda: replica.facts()["role"] == "master", "the replica has taken over", 30)
        self.nodes[0], self.replica = replica, self.nodes[0]
        wait_until(
            lambda: all(node.sends_to() == replica.port for node in self.nodes),
            "every node knows who has taken over",
        )

    def wait(self) -> None:
        """Wait until every node sees the whole cluster at work."""
        every = [*self.nodes, *([self.replica] if self.replica and self.replica.is_up else [])]
        wait_until(lambda: all(node.is_well(len(every)) for node in every), "cluster_state:ok", 30)

    def client(self) -> RedisCluster:
        """Make a client that is closed with the cluster."""
        nodes = [ClusterNode("127.0.0.1", node.port) for node in self.nodes]
        made = RedisCluster(startup_nodes=nodes, decode_responses=True, protocol=2)
        self._clients.append(made)
        return made

    def stop(self) -> None:
        """End it and remove its data. Idempotent."""
        for client in self._clients:
            client.close()
            client.disconnect_connection_pools()
        self._clients.clear()
        for node in [*self.nodes, *([self.replica] if self.replica else [])]:
            node.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
