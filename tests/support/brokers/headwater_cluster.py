"""Three Headwater brokers, each a process of its own, on a ZooKeeper.

    with HeadwaterCluster(directory, "127.0.0.1:2181/tests") as cluster:
        topic = cluster.create_topic("orders", 3)
        cluster.controller_node().kill()

Sessions are short, so that a broker which is gone is noticed soon, and internal topics have three
replicas of which two must be in sync. What the brokers print is below `directory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.testing.broker_process import HOST, BrokerProcess
from tests.support.brokers.three_brokers import BROKER_IDS, SETTINGS, ThreeBrokers

#: Long enough that a busy machine does not end a session by itself.
SESSION_MS = 3_000

CLUSTER_SETTINGS = SETTINGS | {"zookeeper.session.timeout.ms": str(SESSION_MS)}


class HeadwaterCluster(ThreeBrokers):
    """Three brokers with ids 1 to 3, running while it is entered."""

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        *,
        settings: Mapping[str, str] | None = None,
        hosts: Mapping[int, str] | None = None,
        command_prefixes: Mapping[int, tuple[str, ...]] | None = None,
        second_disks: bool = False,
    ) -> None:
        """`zookeeper` is what `--zookeeper` takes; `hosts` are the brokers' addresses where they
        are not all on this one, and `command_prefixes` what is to run their commands there. With
        `second_disks` each broker has two directories for its logs."""
        super().__init__()
        self.zookeeper = zookeeper
        self._second_dirs = {
            broker_id: directory / f"broker-{broker_id}" / "second"
            for broker_id in (BROKER_IDS if second_disks else ())
        }
        self.brokers = {
            broker_id: BrokerProcess(
                directory / f"broker-{broker_id}",
                settings=CLUSTER_SETTINGS | dict(settings or {}),
                broker_id=broker_id,
                arguments=(
                    *("--zookeeper", zookeeper, "--log-level", "info"),
                    *self._second_dir_arguments(broker_id),
                ),
                host=(hosts or {}).get(broker_id, HOST),
                command_prefix=(command_prefixes or {}).get(broker_id, ()),
                start_timeout_s=60.0,
            )
            for broker_id in BROKER_IDS
        }

    def _second_dir_arguments(self, broker_id: int) -> tuple[str, ...]:
        second = self._second_dirs.get(broker_id)
        return () if second is None else ("--data-dir", str(second))

    @property
    def nodes(self) -> Mapping[int, BrokerProcess]:
        return self.brokers

    @property
    def session_s(self) -> float:
        return SESSION_MS / 1000

    def controller_id(self, asked: Iterable[int] = BROKER_IDS) -> int:
        """Whom one of these brokers holds for the controller; -1 if none is elected."""

        async def look(connection: ClusterConnection) -> int:
            await connection.refresh(())
            return connection.metadata.controller_id

        return self.ask(look, asked)

    def controller_node(self) -> BrokerProcess:
        self._wait(lambda: self.controller_id() in BROKER_IDS, "there is a controller")
        return self.brokers[self.controller_id()]

    def data_dir(self, broker_id: int) -> Path:
        return self.brokers[broker_id].data_dir

    def data_dirs(self, broker_id: int) -> list[Path]:
        """All of them, also those of second disks."""
        second = self._second_dirs.get(broker_id)
        return [self.data_dir(broker_id), *(() if second is None else (second,))]

    def replica_dir(self, broker_id: int, partition: str) -> Path:
        paths = [each / partition for each in self.data_dirs(broker_id)]
        return next((path for path in paths if path.exists()), paths[0])

    def logs(self, lines: int = 60) -> str:
        return "\n".join(
            f"-- broker {broker_id}:\n{broker.tail(lines)}"
            for broker_id, broker in self.brokers.items()
        )
