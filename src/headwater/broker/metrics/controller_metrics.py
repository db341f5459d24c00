"""What the controller tells of the cluster; all other brokers show zeros, as Kafka's do.

Sums over all brokers are then right whoever is the controller, and the sum of
`active_controller_count` must be 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import counter, gauge
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.partitions.leader_imbalance import imbalance_count

_CONTROLLER: Final = "Kafka: kafka.controller:type=KafkaController,name="
_STATS: Final = "Kafka: kafka.controller:type=ControllerStats,name="


def controller_metrics(broker: BrokerContext) -> Iterator[str]:
    """The families about the cluster and its controller."""
    controller = broker.member.controller if broker.member.is_controller else None
    image = ClusterImage() if controller is None else controller.image
    partition_count = sum(len(topic.partitions) for topic in image.topics.values())
    for name, value, help_text in (
        (
            "active_controller_count",
            int(controller is not None),
            f"1 on the broker that is the controller, 0 on all others. {_CONTROLLER}"
            "ActiveControllerCount",
        ),
        (
            "offline_partitions",
            sum(each.leader < 0 for topic in image.topics.values() for each in topic.partitions),
            "Partitions of the cluster without a leader, counted by the controller. "
            f"{_CONTROLLER}OfflinePartitionsCount",
        ),
        (
            "preferred_replica_imbalance_count",
            imbalance_count(image),
            "Partitions that another than their first replica leads, counted by the controller. "
            f"{_CONTROLLER}PreferredReplicaImbalanceCount",
        ),
        (
            "active_brokers",
            len(image.brokers),
            f"Brokers that are alive, counted by the controller. {_CONTROLLER}ActiveBrokerCount",
        ),
        (
            "global_topics",
            len(image.topics),
            f"Topics of the cluster, counted by the controller. {_CONTROLLER}GlobalTopicCount",
        ),
        (
            "global_partitions",
            partition_count,
            "Partitions of the cluster, counted by the controller. "
            f"{_CONTROLLER}GlobalPartitionCount",
        ),
    ):
        yield from gauge(f"headwater_{name}", help_text, [("", value)])
    yield from gauge(
        "headwater_controller_epoch",
        "Which controller this broker follows: epochs count the elections of controllers.",
        [("", broker.image.controller_epoch)],
    )
    for name, count, help_text in (
        (
            "leader_elections",
            0 if controller is None else controller.election_count,
            "Partitions that this controller has elected a leader for. "
            f"{_STATS}LeaderElectionRateAndTimeMs",
        ),
        (
            "leader_election_seconds",
            0.0 if controller is None else controller.election_seconds,
            "How long rounds of elections took this controller, in all.",
        ),
        (
            "unclean_leader_elections",
            0 if controller is None else controller.unclean_election_count,
            "Elections of a leader that was not in sync, so that records may be lost. "
            f"{_STATS}UncleanLeaderElectionsPerSec",
        ),
    ):
        yield from counter(f"headwater_{name}_total", help_text, [("", count)])
