"""The answer to a fetch: what was read, in the shape of the protocol.

Records stay in their files: the answer holds regions, which the connection sends; only small pieces
between hidden batches are read and joined. What went out is counted here, apart for consumers and
for followers. A reader that came to the wrong broker is told where to go (`current_leaders`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.peers.current_leaders import CurrentLeaders
from headwater.replication.fetch import FetchedPartition, FetchLimits
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.partition_read import NOT_DELAYED, PartitionRead
from headwater.storage.visible_reads import JoinedRegion
from headwater.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext

_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class FetchAnswer:
    """Made for one answer."""

    __slots__ = ("_context", "_is_follower", "_leaders", "_limits")

    def __init__(self, context: RequestContext, limits: FetchLimits) -> None:
        self._context = context
        self._limits = limits
        self._is_follower = limits.is_follower
        self._leaders = CurrentLeaders(context)

    def response(self, session_id: int, fetched: Iterable[FetchedPartition]) -> FetchResponse:
        response = FetchResponse(
            session_id=session_id,
            responses=[
                FetchableTopicResponse(
                    topic=topic,
                    topic_id=topic_id,
                    partitions=[self._partition_data(each) for each in some],
                )
                for (topic, topic_id), some in groupby(
                    fetched, lambda each: (each.target.topic, each.target.topic_id)
                )
            ],
        )
        response.node_endpoints = [
            NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in self._leaders.endpoints()
        ]
        return response

    def _partition_data(self, fetched: FetchedPartition) -> PartitionData:
        index = fetched.target.partition
        if fetched.error is not None:
            return self._error_data(fetched, fetched.error)
        partition, read = fetched.partition, fetched.read
        if fetched.diverging is not None and partition is not None:
            log = partition.log
            is_told_all = self._is_follower
            return PartitionData(
                partition_index=index,
                high_watermark=log.high_watermark if is_told_all else log.visible_high_watermark,
                last_stable_offset=(
                    log.last_stable_offset if is_told_all else log.visible_stable_offset
                ),
                log_start_offset=partition.log_start_offset,
                diverging_epoch=EpochEndOffset(
                    epoch=fetched.diverging.epoch, end_offset=fetched.diverging.end_offset
                ),
                aborted_transactions=None,
                records=b"",
            )
        if fetched.read_replica is not None and partition is not None:
            return PartitionData(
                partition_index=index,
                high_watermark=partition.log.visible_high_watermark,
                last_stable_offset=partition.log.visible_stable_offset,
                log_start_offset=partition.log_start_offset,
                preferred_read_replica=fetched.read_replica,
                aborted_transactions=None,
                records=b"",
            )
        if read is None or partition is None:
            return PartitionData(partition_index=index, aborted_transactions=None, records=b"")
        return self._read_data(index, partition, read)

    def _read_data(self, index: int, partition: Partition, read: PartitionRead) -> PartitionData:
        region = read.log_read.region
        records = region.read() if isinstance(region, JoinedRegion) else region
        if self._is_follower:
            limits = self._limits
            partition.replication_bytes_out += read.log_read.size
            if limits.throttles is not None:
                limits.throttles.sent(partition, limits.replica_id, read.log_read.size)
        else:
            partition.bytes_out += read.log_read.size
        aborted = None
        if read.aborted is not None:
            aborted = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in read.aborted
            ]
        data = PartitionData(
            partition_index=index,
            high_watermark=read.high_watermark,
            last_stable_offset=read.last_stable_offset,
            log_start_offset=read.log_start_offset,
            aborted_transactions=aborted,
            records=b"" if records is None else records,
        )
        if read.shown_end != NOT_DELAYED:
            # A follower that leads one day must not take back what was shown. Kafka has this field
            # for replicas of its metadata alone, which no partition here is.
            data.snapshot_id.end_offset = read.shown_end
        return data

    def _error_data(self, fetched: FetchedPartition, error: KafkaError) -> PartitionData:
        # Counted here: to look through every answer of Fetch for errors would cost each of them.
        self._context.record_error(error.code)
        target = fetched.target
        data = PartitionData(
            partition_index=target.partition,
            error_code=error.code,
            high_watermark=-1,
            # As Kafka has it: null if there is such a partition, empty if not.
            aborted_transactions=[] if fetched.partition is None else None,
            records=b"",
        )
        if error.code in _LEADER_ERRORS:
            topic = target.topic or self._context.broker.image.topic_names.get(target.topic_id, "")
            leader = self._leaders.find(topic, target.partition, fetched.partition)
            data.current_leader = LeaderIdAndEpoch(
                leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
            )
        return data
