"""Who may end transactions in a partition, and how.

Coordinators do, as brokers. A coordinator's epoch is a leader epoch of `__transaction_state`, and
partitions refuse older ones than they have seen. So a marker with an epoch that the controller has
never given out would lock the real coordinators out for good: it has to wait until this broker has
heard of that epoch, which it soon has if there is such a leader.

A client may end a transaction that hangs, as Kafka's and our tools do: abort one that is open, with
the epochs that DescribeProducers shows for it. That raises no epoch, so it stands in nobody's way.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.topics.coordinator_topics import TRANSACTIONS_TOPIC
from headwater.cluster.image.image import ClusterImage
from headwater.replication.partition.partition import Partition
from headwater.wire.messages.write_txn_markers import WritableTxnMarker

#: A producer's first transaction in a partition has seen no coordinator; tools then send this.
_FIRST_EPOCH = 0


def check_coordinator_epoch(marker: WritableTxnMarker, image: ClusterImage) -> None:
    """Raise unless a broker can coordinate in that epoch, as far as is known here."""
    epoch = marker.coordinator_epoch
    topic = image.topics.get(TRANSACTIONS_TOPIC)
    partitions = () if topic is None else topic.partitions
    if epoch > _FIRST_EPOCH and all(each.leader_epoch < epoch for each in partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"No partition of {TRANSACTIONS_TOPIC} is known to be led in epoch {epoch}.",
        )


def check_client_may_end(marker: WritableTxnMarker, partition: Partition) -> None:
    """Raise unless the marker aborts an open transaction, and does nothing else."""
    partition.check_leader()
    producer = f"producer {marker.producer_id} in {partition.topic_partition}"
    if marker.transaction_result:
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Only its coordinator commits a transaction."
        )
    entry = partition.log.producer_states.entry(marker.producer_id)
    if entry is None or entry.transaction_first_offset is None:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"No transaction is open of {producer}.")
    if marker.producer_epoch != entry.producer_epoch:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"The epoch is not that of {producer}.")
    seen = max(entry.coordinator_epoch, _FIRST_EPOCH)
    if marker.coordinator_epoch != seen:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED
            if marker.coordinator_epoch < seen
            else ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"The coordinator epoch is not the one that {producer} was last ended with.",
        )
