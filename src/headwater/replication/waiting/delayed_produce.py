"""Waiting until what was appended is safe: for Produce, coordinators' logs and markers alike.

For acks=all that means that every in-sync replica has it, and that it is on this broker's disk
where `acks.all.flush` or `flush.messages` ask for it. Whoever has appended asks for an
`AwaitedAppend` (`await_append`), which may be settled at once, and has those that are not waited
for together (`when_settled`). Each gets its own outcome; those that are not safe when the time is
over get REQUEST_TIMED_OUT. Their records are written all the same, which is why producers number
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.replication.partition.options import ACKS_ALL
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.purgatory import DelayedOperation, Purgatory


class AwaitedAppend:
    """One partition's append that is not safe yet."""

    __slots__ = ("durably", "end_offset", "error", "is_settled", "partition", "replicated")

    def __init__(
        self, partition: Partition, end_offset: int, *, durably: bool, replicated: bool = True
    ) -> None:
        self.partition = partition
        self.end_offset = end_offset
        self.durably = durably
        #: Whether the in-sync replicas must have it too, as for acks=all.
        self.replicated = replicated
        self.error: KafkaError | None = None
        self.is_settled = False

    def settle(self) -> bool:
        """Whether it is known how this ends."""
        if not self.is_settled:
            try:
                self.is_settled = self.partition.is_acknowledged(
                    self.end_offset, durably=self.durably, replicated=self.replicated
                )
            except KafkaError as error:
                self.error = error
                self.is_settled = True
        return self.is_settled


class DelayedProduce(DelayedOperation[TopicPartition]):
    """Asks a partition only when something has happened to it: a request may have many of them."""

    __slots__ = ("_open", "_respond")

    def __init__(self, appends: Sequence[AwaitedAppend], respond: Callable[[], None]) -> None:
        super().__init__()
        #: Those of which it is not known how they end.
        self._open: dict[TopicPartition, list[AwaitedAppend]] = {}
        for append in appends:
            self._open.setdefault(append.partition.topic_partition, []).append(append)
        self._respond = respond

    def try_complete(self, key: TopicPartition | None) -> bool:
        if key is not None:
            self._settle(key)
        else:
            for each in tuple(self._open):
                self._settle(each)
        return not self._open

    def _settle(self, key: TopicPartition) -> None:
        appends = self._open.get(key)
        if appends is not None:
            for append in appends:
                if not append.settle():
                    return
            del self._open[key]

    def on_expiration(self) -> None:
        for append in chain.from_iterable(self._open.values()):
            if not append.settle():
                append.error = KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{append.partition.topic_partition} was written but not replicated in time.",
                )

    def on_complete(self) -> None:
        self._respond()


def await_append(partition: Partition, end_offset: int, acks: int = ACKS_ALL) -> AwaitedAppend:
    """Begin to wait for all in front of `end_offset`; the fsync that it needs is on its way."""
    durably = partition.needs_fsync(acks)
    append = AwaitedAppend(partition, end_offset, durably=durably, replicated=acks == ACKS_ALL)
    if not append.settle() and durably:
        partition.request_fsync(end_offset)
    return append


def when_settled(
    purgatory: Purgatory[TopicPartition],
    appends: Sequence[AwaitedAppend],
    timeout_ms: int,
    respond: Callable[[], None],
) -> None:
    """Call `respond` when it is known of each how it ends, or the time is over."""
    keys = [append.partition.topic_partition for append in appends]
    purgatory.try_complete_else_park(DelayedProduce(appends, respond), timeout_ms, keys)
