"""The two clusters under test: three brokers each, every one a process, and who coordinates them.

Both are started, asked and hurt in the same way, so that a measurement is one function of a
`Cluster`. Apache Kafka's brokers run as its start script runs them, with a controller in a process
of its own, as Kafka advises; Headwater's are `headwater serve --zookeeper` beside one ZooKeeper.
Session timeouts are equal. Leaders stay where they are unless something happens to their broker.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.broker.process_usage import cpu_seconds, resident_bytes
from bench.broker.raw_client import HOST, RawClient, wait_until
from bench.broker.servers import KAFKA_JVM_FLAGS, free_port
from bench.cluster.sizes import HEARTBEAT_INTERVAL_MS, MIN_INSYNC_REPLICAS, SESSION_TIMEOUT_MS
from headwater.base.ids import topic_id_to_text
from headwater.java.processes import forget_process, kill_process, start_process
from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.apache_kafka.node import BROKER, CONTROLLER
from headwater.wire.messages.api_versions import ApiVersionsRequest

BROKER_IDS = (1, 2, 3)
_CONTROLLER_ID = 100
_START_TIMEOUT_S = 180.0
_STOP_TIMEOUT_S = 300.0
_SETTINGS = {
    "log.segment.delete.delay.ms": "0",
    "min.insync.replicas": str(MIN_INSYNC_REPLICAS),
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "auto.leader.rebalance.enable": "false",
}
_KAFKA_SETTINGS = {
    **_SETTINGS,
    "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "broker.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class Cluster(ABC):
    """Three brokers with the ids of `BROKER_IDS`, on ports that they keep."""

    name: str
    #: What runs beside the brokers and lets them agree.
    coordination_name: str

    @abstractmethod
    def start(self) -> None:
        """Start everything and return when every broker answers."""

    @abstractmethod
    def kill(self) -> None:
        """End everything at once; no error if it does not run."""

    @abstractmethod
    def start_broker(self, broker_id: int) -> None: ...

    @abstractmethod
    def stop_broker(self, broker_id: int) -> None:
        """Let it shut down in order, and wait for that."""

    @abstractmethod
    def kill_broker(self, broker_id: int) -> None:
        """As `kill -9` does."""

    @abstractmethod
    def address(self, broker_id: int) -> str: ...

    @abstractmethod
    def broker_pids(self) -> list[int]:
        """The brokers that run."""

    @abstractmethod
    def coordination_pids(self) -> list[int]: ...

    @property
    def bootstrap(self) -> str:
        """All brokers, whether they run or not."""
        return ",".join(map(self.address, BROKER_IDS))

    def brokers_resident_bytes(self) -> int:
        return sum(map(resident_bytes, self.broker_pids()))

    def coordination_resident_bytes(self) -> int:
        return sum(map(resident_bytes, self.coordination_pids()))

    def brokers_cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self.broker_pids()))

    def coordination_cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self.coordination_pids()))


class ApacheKafkaCluster(Cluster):
    name = "Apache Kafka"
    coordination_name = "controller"

    def __init__(self, directory: Path) -> None:
        cluster_id = topic_id_to_text(uuid.uuid4())

        def node(node_id: int, role: str, voters: str | None) -> KafkaNode:
            return KafkaNode(
                directory / f"{role}-{node_id}",
                properties=_KAFKA_SETTINGS,
                heap="1g",
                jvm_flags=KAFKA_JVM_FLAGS,
                start_timeout_s=_START_TIMEOUT_S,
                node_id=node_id,
                roles=(role,),
                cluster_id=cluster_id,
                voters=voters,
            )

        self._controller = node(_CONTROLLER_ID, CONTROLLER, None)
        voters = self._controller.voter
        self._brokers = {broker_id: node(broker_id, BROKER, voters) for broker_id in BROKER_IDS}

    def start(self) -> None:
        nodes = [self._controller, *self._brokers.values()]
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(KafkaNode.start, nodes))

    def kill(self) -> None:
        for node in [*self._brokers.values(), self._controller]:
            node.kill()

    def start_broker(self, broker_id: int) -> None:
        self._brokers[broker_id].start()

    def stop_broker(self, broker_id: int) -> None:
        self._brokers[broker_id].stop(_STOP_TIMEOUT_S)

    def kill_broker(self, broker_id: int) -> None:
        self._brokers[broker_id].kill()

    def address(self, broker_id: int) -> str:
        return self._brokers[broker_id].bootstrap

    def broker_pids(self) -> list[int]:
        return [node.pid for node in self._brokers.values() if node.is_running]

    def coordination_pids(self) -> list[int]:
        return [self._controller.pid]


class HeadwaterCluster(Cluster):
    name = "Headwater"
    coordination_name = "ZooKeeper"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._zookeeper_port = free_port()
        self._ports = {broker_id: free_port() for broker_id in BROKER_IDS}
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._brokers: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        place = ("--data-dir", str(self._directory / "zookeeper"))
        self._zookeeper = self._run("zookeeper", *place, "--port", str(self._zookeeper_port))
        with ThreadPoolExecutor(len(BROKER_IDS)) as threads:
            list(threads.map(self.start_broker, BROKER_IDS))

    def kill(self) -> None:
        for broker_id in BROKER_IDS:
            self.kill_broker(broker_id)
        if self._zookeeper is not None:
            kill_process(self._zookeeper)
            self._zookeeper = None

    def start_broker(self, broker_id: int) -> None:
        settings = {
            **_SETTINGS,
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "zookeeper.connection.timeout.ms": str(int(_START_TIMEOUT_S * 1000)),
        }
        process = self._brokers[broker_id] = self._run(
            "serve",
            *("--broker-id", str(broker_id), "--listen", self.address(broker_id)),
            *("--data-dir", str(self._directory / f"broker-{broker_id}")),
            *("--zookeeper", f"{HOST}:{self._zookeeper_port}/bench"),
            *(word for name, value in settings.items() for word in ("--set", f"{name}={value}")),
        )

        def answers() -> bool:
            if process.poll() is not None:
                log = (self._directory / "serve.log").read_text()
                raise RuntimeError(f"Headwater ended while starting:\n{log[-4000:]}")
            return _answers(self._ports[broker_id])

        try:
            wait_until(answers, f"Broker {broker_id} does not answer", _START_TIMEOUT_S)
        except BaseException:
            self.kill_broker(broker_id)
            raise

    def stop_broker(self, broker_id: int) -> None:
        process = self._brokers[broker_id]
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill_broker(broker_id)
            raise RuntimeError(f"Broker {broker_id} did not stop.") from None
        forget_process(process)
        del self._brokers[broker_id]

    def kill_broker(self, broker_id: int) -> None:
        process = self._brokers.pop(broker_id, None)
        if process is not None:
            kill_process(process)

    def address(self, broker_id: int) -> str:
        return f"{HOST}:{self._ports[broker_id]}"

    def broker_pids(self) -> list[int]:
        return [process.pid for process in self._brokers.values()]

    def coordination_pids(self) -> list[int]:
        return [] if self._zookeeper is None else [self._zookeeper.pid]

    def _run(self, command: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._directory / f"{command}.log").open("ab") as log:
            return start_process(
                [sys.executable, "-m", "headwater", command, *arguments], stdout=log, stderr=log
            )


def _answers(port: int) -> bool:
    try:
        with RawClient(port) as client:
            return bool(client.ask(ApiVersionsRequest()).error_code == 0)
    except OSError:
        return False


MakeCluster = Callable[[Path], Cluster]
CLUSTERS: dict[str, MakeCluster] = {
    "headwater": HeadwaterCluster,
    "apache-kafka": ApacheKafkaCluster,
}
