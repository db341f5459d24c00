"""Finds the messages with a key: those of the one partition that it belongs to, newest last."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.delivery.trace.batch_reader import BatchReader, ReadBudget, mentions

KEY_BYTES_MAX: Final = 512 << 20

#: Called with how many records were looked at, and how many offsets there are to look at.
Progress = Callable[[int, int], None]


class KeySearch(NamedTuple):
    partition: TopicPartition
    key: bytes
    from_ms: int
    limit: int


class WithKey(NamedTuple):
    messages: list[MessageId]
    read_records: int
    #: Whether all was looked at that was asked for.
    is_complete: bool


async def messages_with_key(reader: BatchReader, search: KeySearch, progress: Progress) -> WithKey:
    """The last ones; batches that do not hold the key are passed over without being decoded."""
    partition = search.partition
    starts = await reader.starts([partition], search.from_ms)
    if partition not in starts:
        return WithKey([], 0, is_complete=True)
    end = (await reader.bounds([partition]))[partition].end
    start, budget = starts[partition], ReadBudget(KEY_BYTES_MAX)
    budget.on_spent = lambda: progress(budget.read_records, end - start)
    found: deque[MessageId] = deque(maxlen=search.limit)
    async for _, record in reader.records(partition, start, end, budget, mentions([search.key])):
        if record.key == search.key:
            found.append(MessageId(*partition, record.offset))
    return WithKey(list(found), budget.read_records, not budget.is_used_up)
