"""Hands out the records of one fetched partition, in pieces of any size.

Decoding happens here, when records are asked for: in the thread that polls. All batches of a fetch
are decoded together, because that is much cheaper than one by one, unless they have few records.
What goes wrong (a damaged batch, a deserializer that fails) is raised only when all records before
it have been handed out, and again each time, so that nothing is left out unless the user seeks.

Records leave as objects or as columns, and a user may change between the two at any record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from headwater.base.errors import KafkaError
from headwater.client.columns.decoding.consumer_records import columns_to_records
from headwater.client.columns.decoding.decoded_columns import RecordColumns
from headwater.client.columns.decoding.fetched_columns import decode_fetched
from headwater.client.columns.decoding.fetched_together import FetchedTogether
from headwater.client.columns.decoding.record_columns import ARRAY_RECORDS_MIN
from headwater.client.consumer.deserializers import Deserializers
from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.fetch.corrupt_batches import CorruptBatches, check_offsets_grow
from headwater.client.fetch.fetched_partition import MAGIC_POSITION, FetchedPartition
from headwater.wire.records import MAGIC_V2, Record, TimestampType, decode_batch

#: The fields of smaller records are cut faster from a copy of all of them.
_COPIED_RECORD_BYTES: Final = 512


class RecordReader:
    """Of one partition's fetch; `offset` is the position after what was handed out."""

    __slots__ = (
        "_check_crc",
        "_columns",
        "_corrupt",
        "_deserializers",
        "_failure",
        "_fetched",
        "_groups",
        "_index",
        "_records",
        "_together",
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
        together: FetchedTogether | None = None,
        check_crc: bool = True,
        corrupt: CorruptBatches | None = None,
    ) -> None:
        self.state = state
        self.offset = fetched.fetch_offset
        self.leader_epoch = state.offset_epoch
        self.is_exhausted = False
        self.size_bytes = fetched.size_bytes
        self._fetched = fetched
        self._together = together
        self._deserializers = deserializers
        self._check_crc = check_crc
        self._corrupt = corrupt or CorruptBatches()
        #: What comes after the columns that are being handed out; None if it has not begun.
        self._groups: Iterator[RecordColumns] | None = None
        self._columns: RecordColumns | None = None
        #: Instead of columns, all that there is if it is little and is taken as objects.
        self._records: list[ConsumerRecord] | None = None
        self._index = 0
        self._failure: Exception | None = None

    # -- records ---------------------------------------------------------------------------------

    def take(self, count: int) -> list[ConsumerRecord]:
        """The next records, at most `count`; fewer only at the end or before a failure."""
        self._begin()
        taken: list[ConsumerRecord] = []
        while len(taken) < count:
            try:
                if not self._has_more():
                    break
            except Exception:
                if taken:
                    break
                raise
            part = self._take_part(count - len(taken))
            taken = taken + part if taken else part
        if taken:
            self._moved(taken[-1].offset, taken[-1].leader_epoch)
        else:
            self._moved(None, -1)
        return taken

    def _begin(self) -> None:
        if self._groups is None and self._records is None:
            if self._fetched.has_fewer_records_than(ARRAY_RECORDS_MIN):
                self._records = self._decode_few()
            else:
                self._begin_columns()

    def _take_part(self, count: int) -> list[ConsumerRecord]:
        """Some of what is there. Objects are made of columns only now, and die young."""
        start = self._index
        self._index += count
        if self._columns is None:
            return [] if self._records is None else self._records[start : self._index]
        columns = self._columns
        is_small = len(columns.data) < _COPIED_RECORD_BYTES * len(columns)
        if is_small and not isinstance(columns.data, bytes):
            columns = self._columns = replace(columns, data=bytes(columns.data))
        return self._made(columns.part(start, self._index))

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
            good = self._deserialized(columns_to_records(topic, partition, columns))
            self._columns = None
            return good

    def _decode_few(self) -> list[ConsumerRecord]:
        """All records before the first damage, one after the other."""
        topic, partition = self.state.topic_partition
        records: list[ConsumerRecord] = []
        view = memoryview(self._fetched.buffer)
        try:
            for begin, end, header in self._fetched.visible_batches():
                kind = TimestampType.CREATE_TIME if header is None else header.timestamp_type
                epoch = -1 if header is None else header.leader_epoch
                records += [
                    ConsumerRecord(topic, partition, offset, time, kind, key, value, headers, epoch)
                    for offset, time, key, value, headers in self._decoded(view, begin, end)
                    if offset >= self.offset
                ]
        except Exception as error:
            self._failure = error
        return records if self._deserializers.are_none else self._deserialized(records)

    def _decoded(self, view: memoryview, begin: int, end: int) -> list[Record]:
        """The records of one batch; none if it cannot be read and is stepped over."""
        fetched = self._fetched
        try:
            records = decode_batch(view[begin:end], check_crc=self._check_crc)
            if view[begin + MAGIC_POSITION] >= MAGIC_V2:
                check_offsets_grow(records)
        except KafkaError as error:
            next_offset = fetched.offset_after(begin, end)
            if next_offset <= self.offset:
                # It ends before what was asked for.
                return []
            first_offset = fetched.first_offset_at(begin)
            self._corrupt.met(fetched.topic_partition, first_offset, next_offset, error)
            return []
        return records

    def _deserialized(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Those before the first that cannot be."""
        good, failure = self._deserializers.apply(self.state.topic_partition.topic, records)
        self._failure = failure or self._failure
        return good

    # -- columns ---------------------------------------------------------------------------------

    def take_columns(self, count: int) -> RecordColumns | None:
        """The next records of one group, at most `count`; None at the end."""
        if self._groups is None:
            self._begin_columns()
        if not self._has_more() or self._columns is None:
            self._moved(None, -1)
            return None
        taken = self._columns.part(self._index, self._index + count)
        self._index += count
        self._moved(int(taken.offsets[-1]), taken.runs[-1].leader_epoch)
        return taken

    def _begin_columns(self) -> None:
        """From the position on, where there may be records that were made already."""
        if self._records is not None and self._index < len(self._records):
            # What is wrong behind them is found again.
            self._failure = None
        self._records = None
        self._index = 0
        self._groups = self._all_columns()

    def _all_columns(self) -> Iterator[RecordColumns]:
        if self._together is not None and self.offset == self._fetched.fetch_offset:
            columns = self._together.take(self._fetched)
            if columns is not None:
                if len(columns):
                    yield columns
                return
        yield from decode_fetched(
            self._fetched, self.offset, check_crc=self._check_crc, corrupt=self._corrupt
        )

    # -- both ------------------------------------------------------------------------------------

    def _has_more(self) -> bool:
        """Whether there are records; raises what is wrong with them."""
        ready = self._columns if self._records is None else self._records
        if ready is not None and self._index < len(ready):
            return True
        if self._failure is not None:
            raise self._failure
        self._columns = None
        if self._groups is not None:
            try:
                self._columns = next(self._groups, None)
            except Exception as error:
                self._failure = error
                raise
            self._index = 0
        self.is_exhausted = self._columns is None
        return not self.is_exhausted

    def _moved(self, last_offset: int | None, leader_epoch: int) -> None:
        """The record of that offset is the last one handed out, None if there was none."""
        if self.is_exhausted:
            self.offset = self._fetched.next_offset
        elif last_offset is not None:
            self.offset = last_offset + 1
        if last_offset is not None:
            self.leader_epoch = leader_epoch
