"""Carries the outcome of decided transactions to the partitions that they touched.

A coordinator hands over a transaction when its PREPARE record is safe. The leaders of its
partitions get a WriteTxnMarkers request each; transactions that are decided while requests to a
broker are under way share the next one. A partition that cannot take its marker now, because it
has no leader, or another one, or too few replicas, is tried again after a while, for as long as
it takes: nobody reads past an open transaction, so giving up is no choice. Only a topic that was
deleted needs no marker any more. When every partition has its marker the coordinator hears of it,
and writes that the transaction is complete.

Two things end a delivery early: this broker no longer coordinates the transaction, or a partition
says so (TRANSACTION_COORDINATOR_FENCED, INVALID_PRODUCER_EPOCH). Another coordinator has found
the PREPARE record then, and delivers by itself; a marker that is written twice does no harm.

The owner is the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.cluster.image.image import NO_LEADER, ClusterImage
from headwater.coordinator.txn.transaction_metadata import PreparedTransaction
from headwater.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_logger = logging.getLogger(__name__)

#: Requests to one broker that are under way at once; what comes then waits, and goes together.
_REQUESTS_MAX: Final = 4
_RETRY_MIN_S: Final = 0.02
_RETRY_MAX_S: Final = 1.0
#: The leader waits that much less for its replicas than is waited here for the leader.
_ANSWER_GRACE_S: Final = 5.0

_FENCED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)
#: A coordinator that answers this has moved, or is loading: then it finds the transaction itself.
_ELSEWHERE: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class _Delivery:
    """A transaction on its way, and the partitions that do not have their marker yet."""

    __slots__ = ("attempts", "is_over", "prepared", "remaining")

    def __init__(self, prepared: PreparedTransaction) -> None:
        self.prepared = prepared
        self.remaining = set(prepared.partitions)
        self.attempts = 0
        #: Whether it is done, or has become somebody else's.
        self.is_over = False

    def next_delay_s(self) -> float:
        self.attempts += 1
        return float(min(_RETRY_MIN_S * 2 ** (self.attempts - 1), _RETRY_MAX_S))


#: What goes to one broker with the next request.
_Outgoing = dict[_Delivery, list[TopicPartition]]


class MarkerSender:
    def __init__(self, context: BrokerContext, image: Callable[[], ClusterImage]) -> None:
        """`image` is the last that was heard of: a coordinator takes over before all see it."""
        self._context = context
        self._image = image
        self._deliveries: dict[str, _Delivery] = {}
        self._outgoing: dict[int, _Outgoing] = {}
        self._request_counts: dict[int, int] = {}
        #: In the order of their start, which is the one in which they are ended.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_closed = False

    def __len__(self) -> int:
        """How many transactions are decided, and not complete."""
        return len(self._deliveries)

    def deliver(self, prepared: PreparedTransaction) -> None:
        """See to it that a transaction's partitions get their markers; again does no harm."""
        known = self._deliveries.get(prepared.transactional_id)
        if known is not None:
            if known.prepared == prepared:
                return
            known.is_over = True
        delivery = self._deliveries[prepared.transactional_id] = _Delivery(prepared)
        # In an order of their own: sets are ordered otherwise in every process.
        self._route(delivery, sorted(prepared.partitions))

    async def close(self) -> None:
        """Stop delivering; whoever coordinates next takes it up again."""
        self._is_closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._context.background.start("transaction markers", work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    # -- to the leaders --------------------------------------------------------------------------

    def _route(self, delivery: _Delivery, partitions: Iterable[TopicPartition]) -> None:
        """Hand partitions over to the requests for those that lead them now."""
        if delivery.is_over or self._is_closed:
            return
        prepared = delivery.prepared
        coordinator = self._context.transactions
        if not coordinator.is_led(prepared.transactional_id, prepared.coordinator_epoch):
            self._end(delivery)
            return
        topics = self._image().topics
        leaderless = []
        for partition in partitions:
            topic = topics.get(partition.topic)
            if topic is None or partition.partition >= len(topic.partitions):
                delivery.remaining.discard(partition)
                continue
            leader = topic.partitions[partition.partition].leader
            if leader == NO_LEADER:
                leaderless.append(partition)
            else:
                self._enqueue(leader, delivery, partition)
        if leaderless:
            self._retry(delivery, leaderless)
        elif not delivery.remaining:
            self._spawn(self._complete(delivery))

    def _enqueue(self, leader: int, delivery: _Delivery, partition: TopicPartition) -> None:
        outgoing = self._outgoing.get(leader)
        if outgoing is None:
            outgoing = self._outgoing[leader] = {}
            count = self._request_counts.get(leader, 0)
            if count < _REQUESTS_MAX:
                self._request_counts[leader] = count + 1
                self._spawn(self._send_all(leader))
        outgoing.setdefault(delivery, []).append(partition)

    async def _send_all(self, leader: int) -> None:
        """Send what there is for a broker, and what has come for it meanwhile."""
        try:
            while outgoing := self._outgoing.pop(leader, None):
                await self._send(leader, outgoing)
        finally:
            self._request_counts[leader] -= 1

    async def _send(self, leader: int, outgoing: _Outgoing) -> None:
        outgoing = {each: some for each, some in outgoing.items() if not each.is_over}
        if not outgoing:
            return
        timeout_s = self._context.settings.integer("request.timeout.ms") / 1000
        request = WriteTxnMarkersRequest(
            markers=[_marker(each.prepared, some) for each, some in outgoing.items()]
        )
        try:
            response = await self._context.channels.send(
                leader, request, timeout_s + _ANSWER_GRACE_S
            )
        except KafkaError as error:
            _logger.debug("broker %d took no transaction markers: %s", leader, error)
            codes: _Codes = {}
        else:
            codes = _codes(response)
        for delivery, partitions in outgoing.items():
            self._settle(delivery, partitions, codes.get(delivery.prepared.producer.producer_id))

    def _settle(
        self,
        delivery: _Delivery,
        partitions: list[TopicPartition],
        codes: Mapping[TopicPartition, ErrorCode] | None,
    ) -> None:
        """Take note of what a broker said to the markers of one transaction."""
        again = []
        for partition in partitions:
            code = None if codes is None else codes.get(partition)
            if code is ErrorCode.NONE:
                delivery.remaining.discard(partition)
            elif code is not None and code in _FENCED:
                _logger.warning(
                    "%s refuses the marker of transaction %s with %s",
                    partition,
                    delivery.prepared.transactional_id,
                    code.name,
                )
                self._end(delivery)
                return
            else:
                again.append(partition)
        if again:
            self._retry(delivery, again)
        elif not delivery.remaining and not delivery.is_over:
            self._spawn(self._complete(delivery))

    def _retry(self, delivery: _Delivery, partitions: list[TopicPartition]) -> None:
        self._spawn(self._route_later(delivery, partitions))

    async def _route_later(self, delivery: _Delivery, partitions: list[TopicPartition]) -> None:
        await asyncio.sleep(delivery.next_delay_s())
        self._route(delivery, partitions)

    # -- back to the coordinator -----------------------------------------------------------------

    async def _complete(self, delivery: _Delivery) -> None:
        """Tell the coordinator that all markers are written, until it has written that down."""
        prepared = delivery.prepared
        while not delivery.is_over:
            try:
                await self._context.transactions.write(
                    prepared.transactional_id,
                    lambda shard, now_ms: shard.markers_written(prepared, now_ms),
                )
            except KafkaError as error:
                if error.retriable and error.code not in _ELSEWHERE:
                    await asyncio.sleep(delivery.next_delay_s())
                    continue
                _logger.info(
                    "transaction %s was not completed here: %s", prepared.transactional_id, error
                )
            self._end(delivery)

    def _end(self, delivery: _Delivery) -> None:
        delivery.is_over = True
        transactional_id = delivery.prepared.transactional_id
        if self._deliveries.get(transactional_id) is delivery:
            del self._deliveries[transactional_id]


#: What a broker said, by producer id and partition.
_Codes = Mapping[int, Mapping[TopicPartition, ErrorCode]]


def _marker(prepared: PreparedTransaction, partitions: list[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for name, number in partitions:
        topics.setdefault(name, WritableTxnMarkerTopic(name=name)).partition_indexes.append(number)
    return WritableTxnMarker(
        producer_id=prepared.producer.producer_id,
        producer_epoch=prepared.producer.producer_epoch,
        transaction_result=prepared.is_commit,
        coordinator_epoch=prepared.coordinator_epoch,
        topics=list(topics.values()),
    )


def _codes(response: WriteTxnMarkersResponse) -> _Codes:
    return {
        marker.producer_id: {
            TopicPartition(topic.name, result.partition_index): ErrorCode.from_wire(
                result.error_code
            )
            for topic in marker.topics
            for result in topic.partitions
        }
        for marker in response.markers
    }
