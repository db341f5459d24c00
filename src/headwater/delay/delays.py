"""Delayed delivery in all partitions of a broker that take part in it.

A partition takes part if its topic's `delay.mode` lets records wait, or if its log holds delayed
batches from a time when it did. All others know nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headwater.delay.fixed_delay import FixedDelay
from headwater.delay.partition_delays import DelayEnvironment, PartitionDelays
from headwater.delay.waiting import NothingWaits, WaitingQuestions
from headwater.replication.partition.deliveries import Deliveries
from headwater.replication.partition.partition import Partition
from headwater.storage.log_config import DelayMode


class _Several:
    """Several who are told as one."""

    def __init__(self, listeners: Sequence[Deliveries]) -> None:
        self._listeners = listeners

    def wake(self) -> None:
        for each in self._listeners:
            each.wake()

    def truncated(self) -> None:
        for each in self._listeners:
            each.truncated()

    def log_start_raised(self) -> None:
        for each in self._listeners:
            each.log_start_raised()

    def log_replaced(self) -> None:
        for each in self._listeners:
            each.log_replaced()


class Delays:
    """Follows the roles of partitions, and the settings of topics; the owner is the broker."""

    def __init__(self, environment: DelayEnvironment) -> None:
        self._environment = environment
        self._by_partition: dict[Partition, PartitionDelays] = {}
        self._fixed: dict[Partition, FixedDelay] = {}

    def __iter__(self) -> Iterator[tuple[Partition, PartitionDelays]]:
        return iter(list(self._by_partition.items()))

    def of(self, partition: Partition) -> WaitingQuestions:
        """Whom to ask about a partition; `KafkaError` if another broker leads it."""
        partition.check_leader()
        delays = self._by_partition.get(partition)
        return NothingWaits() if delays is None else delays.answers

    # -- following -------------------------------------------------------------------------------

    def role_changed(self, partition: Partition) -> None:
        self._take_up(partition, was_shown=False)

    def _take_up(self, partition: Partition, *, was_shown: bool) -> None:
        """`was_shown` says that until now consumers saw all of the log."""
        log = partition.log
        if partition not in self._by_partition and (
            log.config.delays_records or log.segments.has_hidden
        ):
            delays = self._by_partition[partition] = PartitionDelays(partition, self._environment)
            delays.start()
            self._connect(partition)
        is_fixed = log.config.delay.mode is DelayMode.FIXED
        if is_fixed and partition not in self._fixed:
            fixed = FixedDelay(partition, self._environment, was_shown=was_shown)
            self._fixed[partition] = fixed
            fixed.start()
            self._connect(partition)

    def _connect(self, partition: Partition) -> None:
        """Have a partition tell what happens to it; its mode may have changed, so maybe to both."""
        listeners = (self._by_partition.get(partition), self._fixed.get(partition))
        partition.deliveries = _Several([each for each in listeners if each is not None])

    def removed(self, partition: Partition) -> None:
        partition.deliveries = None
        delays = self._by_partition.pop(partition, None)
        if delays is not None:
            delays.wake()  # It finds that the partition is gone.
        fixed = self._fixed.pop(partition, None)
        if fixed is not None:
            fixed.wake()

    def settings_changed(self, partitions: Iterable[Partition]) -> None:
        """Topics may have another `delay.mode`."""
        for partition in partitions:
            self._take_up(partition, was_shown=True)
            fixed = self._fixed.get(partition)
            if fixed is not None:
                fixed.wake()

    async def close(self) -> None:
        """Stop all of them; each leaves a checkpoint."""
        for fixed in self._fixed.values():
            await fixed.close()
        for delays in self._by_partition.values():
            await delays.close()
