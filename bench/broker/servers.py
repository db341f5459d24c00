"""The two servers under test, each a child process in a directory of its own.

Both are started, asked and stopped in the same way, so that a measurement is one function of a
`Server`. Apache Kafka runs as its start script runs it: a heap of 1 GB and the flags that the
script has for the garbage collector. Headwater runs as `headwater serve`. Neither waits for the
disk unless `set_durable` says so: then acks=all means "on disk" on both.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.broker.raw_client import HOST, RawClient, ServerRefused, wait_until
from headwater.java.processes import forget_process, kill_process, start_process
from headwater.testing.apache_kafka import KafkaNode, KafkaNodeError
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

#: What kafka-server-start.sh and kafka-run-class.sh of Apache's release give to Java.
KAFKA_JVM_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
)
_STOP_TIMEOUT_S = 300.0
_START_TIMEOUT_S = 120.0
#: Deleted topics make room at once, so that one run's leftovers do not weigh on the next.
_COMMON_SETTINGS = {"log.segment.delete.delay.ms": "0"}
_BROKER_RESOURCE = 4
_DEFAULT_REBALANCE_DELAY_MS = "3000"


class Server(ABC):
    """A broker that can be started again on its data, on the same port."""

    name: str
    #: What a topic needs for acks=all to mean "on disk".
    durable_topic_configs: Mapping[str, str] = {}

    @property
    @abstractmethod
    def port(self) -> int: ...

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    def start(self) -> None:
        """Start the process and return when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """Let it shut down in order, and wait for that."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once; no error if it does not run."""

    @abstractmethod
    def set_durable(self, durable: bool) -> None:
        """Whether acks=all waits for the disk, beyond what topics ask for."""

    @abstractmethod
    def wait_for_members(self) -> None:
        """From the next start on, let new groups wait for members for as long as by default."""

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def connect(self) -> RawClient:
        return RawClient(self.port)

    def answers(self) -> bool:
        """Whether it answers an ApiVersions request."""
        try:
            with self.connect() as client:
                return bool(client.ask(ApiVersionsRequest()).error_code == 0)
        except OSError:
            return False

    @contextlib.contextmanager
    def durable(self, topics: Sequence[str], durable: bool) -> Iterator[None]:
        """For a while, acks=all in these topics means "on disk", or not."""
        self.set_durable(durable)
        try:
            self._configure_durable(topics, self.durable_topic_configs if durable else {})
            yield
        finally:
            self.set_durable(False)
            self._configure_durable(topics, {})

    def _configure_durable(self, topics: Sequence[str], configs: Mapping[str, str]) -> None:
        with self.connect() as client:
            for topic in topics:
                for name in self.durable_topic_configs:
                    client.set_topic_config(topic, name, configs.get(name))

    @contextlib.contextmanager
    def topic(
        self, name: str, partition_count: int, configs: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """A topic that exists for a while."""
        with self.connect() as client:
            client.create_topic(name, partition_count, configs)
        try:
            yield name
        finally:
            with contextlib.suppress(OSError, ServerRefused), self.connect() as client:
                client.delete_topic(name)


class ApacheKafkaServer(Server):
    name = "Apache Kafka"
    durable_topic_configs = {"flush.messages": "1"}  # noqa: RUF012

    def __init__(self, directory: Path) -> None:
        self._node = KafkaNode(
            directory,
            properties=_COMMON_SETTINGS,
            heap="1g",
            jvm_flags=KAFKA_JVM_FLAGS,
            start_timeout_s=_START_TIMEOUT_S,
        )

    @property
    def port(self) -> int:
        return int(self._node.bootstrap.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self._node.pid

    def start(self) -> None:
        self._node.start()

    def stop(self) -> None:
        self._node.stop(_STOP_TIMEOUT_S)

    def kill(self) -> None:
        self._node.kill()

    def set_durable(self, durable: bool) -> None:
        """Nothing to do: topics ask for it."""

    def wait_for_members(self) -> None:
        # The node otherwise has what Kafka's documentation advises for development: no wait.
        self._node.properties["group.initial.rebalance.delay.ms"] = _DEFAULT_REBALANCE_DELAY_MS


class HeadwaterServer(Server):
    name = "Headwater"

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self._settings = settings or {}
        self._log = directory / "server.log"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        return self._running().pid

    def command(self) -> list[str]:
        """What runs it."""
        settings = {**_COMMON_SETTINGS, "acks.all.flush": "off", **self._settings}
        return [
            *(sys.executable, "-m", "headwater", "serve", "--broker-id", "0"),
            *("--listen", self.bootstrap, "--data-dir", str(self._directory / "data")),
            *(word for name, value in settings.items() for word in ("--set", f"{name}={value}")),
        ]

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            process = self._process = start_process(self.command(), stdout=log, stderr=log)

        def answers() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"Headwater ended while starting:\n{self._log.read_text()}")
            return self.answers()

        try:
            wait_until(answers, "Headwater does not answer", _START_TIMEOUT_S)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"Headwater did not stop within {_STOP_TIMEOUT_S:g} s.") from None
        forget_process(process)
        self._process = None

    def kill(self) -> None:
        if self._process is not None:
            kill_process(self._process)
            self._process = None

    def set_durable(self, durable: bool) -> None:
        config = AlterableConfig(name="acks.all.flush", value="auto" if durable else "off")
        resource = AlterConfigsResource(
            resource_type=_BROKER_RESOURCE, resource_name="0", configs=[config]
        )
        with self.connect() as client:
            response = client.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        [result] = response.responses
        if result.error_code != 0:
            raise ServerRefused(f"acks.all.flush: {result.error_message}")

    def wait_for_members(self) -> None:
        """Nothing to do: it runs with its defaults."""

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("Headwater is not running.")
        return self._process


MakeServer = Callable[[Path], Server]
SERVERS: dict[str, MakeServer] = {
    "headwater": HeadwaterServer,
    "apache-kafka": ApacheKafkaServer,
}


class Pair:
    """Makes the two that are compared, ours first, on fresh directories of one disk."""

    def __init__(self, parent: Path, makers: tuple[MakeServer, MakeServer]) -> None:
        self._parent = parent
        self._makers = makers
        self._count = 0

    @contextlib.contextmanager
    def made(self) -> Iterator[tuple[Server, Server]]:
        """Two servers that have not been started; they and their data are gone afterwards."""
        self._count += 1
        directories = [self._parent / f"{self._count}-{side}" for side in ("ours", "peer")]
        ours, peer = (
            make(directory) for make, directory in zip(self._makers, directories, strict=True)
        )
        try:
            yield ours, peer
        finally:
            for server in (ours, peer):
                server.kill()
            for directory in directories:
                shutil.rmtree(directory, ignore_errors=True)

    @contextlib.contextmanager
    def started(self) -> Iterator[tuple[Server, Server]]:
        """The same, running: whoever is not under load idles."""
        with self.made() as servers:
            for server in servers:
                server.start()
            yield servers
            for server in servers:
                with contextlib.suppress(KafkaNodeError, RuntimeError):
                    server.stop()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
