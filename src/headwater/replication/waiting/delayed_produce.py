"""A produce request that waits until what it appended is safe.

For acks=all that means that every in-sync replica has it, and that it is on this broker's disk
where `acks.all.flush` or `flush.messages` ask for it. Each partition of the request gets its own
outcome; those that are not safe when the time is over get REQUEST_TIMED_OUT. Their records are
written all the same, which is why producers number theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.purgatory import DelayedOperation


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
