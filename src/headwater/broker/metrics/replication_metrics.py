"""The figures by which Kafka's operators judge a broker: its idle shares and its replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import counter, gauge
from headwater.broker.metrics.load_meter import LoadMeter

_REPLICAS: Final = "Kafka: kafka.server:type=ReplicaManager,name="
_CONTROLLER: Final = "Kafka: kafka.controller:type=KafkaController,name="


def load_metrics(load: LoadMeter) -> Iterator[str]:
    """How busy the broker is."""
    yield from gauge(
        "headwater_network_processor_avg_idle_percent",
        "The idle share of the event loop over the last minute, from 0 to 1; below 0.3 it is too "
        "busy. Kafka: kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
        [("", round(load.loop_idle, 4))],
    )
    yield from gauge(
        "headwater_request_handler_avg_idle_percent",
        "The idle share of the threads of num.io.threads over the last minute, from 0 to 1. "
        "Kafka: kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
        [("", round(load.workers_idle, 4))],
    )


def replication_metrics(broker: BrokerContext) -> Iterator[str]:
    """What the broker holds and leads, and whether all of it is as it should be."""
    partitions = list(broker.partitions)
    led = [each for each in partitions if each.is_leader]
    lagging = sum(len(each.isr) < len(each.replicas) for each in led)
    short = sum(len(each.isr) < each.min_insync_replicas for each in led)
    for name, value, help_text in (
        ("partitions", len(partitions), f"Replicas on this broker. {_REPLICAS}PartitionCount"),
        ("leaders", len(led), f"Partitions led by this broker. {_REPLICAS}LeaderCount"),
        (
            "under_replicated_partitions",
            lagging,
            "Partitions led here that have replicas which are not in sync. "
            f"{_REPLICAS}UnderReplicatedPartitions",
        ),
        (
            "under_min_isr_partitions",
            short,
            "Partitions led here that have fewer replicas in sync than min.insync.replicas. "
            f"{_REPLICAS}UnderMinIsrPartitionCount",
        ),
    ):
        yield from gauge(f"headwater_{name}", help_text, [("", value)])
    yield from counter(
        "headwater_isr_shrinks_total",
        f"Replicas that fell out of sync. {_REPLICAS}IsrShrinksPerSec",
        [("", broker.metrics.isr_shrinks)],
    )
    yield from counter(
        "headwater_isr_expands_total",
        f"Replicas that came into sync again. {_REPLICAS}IsrExpandsPerSec",
        [("", broker.metrics.isr_expands)],
    )
    is_controller = broker.image.controller_id == broker.node_id
    yield from gauge(
        "headwater_active_controller_count",
        "1 on the broker that is the controller, 0 on all others. "
        f"{_CONTROLLER}ActiveControllerCount",
        [("", int(is_controller))],
    )
    yield from gauge(
        "headwater_offline_partitions",
        "Partitions of the cluster without a leader, counted by the controller. "
        f"{_CONTROLLER}OfflinePartitionsCount",
        [("", _leaderless(broker) if is_controller else 0)],
    )


def _leaderless(broker: BrokerContext) -> int:
    topics = broker.image.topics.values()
    return sum(partition.leader < 0 for topic in topics for partition in topic.partitions)
