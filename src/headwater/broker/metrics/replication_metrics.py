"""The figures by which Kafka's operators judge a broker: its idle shares and its replicas.

What concerns the cluster as a whole is the controller's to tell: see `controller_metrics`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import counter, gauge
from headwater.broker.metrics.load_meter import LoadMeter
from headwater.replication.partition.partition import Partition

_REPLICAS: Final = "Kafka: kafka.server:type=ReplicaManager,name="


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
    """What the broker holds and leads, whether all of it is in sync, and how it gets there."""
    partitions = list(broker.partitions)
    led = [each for each in partitions if each.is_leader]
    for name, value, help_text in (
        ("partitions", len(partitions), f"Replicas on this broker. {_REPLICAS}PartitionCount"),
        ("leaders", len(led), f"Partitions led by this broker. {_REPLICAS}LeaderCount"),
        (
            "under_replicated_partitions",
            sum(len(each.isr) < each.replica_count for each in led),
            "Partitions led here that have replicas which are not in sync. "
            f"{_REPLICAS}UnderReplicatedPartitions",
        ),
        (
            "under_min_isr_partitions",
            sum(len(each.isr) < each.min_insync_replicas for each in led),
            "Partitions led here that have fewer replicas in sync than min.insync.replicas. "
            f"{_REPLICAS}UnderMinIsrPartitionCount",
        ),
        (
            "at_min_isr_partitions",
            sum(len(each.isr) == each.min_insync_replicas for each in led),
            "Partitions led here that cannot lose another replica, for as many as "
            f"min.insync.replicas are in sync. {_REPLICAS}AtMinIsrPartitionCount",
        ),
        (
            "reassigning_partitions",
            sum(each.told.is_moving for each in led),
            "Partitions led here that are on their way to other brokers. "
            f"{_REPLICAS}ReassigningPartitions",
        ),
        (
            "offline_replicas",
            offline_replica_count(broker),
            "Replicas that this broker should have and cannot open, because their directory is "
            f"offline. {_REPLICAS}OfflineReplicaCount",
        ),
        (
            "replica_max_lag",
            broker.replication.fetchers.max_lag(),
            "How many records a follower here is behind its leader at most. "
            "Kafka: kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica",
        ),
        (
            "failed_replica_partitions",
            broker.replication.fetchers.failed_partitions,
            "Partitions that are not followed any more, because of an error that trying again "
            "does not mend. Kafka: kafka.server:type=ReplicaFetcherManager,"
            "name=FailedPartitionsCount,clientId=Replica",
        ),
        (
            "dead_replica_fetchers",
            broker.replication.fetchers.dead_count,
            "Fetchers that a mistake of this program has ended. "
            "Kafka: kafka.server:type=ReplicaFetcherManager,name=DeadThreadCount,clientId=Replica",
        ),
    ):
        yield from gauge(f"headwater_{name}", help_text, [("", value)])
    yield from _isr_metrics(broker)
    yield from _traffic_metrics(broker, partitions)


def offline_replica_count(broker: BrokerContext) -> int:
    """Replicas that the image has here and whose log is not to be had."""
    count = 0
    for topic in broker.image.topics.values():
        here = broker.partitions.of_topic(topic.name)
        for number, image in enumerate(topic.partitions):
            if broker.node_id in image.replicas:
                partition = here.get(number)
                count += partition is None or partition.log.failure is not None
    return count


def _isr_metrics(broker: BrokerContext) -> Iterator[str]:
    changes = broker.replication.isr_changes
    for name, value, help_text in (
        (
            "shrinks",
            changes.isr_shrinks,
            f"Times that a partition led here lost replicas from its ISR. {_REPLICAS}IsrShrinks",
        ),
        (
            "expands",
            changes.isr_expands,
            f"Times that replicas came into sync again. {_REPLICAS}IsrExpands",
        ),
        (
            "updates_failed",
            changes.failed_isr_updates,
            f"Changes of an ISR that the controller refused. {_REPLICAS}FailedIsrUpdates",
        ),
    ):
        yield from counter(f"headwater_isr_{name}_total", f"{help_text}PerSec", [("", value)])


def _traffic_metrics(broker: BrokerContext, partitions: list[Partition]) -> Iterator[str]:
    gone = broker.partitions.gone
    bytes_in = sum(each.replication_bytes_in for each in partitions) + gone.replication_bytes_in
    bytes_out = sum(each.replication_bytes_out for each in partitions) + gone.replication_bytes_out
    for direction, value, help_text in (
        ("in", bytes_in, "Bytes of record batches that followers here got from their leaders."),
        ("out", bytes_out, "Bytes of record batches that leaders here gave to their followers."),
    ):
        yield from counter(
            f"headwater_replication_bytes_{direction}_total",
            f"{help_text} Kafka: kafka.server:type=BrokerTopicMetrics,"
            f"name=ReplicationBytes{direction.capitalize()}PerSec",
            [("", value)],
        )
