"""Three Apache Kafka brokers and their controller, for what one broker cannot show.

    with KafkaCluster(directory) as cluster:
        topic = cluster.create_topic("orders", 3)
        leader = cluster.leader_of(topic, 0)
        cluster.brokers[leader].kill()

Leaders and coordinators move when a broker goes. The controller is a process of its own, so that
any broker may. Each has a small heap, and a broker that is gone is noticed within two seconds.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from headwater.base.ids import topic_id_to_text
from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.apache_kafka.node import BROKER, CONTROLLER
from tests.support.brokers.three_brokers import BROKER_IDS, SETTINGS, ThreeBrokers
from tests.support.kafka.node import SMALL_NODE_PROPERTIES, require_apache_kafka

__all__ = ["BROKER_IDS", "KafkaCluster"]

CONTROLLER_ID = 100

CLUSTER_PROPERTIES = (
    SMALL_NODE_PROPERTIES
    | SETTINGS
    | {
        "num.network.threads": "2",
        "num.io.threads": "2",
        "log.cleaner.enable": "false",
    }
)
HEAP = "192m"


class KafkaCluster(ThreeBrokers):
    """Three brokers with ids 1 to 3, running while it is entered."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        kafka = require_apache_kafka()
        cluster_id = topic_id_to_text(uuid.uuid4())

        def node(node_id: int, role: str, voters: str | None) -> KafkaNode:
            return KafkaNode(
                directory / f"{role}-{node_id}",
                properties=CLUSTER_PROPERTIES,
                heap=HEAP,
                jvm_flags=kafka.quick_start_flags,
                start_timeout_s=120.0,
                kafka=kafka,
                node_id=node_id,
                roles=(role,),
                cluster_id=cluster_id,
                voters=voters,
            )

        self.controller = node(CONTROLLER_ID, CONTROLLER, None)
        voter = self.controller.voter
        self.brokers = {broker_id: node(broker_id, BROKER, voter) for broker_id in BROKER_IDS}

    @property
    def nodes(self) -> Mapping[int, KafkaNode]:
        return self.brokers

    @property
    def session_s(self) -> float:
        return int(CLUSTER_PROPERTIES["broker.session.timeout.ms"]) / 1000

    def controller_node(self) -> KafkaNode:
        return self.controller

    def extra_nodes(self) -> Iterable[KafkaNode]:
        return (self.controller,)

    def data_dir(self, broker_id: int) -> Path:
        return self.brokers[broker_id].log_dirs[0]

    def logs(self, lines: int = 60) -> str:
        return "\n".join(
            f"-- node {node.node_id}:\n{node.log_tail(lines)}"
            for node in (self.controller, *self.brokers.values())
            if node.server_log.exists()
        )

    def move_broker(self, broker_id: int) -> None:
        """Stop the broker and bring it back on another address."""
        node = self.brokers[broker_id]
        node.stop()
        node.move()
        node.start()
