"""One Apache Kafka node, by default broker and controller in one process, in its own directory.

    with KafkaNode(directory, heap="256m") as node:
        node.run_tool("topics", "--create", "--topic", "greetings")
        client = Producer(node.bootstrap)

The directory holds `server.properties`, written anew at each start, `server.log`, which grows over
restarts, and the log directories. The node is formatted with Kafka's storage tool when it starts
for the first time. `stop` lets it shut down cleanly, `kill` does not; after either, `start` brings
it up again on the same data and the same ports, or on others after `move`. `start` returns when the
node has answered a request; what it waits for is bounded, and the end of the server's log is part
of any error.

A node that has only one of the two roles is part of a cluster: it is told the cluster's id and who
the controllers are.
"""

import random
import signal
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater.base.checks import check
from headwater.base.ids import topic_id_to_text
from headwater.java.processes import forget_process, kill_process, start_process
from headwater.testing.apache_kafka.resolve import Installation, resolve
from headwater.testing.apache_kafka.tools import run_tool

HOST = "127.0.0.1"
READY_LINE = "Kafka Server started"
ADDRESS_TAKEN = "Address already in use"
POLL_INTERVAL_S = 0.02
# Below the ports that systems give to outgoing connections, which could take one of ours between
# our looking and Kafka's binding.
PORTS = range(20_000, 32_000)
START_ATTEMPTS_MAX = 3
BROKER, CONTROLLER = "broker", "controller"

# What Apache's example configuration for one node has: every internal topic has one replica.
SINGLE_NODE_PROPERTIES = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class KafkaNodeError(Exception):
    """The node did not start or stop as it should; the message ends with its log's last lines."""


class KafkaNode:
    """A single KRaft node of the pinned Apache Kafka. See the module's text."""

    def __init__(
        self,
        directory: Path | str,
        *,
        properties: Mapping[str, object] | None = None,
        heap: str = "1g",
        log_dir_count: int = 1,
        jvm_flags: tuple[str, ...] = ("-XX:+UseG1GC",),
        start_timeout_s: float = 60.0,
        kafka: Installation | None = None,
        node_id: int = 1,
        roles: tuple[str, ...] = (BROKER, CONTROLLER),
        cluster_id: str | None = None,
        voters: str | None = None,
    ) -> None:
        """`voters` are the controllers, as `id@host:port`; without them the node is its own."""
        check(log_dir_count > 0, "a node needs a log directory")
        check(CONTROLLER in roles or voters is not None, "a broker needs a controller")
        self.directory = Path(directory).absolute()
        self.properties = {name: str(value) for name, value in (properties or {}).items()}
        names = ["data"] if log_dir_count == 1 else [f"data-{i}" for i in range(log_dir_count)]
        self.log_dirs = tuple(self.directory / name for name in names)
        self.server_log = self.directory / "server.log"
        self._jvm_flags = (f"-Xms{heap}", f"-Xmx{heap}", *jvm_flags, "-Dheadwater.log.level=INFO")
        self._start_timeout_s = start_timeout_s
        self._kafka = kafka or resolve()
        self.node_id = node_id
        self._roles = roles
        # One in 64 begins with a dash, so it is only ever given behind a "=".
        self._cluster_id = cluster_id or topic_id_to_text(uuid.uuid4())
        self._voters = voters
        self._ports = _free_ports()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """What a client is told to connect to."""
        return f"{HOST}:{self._ports[0]}"

    @property
    def voter(self) -> str:
        """How others name it among the controllers."""
        return f"{self.node_id}@{HOST}:{self._ports[1]}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._started_process().pid

    def start(self) -> None:
        """Format the directories unless they are, start the server, return when it answers."""
        check(self._process is None, "the node was started already")
        self.directory.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, START_ATTEMPTS_MAX + 1):
            configuration = self._write_configuration()
            self._format(configuration)
            log_start = self.server_log.stat().st_size if self.server_log.exists() else 0
            command = self._kafka.command(
                "kafka.Kafka", str(configuration), jvm_flags=self._jvm_flags
            )
            with self.server_log.open("ab") as log:
                self._process = start_process(command, stdout=log, stderr=log)
            try:
                self._wait_until_ready(log_start)
                return
            except BaseException:
                self.kill()
                # Another process was quicker to take a port that was free a moment ago.
                if attempt == START_ATTEMPTS_MAX or ADDRESS_TAKEN not in self._log_from(log_start):
                    raise
                self._ports = _free_ports()

    def stop(self, timeout_s: float = 60.0) -> None:
        """Ask the node to shut down and wait until it has; it is killed if it does not."""
        process = self._started_process()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise KafkaNodeError(
                f"Apache Kafka did not stop within {timeout_s} s:\n{self.log_tail()}"
            ) from None
        forget_process(process)
        self._process = None

    def kill(self) -> None:
        """End the node at once, as a crash would. No error if it has ended already."""
        if self._process is not None:
            kill_process(self._process)
            self._process = None

    def move(self) -> None:
        """From the next start on, listen on other ports."""
        check(self._process is None, "a running node cannot move")
        self._ports = _free_ports()

    def run_tool(
        self, name: str, *args: str, input: str | None = None, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools against this node: `--bootstrap-server` is added."""
        address = ["--bootstrap-server", self.bootstrap]
        return run_tool(
            name, [*address, *args], input=input, timeout_s=timeout_s, kafka=self._kafka
        )

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of the server's log."""
        return "\n".join(self._log_from(0).splitlines()[-lines:])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and self.is_running:
            self.stop()
        else:
            self.kill()

    def _started_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise KafkaNodeError("the node is not running")
        return self._process

    def _write_configuration(self) -> Path:
        broker_port, controller_port = self._ports
        listeners = {
            BROKER: f"PLAINTEXT://{HOST}:{broker_port}",
            CONTROLLER: f"CONTROLLER://{HOST}:{controller_port}",
        }
        own = {
            "process.roles": ",".join(self._roles),
            "node.id": str(self.node_id),
            "listeners": ",".join(listeners[role] for role in self._roles),
            "controller.quorum.voters": self._voters or self.voter,
            "log.dirs": ",".join(map(str, self.log_dirs)),
        }
        if BROKER in self._roles:
            own["inter.broker.listener.name"] = "PLAINTEXT"
        merged = SINGLE_NODE_PROPERTIES | own | self.properties
        path = self.directory / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in merged.items()))
        return path

    def _format(self, configuration: Path) -> None:
        if all((log_dir / "meta.properties").exists() for log_dir in self.log_dirs):
            return
        args = ["format", f"--cluster-id={self._cluster_id}", "--config", str(configuration)]
        run_tool("storage", args, kafka=self._kafka)

    def _wait_until_ready(self, log_start: int) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        while READY_LINE not in self._log_from(log_start) or not self._answers():
            if not self.is_running:
                raise KafkaNodeError(f"Apache Kafka ended while starting:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise KafkaNodeError(
                    f"Apache Kafka did not start within {self._start_timeout_s} s:\n"
                    + self.log_tail()
                )
            time.sleep(POLL_INTERVAL_S)

    def _answers(self) -> bool:
        """Whether the node answers an ApiVersions request without an error."""
        port = self._ports[0 if BROKER in self._roles else 1]
        correlation_id = 1
        # Key 18, version 0, correlation id, and a null client id; there is no body.
        request = struct.pack(">hhih", 18, 0, correlation_id, -1)
        try:
            with socket.create_connection((HOST, port), timeout=5) as connection:
                connection.sendall(struct.pack(">i", len(request)) + request)
                answer = connection.recv(10, socket.MSG_WAITALL)
        except OSError:
            return False
        return len(answer) == 10 and struct.unpack(">iih", answer)[1:] == (correlation_id, 0)

    def _log_from(self, position: int) -> str:
        with self.server_log.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")


def _free_ports() -> tuple[int, int]:
    """A broker's and a controller's port that nobody listens on."""
    found: list[int] = []
    for port in random.sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == 2:
            return found[0], found[1]
    raise KafkaNodeError(f"no two ports are free on {HOST} between {PORTS[0]} and {PORTS[-1]}")
