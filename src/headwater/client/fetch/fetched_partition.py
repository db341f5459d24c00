"""What a fetch brought of one partition: the batches with data to be seen, not decoded yet.

Sans-io. A broker sends whole batches as they are stored, which has consequences for the reader: the
first batch may begin before the offset that was asked for, the last one may be cut off, control
batches stand between the data, and with read committed the records of aborted transactions are
there too, with a list that says which: a producer's transactional batches are aborted from the
first offset in the list on, until the marker that ends it. Only the first of these is left to who
decodes the batches.
"""

import heapq
import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    BatchHeader,
    Buffer,
    ControlType,
    decode_batch,
    read_batch_header,
    read_control_type,
)

MAGIC_POSITION: Final = 16
#: As far as the magic; shorter is no batch of any format.
BATCH_SIZE_MIN: Final = MAGIC_POSITION + 1

_unpack_overhead = struct.Struct(">qi").unpack_from


class AbortedRange(NamedTuple):
    """From this offset on a producer's transaction is one that was aborted."""

    first_offset: int
    producer_id: int


class FetchedPartition:
    """The answer for one partition. `next_offset` is where to go on, whatever is read of it."""

    __slots__ = (
        "_aborted",
        "_buffer",
        "_check_crc",
        "_ends",
        "fetch_offset",
        "high_watermark",
        "isolation_level",
        "last_stable_offset",
        "log_start_offset",
        "next_offset",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        fetch_offset: int,
        buffer: Buffer,
        *,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        aborted: Sequence[AbortedRange] = (),
        check_crc: bool = True,
    ) -> None:
        self.topic_partition = topic_partition
        self.fetch_offset = fetch_offset
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.isolation_level = isolation_level
        self._buffer = buffer
        self._aborted = aborted
        self._check_crc = check_crc
        self._ends, next_offset = _whole_batches(buffer, fetch_offset)
        # The header of a damaged batch may claim any last offset.
        if fetch_offset < high_watermark < next_offset:
            next_offset = high_watermark
        self.next_offset = next_offset

    @property
    def size_bytes(self) -> int:
        """All that was sent, cut off batches too."""
        return len(self._buffer)

    @property
    def has_batches(self) -> bool:
        return bool(self._ends)

    @property
    def buffer(self) -> Buffer:
        """All that was sent: the batches one after the other."""
        return self._buffer

    @property
    def batch_ends(self) -> Sequence[int]:
        """Where each whole batch ends, and the next one begins; the first begins at 0."""
        return self._ends

    def has_fewer_records_than(self, count: int) -> bool:
        """Whether all batches together claim fewer; False where one is of another format."""
        if len(self._ends) >= count:
            return False
        position = 0
        for end in self._ends:
            if end - position < HEADER_SIZE or self._buffer[position + MAGIC_POSITION] != MAGIC_V2:
                return False
            count -= read_batch_header(self._buffer, position).record_count
            if count <= 0:
                return False
            position = end
        return True

    def offset_after(self, begin: int, end: int) -> int:
        """The offset to go on with after the batch at that place, which may be damaged."""
        if end == self._ends[-1]:
            return self.next_offset
        following = self.first_offset_at(end)
        if self._buffer[begin + MAGIC_POSITION] < MAGIC_V2 or end - begin < HEADER_SIZE:
            return min(following, self.first_offset_at(begin) + 1)
        header = read_batch_header(self._buffer, begin)
        return min(following, header.base_offset + max(0, header.last_offset_delta) + 1)

    def first_offset_at(self, begin: int) -> int:
        """The offset that a batch begins with; of an old message, the one that it has."""
        offset, _ = _unpack_overhead(self._buffer, begin)
        return int(offset)

    @property
    def has_aborted(self) -> bool:
        """Whether some of the data is not to be seen."""
        return bool(self._aborted) and self.isolation_level is IsolationLevel.READ_COMMITTED

    def visible_batches(self) -> Iterator[tuple[int, int, BatchHeader | None]]:
        """Where every batch with data to be seen begins and ends, and its header.

        The first one may begin before the offset that was asked for. One of an old format has no
        header.
        """
        only_committed = self.isolation_level is IsolationLevel.READ_COMMITTED
        aborted_left = list(self._aborted)
        heapq.heapify(aborted_left)
        aborted_producers: set[int] = set()
        buffer = memoryview(self._buffer)
        position = 0
        for end in self._ends:
            batch = buffer[position:end]
            begin, position = position, end
            if batch[MAGIC_POSITION] < MAGIC_V2:
                yield begin, end, None
                continue
            header = read_batch_header(batch)
            while aborted_left and aborted_left[0].first_offset <= header.last_offset:
                aborted_producers.add(heapq.heappop(aborted_left).producer_id)
            if header.is_control:
                if header.producer_id in aborted_producers and self._ends_by_abort(batch):
                    aborted_producers.discard(header.producer_id)
            elif not (
                only_committed
                and header.is_transactional
                and header.producer_id in aborted_producers
            ):
                yield begin, end, header

    def _ends_by_abort(self, batch: memoryview) -> bool:
        try:
            records = decode_batch(batch, check_crc=self._check_crc)
        except KafkaError:
            # A marker of a transaction that is known to be aborted: it can be no other.
            return True
        return bool(records) and read_control_type(records[0]) is ControlType.ABORT


def _whole_batches(buffer: Buffer, fetch_offset: int) -> tuple[list[int], int]:
    """Where each whole batch ends, and the offset after the last of them."""
    ends: list[int] = []
    position = last_position = 0
    size = len(buffer)
    while size - position >= BATCH_SIZE_MIN:
        _, length = _unpack_overhead(buffer, position)
        end = position + LOG_OVERHEAD + length
        if end > size or end - position < BATCH_SIZE_MIN:
            break
        last_position = position
        position = end
        ends.append(end)
    if not ends:
        return ends, fetch_offset
    offset, _ = _unpack_overhead(buffer, last_position)
    # An old message carries its own offset, or the last one of those that it wraps.
    if buffer[last_position + MAGIC_POSITION] >= MAGIC_V2:
        delta = read_batch_header(buffer, last_position).last_offset_delta
        # A batch that ends before it begins is damaged. Going on behind nothing would fetch it
        # for ever, and tell nobody.
        offset = offset + delta if delta >= 0 else max(offset, fetch_offset)
    return ends, max(fetch_offset, offset + 1)
