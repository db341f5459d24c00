"""A transactional producer and a read_committed reader that send requests as clients do.

The producer speaks either version of the transaction protocol: in the first it adds partitions by
itself and keeps its epoch, in the second the broker adds them and each transaction has an epoch of
its own. Nothing is retried here but what is busy, so that a test sees the errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from headwater.base.errors import ErrorCode
from headwater.net.peer_channel import PeerChannel
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.fetch import PartitionData
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headwater.wire.records import (
    ControlType,
    Record,
    decode_batch,
    encode_batch,
    iter_batch_headers,
    read_control_type,
)
from tests.support.brokers.running_broker import FETCH_VERSION, fetch_request

_TIMEOUT_S = 30.0
_BUSY = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)

Partition = tuple[str, int]


class TransactionalProducer:
    def __init__(self, channel: PeerChannel, transactional_id: str, version: int = 2) -> None:
        self.channel = channel
        self.transactional_id = transactional_id
        self.version = version
        self.producer_id = -1
        self.epoch = -1
        self.produce_version = 12 if version == 2 else 11
        self._sequences: dict[Partition, int] = {}
        self._added: set[Partition] = set()

    async def _send(self, message: Any, version: int) -> Any:
        return await self.channel.send(message, version=version, timeout_s=_TIMEOUT_S)

    async def init(self, timeout_ms: int = 60_000) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = await self._patiently(request, 5)
        assert answer.error_code == 0, ErrorCode.from_wire(answer.error_code).name
        self._become(answer.producer_id, answer.producer_epoch)

    async def _patiently(self, request: Any, version: int) -> Any:
        for _ in range(1000):
            answer = await self._send(request, version)
            if answer.error_code not in _BUSY:
                return answer
            await asyncio.sleep(0.01)
        raise AssertionError(f"{request} is not answered")

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch
        self._added.clear()

    async def add(self, *partitions: Partition) -> list[ErrorCode]:
        """Tell the coordinator of partitions, as producers of the first version do."""
        topics = [AddPartitionsToTxnTopic(name=name, partitions=[n]) for name, n in partitions]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        for _ in range(1000):
            answer = await self._send(request, 3)
            codes = [
                ErrorCode.from_wire(result.partition_error_code)
                for topic in answer.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            ]
            if not set(codes) & set(_BUSY):
                self._added.update(partitions)
                return codes
            await asyncio.sleep(0.01)
        raise AssertionError("the partitions were not added")

    def batch(self, partition: Partition, values: Sequence[bytes], timestamp_ms: int) -> bytes:
        """The next batch of a partition; its numbers count as used."""
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(values)
        return encode_batch(
            [Record(number, timestamp_ms, b"k", value) for number, value in enumerate(values)],
            base_offset=0,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )

    def request(self, batches: dict[Partition, bytes], acks: int = -1) -> ProduceRequest:
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=acks,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name=name, partition_data=[PartitionProduceData(index=number, records=batch)]
                )
                for (name, number), batch in batches.items()
            ],
        )

    async def produce(
        self, *partitions: Partition, values: Sequence[bytes], timestamp_ms: int
    ) -> list[ErrorCode]:
        """Write the same values to partitions with one request; the answer of each."""
        if self.version == 1:
            missing = [each for each in partitions if each not in self._added]
            if missing:
                assert set(await self.add(*missing)) == {ErrorCode.NONE}
        batches = {each: self.batch(each, values, timestamp_ms) for each in partitions}
        return await self.send_batches(batches)

    async def send_batches(self, batches: dict[Partition, bytes]) -> list[ErrorCode]:
        answer = await self._send(self.request(batches), self.produce_version)
        return produce_codes(answer)

    async def end(self, *, commit: bool) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = await self._patiently(request, 5 if self.version == 2 else 3)
        code = ErrorCode.from_wire(answer.error_code)
        if code is ErrorCode.NONE:
            self._added.clear()
            if self.version == 2:
                self._become(answer.producer_id, answer.producer_epoch)
        return code


def produce_codes(answer: Any) -> list[ErrorCode]:
    return [
        ErrorCode.from_wire(each.error_code)
        for topic in answer.responses
        for each in topic.partition_responses
    ]


def marker_request(
    producer_id: int,
    epoch: int,
    *partitions: Partition,
    commit: bool = True,
    coordinator_epoch: int = 0,
) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=[number])
            for name, number in partitions
        ],
    )
    return WriteTxnMarkersRequest(markers=[marker])


def marker_codes(answer: Any) -> list[ErrorCode]:
    return [
        ErrorCode.from_wire(result.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for result in topic.partitions
    ]


async def fetch_committed(
    channel: PeerChannel, partition: Partition, offset: int, max_bytes: int = 1 << 20
) -> PartitionData:
    request = fetch_request(
        {partition: offset}, partition_max_bytes=max_bytes, max_bytes=max_bytes, isolation_level=1
    )
    response = await channel.send(request, version=FETCH_VERSION, timeout_s=_TIMEOUT_S)
    data: PartitionData = response.responses[0].partitions[0]
    assert data.error_code == 0
    return data


async def read_committed(
    channel: PeerChannel, partition: Partition, offset: int = 0, max_bytes: int = 1 << 20
) -> list[bytes]:
    """All values that a read_committed consumer gives to its application, from an offset on."""
    found: list[bytes] = []
    while True:
        data = await fetch_committed(channel, partition, offset, max_bytes)
        records, next_offset = committed_records(data, offset)
        found += [each.value or b"" for each in records]
        if next_offset == offset:
            return found
        offset = next_offset


def committed_records(data: PartitionData, offset: int) -> tuple[list[Record], int]:
    """What a consumer makes of one fetch, and the offset it goes on from."""
    view = memoryview(bytes(data.records))  # type: ignore[arg-type]
    aborted = sorted(data.aborted_transactions or [], key=lambda each: each.first_offset)
    under_way: set[int] = set()
    found: list[Record] = []
    position = 0
    for position, header in _whole_batches(view):
        while aborted and aborted[0].first_offset <= header.last_offset:
            under_way.add(aborted.pop(0).producer_id)
        records = decode_batch(view, position)
        if header.is_control:
            if records and read_control_type(records[0]) is ControlType.ABORT:
                under_way.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in under_way):
            found += [each for each in records if each.offset >= offset]
        offset = max(offset, header.next_offset)
    return found, offset


def _whole_batches(view: memoryview) -> list[tuple[int, Any]]:
    """A fetch may end in the middle of a batch, which comes again with the next one."""
    position = 0
    batches = []
    while len(view) - position >= 61:
        size = 12 + int.from_bytes(view[position + 8 : position + 12], "big")
        if size > len(view) - position:
            break
        _, header = next(iter_batch_headers(view[position : position + size]))
        batches.append((position, header))
        position += size
    return batches
