"""Finds the record of one place, or says in a sentence why there is none.

A record is one fetch away. What became of its transaction is told by the list of aborted ones that
comes with another, and by the marker behind it, which is looked for a few fetches far.
"""

from __future__ import annotations

from typing import Final

from headwater.base.message_id import MessageId
from headwater.client.errors import UnknownTopicError
from headwater.client.fetch.fetched_partition import MAGIC_POSITION, FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.kafka_errors import OffsetOutOfRangeError
from headwater.delivery.trace.batch_reader import (
    ONE_BATCH_BYTES,
    SCAN_BYTES,
    BatchReader,
    ReadBudget,
)
from headwater.delivery.trace.station import Station, TransactionState
from headwater.wire.delayed.copies import DELIVERY_PRODUCER_ID
from headwater.wire.delayed.headers import DELAYED_OFFSET_HEADER
from headwater.wire.records import (
    MAGIC_V2,
    BatchHeader,
    decode_batch,
    read_batch_header,
    read_control_type,
)

#: A marker that lies further behind is not looked for.
_MARKER_BYTES: Final = 4 << 20
#: Nor is the copy of a delayed message.
_COPY_BYTES: Final = 64 << 20


class NoSuchRecordError(UnknownTopicError):
    """There is no record at a place; the sentence says why, as far as that can be told."""


class MarkerError(NoSuchRecordError):
    """A transaction ends there."""


class PlaceReader:
    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    async def read(self, place: MessageId) -> Station | None:
        """The record of a place; None if the place is there and nothing in it is shown.

        Raises `NoSuchRecordError` where there cannot be any.
        """
        partition = place.topic_partition
        bounds = (await self._reader.bounds([partition]))[partition]
        if place.offset < bounds.first:
            raise NoSuchRecordError(
                f"{place} was deleted: {partition} begins at offset {bounds.first}."
            )
        if place.offset >= bounds.end:
            return None
        try:
            fetched = await self._reader.fetch(partition, place.offset, ONE_BATCH_BYTES)
        except OffsetOutOfRangeError:
            return None
        return await self._station(place, fetched)

    async def record_at_end(self, place: MessageId) -> MessageId | None:
        """The record of a place, or that in front of the marker there, if readers are given it."""
        try:
            return None if await self.read(place) is None else place
        except MarkerError:
            before = place._replace(offset=max(place.offset - 1, 0))
        except NoSuchRecordError:
            return None
        try:
            return None if await self.read(before) is None else before
        except NoSuchRecordError:
            return None

    async def _station(self, place: MessageId, fetched: FetchedPartition) -> Station | None:
        begin = 0
        data = memoryview(fetched.buffer)
        for end in fetched.batch_ends:
            batch, begin = data[begin:end], end
            header = read_batch_header(batch) if batch[MAGIC_POSITION] == MAGIC_V2 else None
            if header is not None and header.base_offset > place.offset:
                return None
            if header is not None and header.last_offset < place.offset:
                continue
            if header is not None and header.is_control:
                kind = read_control_type(decode_batch(batch)[0])
                raise MarkerError(
                    f"{place} holds no record: it is the marker that ends a transaction of "
                    f"producer {header.producer_id} ({kind.name.lower()})."
                )
            for record in decode_batch(batch):
                if record.offset == place.offset:
                    station = Station(place, record, header)
                    return await self._with_transaction(station)
        return None

    async def _with_transaction(self, station: Station) -> Station:
        header, place = station.header, station.place
        if header is None or not header.is_transactional:
            return station
        fetched = await self._reader.fetch(
            place.topic_partition,
            header.base_offset,
            ONE_BATCH_BYTES,
            IsolationLevel.READ_COMMITTED,
        )
        if fetched.last_stable_offset <= place.offset:
            return _ended(station, TransactionState.OPEN, None)
        is_shown = any(
            found is not None and found.base_offset == header.base_offset
            for _, _, found in fetched.visible_batches()
        )
        state = TransactionState.COMMITTED if is_shown else TransactionState.ABORTED
        return _ended(station, state, await self._marker_ms(place, header))

    async def _marker_ms(self, place: MessageId, header: BatchHeader) -> int | None:
        """When the transaction ended, if its marker is near."""
        offset, left_bytes = header.next_offset, _MARKER_BYTES
        while left_bytes > 0:
            fetched = await self._reader.fetch(place.topic_partition, offset, SCAN_BYTES)
            left_bytes -= max(fetched.size_bytes, 1)
            data, begin = memoryview(fetched.buffer), 0
            for end in fetched.batch_ends:
                batch, begin = data[begin:end], end
                if batch[MAGIC_POSITION] != MAGIC_V2:
                    continue
                found = read_batch_header(batch)
                if found.is_control and found.producer_id == header.producer_id:
                    return found.max_timestamp
            if fetched.next_offset <= offset:
                break
            offset = fetched.next_offset
        return None

    async def find_copy(self, place: MessageId) -> Station | None:
        """The record as which a delayed message was shown, if it lies within some 64 MB."""
        partition = place.topic_partition
        bounds = (await self._reader.bounds([partition]))[partition]
        records = self._reader.records(
            partition,
            max(place.offset + 1, bounds.first),
            bounds.end,
            ReadBudget(_COPY_BYTES),
            lambda header, _: header is not None and header.producer_id == DELIVERY_PRODUCER_ID,
        )
        offset = str(place.offset).encode()
        async for header, record in records:
            if dict(record.headers).get(DELAYED_OFFSET_HEADER) == offset:
                return Station(place._replace(offset=record.offset), record, header)
        return None


def _ended(station: Station, state: TransactionState, ended_ms: int | None) -> Station:
    has_ended = state in (TransactionState.COMMITTED, TransactionState.ABORTED)
    return Station(
        station.place, station.record, station.header, state, ended_ms if has_ended else None
    )
