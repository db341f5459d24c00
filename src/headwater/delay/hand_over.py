"""The hand-over: what is due is appended to the log as copies, in the order of their keys.

A round takes what is due and at hand. Between looking at the index and the append there is no
`await`, so what is appended is what comes next at that moment, whatever came in meanwhile. The
copies are noted at once: the watermark in memory never runs ahead of the log's, nor behind it.

A message that may not be delivered any more is cancelled in the log, so that every replica drops
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from headwater.delay.delay_state import DelayState
from headwater.delay.lateness import Lateness
from headwater.delay.message_cache import MessageCache
from headwater.delay.message_reads import MessagePlaces, plan_reads
from headwater.replication.partition.partition import Partition
from headwater.storage.log_config import DelayMode
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.delayed.copies import Delivery, OrderKey, encode_deliveries
from headwater.wire.delayed.delayed_batch import (
    NONE,
    DelayedKind,
    DelayedRecord,
    delayed_change,
    encode_delayed_batch,
)
from headwater.wire.records import Compression, InvalidRecordError

#: One batch of copies.
COPIES_MAX: Final = 500
COPIES_BYTES_MAX: Final = 256 << 10
#: So many of what is due soon are looked for at a time. A look costs about as much as a delivery,
#: so it is not made for every few messages.
_LOOKED_MAX: Final = 4 * COPIES_MAX
#: Copies need not be acknowledged by anybody before the next come.
_ACKS: Final = 1


class HandOver:
    """Of one partition that this broker leads."""

    def __init__(self, partition: Partition, cache: MessageCache) -> None:
        self._partition = partition
        self.cache = cache
        self.lateness = Lateness()
        self.delivered_count = 0
        self.expired_count = 0
        #: What turned out to be deleted when it was to be delivered.
        self.lost_count = 0
        #: Whether a message is due, or soon will be, that nobody has read ahead.
        self.is_lacking = True
        #: What is due until then was looked for.
        self._looked_ms = 0

    def wants_more(self, soon_ms: int) -> bool:
        """Whether to look for what is due until `soon_ms` and not at hand."""
        return self.is_lacking or (self._looked_ms < soon_ms and len(self.cache) < _LOOKED_MAX // 2)

    def missing(self, state: DelayState, until_ms: int) -> list[MessagePlaces]:
        """Where to read what is due until then and not at hand, in the order of its places.

        While much is at hand that is not due yet, only the next message is read.
        """
        keys = state.index.due(until_ms, _LOOKED_MAX)
        self.is_lacking = False
        self._looked_ms = until_ms if len(keys) < _LOOKED_MAX else keys[-1].due_ms
        start = self._partition.log.log_start_offset
        offsets = [key.offset for key in keys if key.offset not in self.cache or key.offset < start]
        if self.cache.is_full:
            del offsets[1:]
        places, lacking = plan_reads(self._partition.log, offsets)
        if lacking:
            self._lost(state, keys, lacking)
        return places

    def run(self, state: DelayState, now_ms: int) -> int:
        """Append what is due and at hand; how many messages that were."""
        deliveries: list[Delivery] = []
        expired: list[DelayedRecord] = []
        size = 0
        start = self._partition.log.log_start_offset
        for key in state.index.due(now_ms, COPIES_MAX):
            message = self.cache.get(key.offset)
            if message is None or key.offset < start:
                self.is_lacking = True
                break
            if message.expires_ms != NONE and message.expires_ms <= now_ms:
                expired.append(message)
                continue
            if expired or (deliveries and size + len(message.value) > COPIES_BYTES_MAX):
                break
            deliveries.append(Delivery(key, message))
            size += len(message.value)
        if expired and not deliveries:
            self._expire(state, expired, now_ms)
        elif deliveries:
            self._deliver(state, deliveries, now_ms)
        return len(expired if expired and not deliveries else deliveries)

    def _deliver(self, state: DelayState, deliveries: Sequence[Delivery], now_ms: int) -> None:
        log = self._partition.log
        codecs = {each.message.codec for each in deliveries}
        batch = encode_deliveries(
            deliveries,
            append_ms=now_ms,
            compression=codecs.pop() if len(codecs) == 1 else Compression.NONE,
            origin=str(log.partition) if log.config.delay.mode is DelayMode.RETRY else "",
        )
        result = self._partition.append(
            batch, acks=_ACKS, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
        state.delivered(each.key for each in deliveries)
        state.applied_offset = result.last_offset + 1
        self.delivered_count += len(deliveries)
        for key, _ in deliveries:
            self.lateness.add(max(now_ms - key.due_ms, 0))

    def _expire(self, state: DelayState, messages: list[DelayedRecord], now_ms: int) -> None:
        """Its time is over: cancelled in the log, for all replicas."""
        changes = [
            delayed_change(number, DelayedKind.CANCEL, original=message.id_offset)
            for number, message in enumerate(messages)
        ]
        batch = encode_delayed_batch(changes, append_ms=now_ms)
        self._partition.append(batch, acks=_ACKS, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        self.expired_count += len(messages)

    def _lost(self, state: DelayState, keys: Iterable[OrderKey], offsets: Iterable[int]) -> None:
        """They lie in front of the log's start, where DeleteRecords has put them."""
        log = self._partition.log
        lost = frozenset(offsets)
        if max(lost) >= log.log_start_offset:
            raise InvalidRecordError(
                f"{log.partition} has no message at offset {max(lost)}, where one waits."
            )
        for key in keys:
            if key.offset in lost:
                state.forget(key)
                self.lost_count += 1
