"""A private RabbitMQ node on free loopback ports; each of its processes is ended by its own id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from kombu.connection import Connection

from tests.faults.fleet import free_port, wait_until

# The packaged command changes the user; the script behind it does not.
SCRIPTS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "/usr/lib/rabbitmq/sbin/rabbitmq-server")


def find_script() -> str | None:
    """Give the start script of RabbitMQ; None where it is not installed."""
    if shutil.which("epmd") is None:
        return None
    known = [path for path in SCRIPTS if Path(path).exists()]
    return known[0] if known else shutil.which("rabbitmq-server")


class RabbitServer:
    """A broker to be killed and started again with the same data."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("home", "mnesia", "log"):
            (directory / name).mkdir()
        (directory / "rabbitmq.conf").write_text("loopback_users.guest = true\n")
        (directory / "enabled_plugins").write_text("[].\n")
        self.port, self._epmd_port = free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.environment = {
            **{name: value for name, value in os.environ.items() if "RABBIT" not in name},
            "HOME": str(directory / "home"),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"lgt{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none"
            ),
        }
        # Our own, or the node would leave a daemon behind.
        self._epmd = self._run(["epmd"])
        wait_until(lambda: _listens(self._epmd_port), "the port mapper answers")
        self._node: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        script = find_script()
        assert script is not None
        self._node = self._run([script])
        wait_until(self._answers, f"RabbitMQ answers, see {self.directory}", 60)

    def kill(self) -> None:
        """Kill the node; what was durable stays."""
        if self._node is not None:
            # The script and the node are a group of their own.
            os.killpg(self._node.pid, signal.SIGKILL)
            self._node.wait(10)
            self._node = None

    def stop(self) -> None:
        self.kill()
        self._epmd.kill()
        self._epmd.wait(10)

    def purge(self, queue: str) -> int:
        """Empty a queue, and give how many messages it held."""
        with Connection(self.url) as connection:
            return int(connection.default_channel.queue_purge(queue))

    def length(self, queue: str) -> int:
        """Give how many messages wait in a queue; 0 where there is none."""
        with Connection(self.url) as connection:
            try:
                return int(connection.default_channel.queue_declare(queue, passive=True)[1])
            except connection.channel_errors:
                return 0

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / "output.txt").open("ab") as output:
            return subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        assert self._node is not None
        assert self._node.poll() is None, (self.directory / "output.txt").read_text()[-3000:]
        try:
            with Connection(self.url, connect_timeout=1) as connection:
                connection.connect()
                return True
        except OSError:
            return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
