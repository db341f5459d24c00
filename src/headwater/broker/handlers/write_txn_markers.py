"""WriteTxnMarkers (key 27): a transaction coordinator ends transactions in partitions.

A marker counts when it is as safe as an acks=all produce would be. All markers of a request are
written at once, in their order, and then waited for together. Those in `__consumer_offsets` go
through the group coordinator, which shows the offsets of the transaction when it is committed.

For brokers; clients may only abort what hangs, see `marker_rights`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.access.marker_rights import check_client_may_end, check_coordinator_epoch
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.topics.coordinator_topics import OFFSETS_TOPIC
from headwater.coordinator.outcome import ProducerIdentity
from headwater.replication.partition.options import ACKS_ALL
from headwater.replication.waiting.delayed_produce import (
    AwaitedAppend,
    await_append,
    when_settled,
)
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headwater.wire.records import ControlType, encode_end_transaction_marker

#: What the group coordinator says where the leader of a partition would say that it is not that.
_NOT_LEADER: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


async def handle(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    markers = _Markers(context)
    response = WriteTxnMarkersResponse(markers=[markers.write(each) for each in request.markers])
    await markers.wait()
    return response


class _Markers:
    """The markers of one request; what becomes of each goes into its result."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._appends: list[tuple[AwaitedAppend, WritableTxnMarkerPartitionResult]] = []
        self._for_groups: list[tuple[WritableTxnMarker, int, WritableTxnMarkerPartitionResult]] = []

    def write(self, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
        """Write one transaction's marker to its partitions; whether it is safe is told later."""
        topics = []
        for topic in marker.topics:
            results = []
            for number in topic.partition_indexes:
                result = WritableTxnMarkerPartitionResult(partition_index=number)
                results.append(result)
                if topic.name == OFFSETS_TOPIC:
                    self._for_groups.append((marker, number, result))
                else:
                    self._append(marker, topic.name, number, result)
            topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
        return WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)

    def _append(
        self,
        marker: WritableTxnMarker,
        topic: str,
        number: int,
        result: WritableTxnMarkerPartitionResult,
    ) -> None:
        broker = self._context.broker
        now_ms = broker.clock.wall_ms()
        batch = encode_end_transaction_marker(
            _control_type(marker),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=now_ms,
        )
        try:
            self._check_right(marker, topic, number)
            partition = broker.partitions.get(topic, number)
            written = partition.append(
                bytearray(batch), acks=ACKS_ALL, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
            )
        except KafkaError as error:
            self._refuse(result, error)
            return
        self._appends.append((await_append(partition, written.last_offset + 1), result))

    async def _write_to_groups(
        self, marker: WritableTxnMarker, number: int, result: WritableTxnMarkerPartitionResult
    ) -> None:
        producer = ProducerIdentity(marker.producer_id, marker.producer_epoch)
        try:
            self._check_right(marker, OFFSETS_TOPIC, number)
            await self._context.broker.groups.end_transaction(
                number, producer, _control_type(marker), marker.coordinator_epoch
            )
        except KafkaError as error:
            if error.code in _NOT_LEADER:
                error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, str(error))
            self._refuse(result, error)

    def _check_right(self, marker: WritableTxnMarker, topic: str, number: int) -> None:
        broker = self._context.broker
        if self._context.is_broker:
            check_coordinator_epoch(marker, broker.image)
        else:
            check_client_may_end(marker, broker.partitions.get(topic, number))

    async def wait(self) -> None:
        """Return when all that was written is safe, or is known not to be."""
        await asyncio.gather(
            self._wait_for_appends(), *(self._write_to_groups(*each) for each in self._for_groups)
        )

    async def _wait_for_appends(self) -> None:
        if not self._appends:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def respond() -> None:
            if not done.done():
                done.set_result(None)

        broker = self._context.broker
        timeout_ms = broker.settings.integer("request.timeout.ms")
        appends = [append for append, _ in self._appends]
        when_settled(broker.parked.produce, appends, timeout_ms, respond)
        await done
        for append, result in self._appends:
            if append.error is not None:
                self._refuse(result, append.error)

    def _refuse(self, result: WritableTxnMarkerPartitionResult, error: KafkaError) -> None:
        result.error_code = error.code


def _control_type(marker: WritableTxnMarker) -> ControlType:
    return ControlType.COMMIT if marker.transaction_result else ControlType.ABORT


API = ApiHandler(CARDS[ApiKey.WRITE_TXN_MARKERS], handle)
