"""Hands out the records of one fetched partition, in pieces of any size.

Decoding happens here, when records are asked for: in the thread that polls. Several batches are
decoded together, because that is much cheaper than one by one. What goes wrong (a damaged batch, a
deserializer that fails) is raised only when all records before it have been handed out, and again
each time, so that nothing is left out unless the user seeks.

Records leave as objects or as columns, and a user may change between the two at any record: then
what was fetched is read once more, from the position on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from headwater.client.columns.consumer_records import columns_to_records
from headwater.client.columns.decoded_columns import RecordColumns
from headwater.client.columns.fetched_columns import decode_fetched
from headwater.client.columns.record_columns import ARRAY_RECORDS_MIN, decode_batches
from headwater.client.consumer.consumer_record import ConsumerRecord
from headwater.client.consumer.deserializers import Deserializers
from headwater.client.consumer.partition_state import PartitionState
from headwater.client.fetched_partition import FetchedPartition
from headwater.wire.records import BatchHeader, TimestampType, decode_batch

#: Batches are decoded together until they have so many records.
GROUP_RECORDS: Final = 4000

RawBatch = tuple[memoryview, BatchHeader | None]


class RecordReader:
    """Of one partition's fetch; `offset` is the position after what was handed out."""

    __slots__ = (
        "_ahead",
        "_check_crc",
        "_columns",
        "_deserializers",
        "_failure",
        "_fetched",
        "_group",
        "_groups",
        "_index",
        "_raw",
        "_records",
        "_with_headers",
        "is_exhausted",
        "leader_epoch",
        "offset",
        "size_bytes",
        "state",
    )

    def __init__(
        self,
        state: PartitionState,
        fetched: FetchedPartition,
        deserializers: Deserializers,
        *,
        check_crc: bool = True,
    ) -> None:
        self.state = state
        self.offset = fetched.fetch_offset
        self.leader_epoch = state.offset_epoch
        self.is_exhausted = False
        self.size_bytes = fetched.size_bytes
        self._fetched = fetched
        self._deserializers = deserializers
        self._check_crc = check_crc
        self._raw = fetched.raw_batches()
        #: Batches that were looked at and are not decoded yet; those that are being handed out.
        self._ahead: deque[RawBatch] = deque()
        self._group: Sequence[RawBatch] = ()
        # What the group was decoded to and is left of it, in one of two forms.
        self._records: list[ConsumerRecord] = []
        self._index = 0
        self._columns: RecordColumns | None = None
        #: What comes after it if columns are taken, with headers or without.
        self._groups: Iterator[RecordColumns] | None = None
        self._with_headers = True
        self._failure: Exception | None = None

    # -- records ---------------------------------------------------------------------------------

    def take(self, count: int) -> list[ConsumerRecord]:
        """The next records, at most `count`; fewer only at the end or before a failure."""
        if self._groups is not None:
            self._groups = None
            self._forget_group()
            self._ahead.clear()
            self._raw = self._fetched.raw_batches()
        taken: list[ConsumerRecord] = []
        while True:
            part = self._take_part(count - len(taken))
            taken = taken + part if taken else part
            if len(taken) == count or not self._next_group(GROUP_RECORDS, bool(taken)):
                break
            try:
                self._decode_group()
            except Exception as error:
                self._failure = error
        if taken:
            self._moved(taken[-1].offset, taken[-1].leader_epoch)
        else:
            self._moved(None, -1)
        return taken

    def _take_part(self, count: int) -> list[ConsumerRecord]:
        """What is left of the group. Objects are made only when they are taken, and die young."""
        start = self._index
        self._index += count
        if self._columns is None:
            records = self._records[start : self._index]
            if self._index >= len(self._records):
                self._forget_group()
            return records
        columns = self._columns.part(start, self._index)
        if self._index >= len(self._columns):
            self._forget_group()
        return self._made(columns)

    def _decode_group(self) -> None:
        headers = [header for _, header in self._group if header is not None]
        if sum([header.record_count for header in headers]) >= ARRAY_RECORDS_MIN:
            self._columns = self._decoded_columns()
            return
        # Few records are decoded faster one by one.
        topic, partition = self.state.topic_partition
        records: list[ConsumerRecord] = []
        for place, (batch, header) in enumerate(self._group):
            kind = TimestampType.CREATE_TIME if header is None else header.timestamp_type
            epoch = -1 if header is None else header.leader_epoch
            try:
                decoded = decode_batch(batch, check_crc=self._check_crc)
            except Exception:
                if not records:
                    raise
                self._put_back(place)
                break
            records += [
                ConsumerRecord(topic, partition, offset, time, kind, key, value, headers_, epoch)
                for offset, time, key, value, headers_ in decoded
                if offset >= self.offset
            ]
        self._records = records if self._deserializers.are_none else self._deserialized(records)

    def _made(self, columns: RecordColumns) -> list[ConsumerRecord]:
        topic, partition = self.state.topic_partition
        if self._deserializers.are_none:
            return columns_to_records(topic, partition, columns)
        try:
            return columns_to_records(
                topic,
                partition,
                columns,
                deserialize_key=self._deserializers.key_of(topic),
                deserialize_value=self._deserializers.value_of(topic),
            )
        except Exception:
            # Which record it was is found out one by one.
            return self._deserialized(columns_to_records(topic, partition, columns))

    def _deserialized(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        topic = self.state.topic_partition.topic
        good, self._failure = self._deserializers.apply(topic, records)
        if self._failure is not None:
            self._forget_group()
        return good

    # -- columns ---------------------------------------------------------------------------------

    def take_columns(self, count: int, *, with_headers: bool = True) -> RecordColumns | None:
        """The next records of one group, at most `count`; None at the end."""
        if self._groups is None or with_headers is not self._with_headers:
            self._forget_group()
            self._with_headers = with_headers
            self._groups = decode_fetched(
                self._fetched, self.offset, check_crc=self._check_crc, with_headers=with_headers
            )
        if self._columns is None or self._index >= len(self._columns):
            self._forget_group()
            self._columns = self._next_columns(self._groups)
        if self._columns is None:
            self.is_exhausted = True
            self._moved(None, -1)
            return None
        taken = self._columns.part(self._index, self._index + count)
        self._index += count
        self._moved(int(taken.offsets[-1]), taken.runs[-1].leader_epoch)
        return taken

    def _next_columns(self, groups: Iterator[RecordColumns]) -> RecordColumns | None:
        if self._failure is None:
            try:
                return next(groups, None)
            except Exception as error:
                self._failure = error
        raise self._failure

    def _decoded_columns(self) -> RecordColumns:
        """Those of the group from the position on."""
        headed = [(batch, header) for batch, header in self._group if header is not None]
        columns = decode_batches(headed, check_crc=self._check_crc)
        self._put_back(columns.batch_count)
        return columns.from_offset(self.offset)

    # -- both ------------------------------------------------------------------------------------

    def _next_group(self, record_count: int, has_taken: bool) -> bool:
        """Go on to the next batches; False at the end, and before a failure if some were taken."""
        if self._failure is None:
            try:
                self._group = self._read_group(record_count)
            except Exception as error:
                self._failure = error
        if self._failure is not None:
            if has_taken:
                return False
            raise self._failure
        self.is_exhausted = not self._group
        return not self.is_exhausted

    def _read_group(self, wanted_count: int) -> list[RawBatch]:
        """Batches to be decoded together; one of an old format stands alone."""
        group: list[RawBatch] = []
        record_count = 0
        while record_count < wanted_count:
            batch = self._ahead.popleft() if self._ahead else next(self._raw, None)
            if batch is None:
                break
            header = batch[1]
            if header is None:
                if group:
                    self._ahead.appendleft(batch)
                else:
                    group.append(batch)
                break
            if header.base_offset < header.next_offset <= self.offset:
                # It was handed out in the other form.
                continue
            record_count += header.record_count
            group.append(batch)
        return group

    def _forget_group(self) -> None:
        self._group = ()
        self._columns = None
        self._records = []
        self._index = 0

    def _put_back(self, done_count: int) -> None:
        """Only so many batches of the group were decoded: the others are for the next one."""
        self._ahead.extendleft(reversed(self._group[done_count:]))
        self._group = self._group[:done_count]

    def _moved(self, last_offset: int | None, leader_epoch: int) -> None:
        """The record of that offset is the last one handed out, None if there was none."""
        if self.is_exhausted:
            self.offset = self._fetched.next_offset
        elif last_offset is not None:
            self.offset = last_offset + 1
        if last_offset is not None:
            self.leader_epoch = leader_epoch
