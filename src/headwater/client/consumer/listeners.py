"""Who is told of a consumer's rebalances and commits: listeners and interceptors.

All of them run in the thread or task that polls, between two batches of records, so they may use
the consumer: commit what is done, seek, pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.record import ConsumerRecord


class RebalanceListener:
    """Override what is of interest. With `AsyncConsumer` the methods may be coroutines."""

    def on_partitions_revoked(self, consumer: Any, partitions: frozenset[TopicPartition]) -> Any:
        """These are about to go to others; what is done can still be committed."""

    def on_partitions_assigned(self, consumer: Any, partitions: frozenset[TopicPartition]) -> Any:
        """These have been added; seek now to read them from elsewhere than what is committed."""

    def on_partitions_lost(self, consumer: Any, partitions: frozenset[TopicPartition]) -> Any:
        """These may be with others already, so nothing can be committed; by default as revoked."""
        return self.on_partitions_revoked(consumer, partitions)


def given_listener(given: RebalanceListener | None) -> RebalanceListener | None:
    """A listener, or None; raises `TypeError` for what could not be told of a rebalance."""
    methods = ("on_partitions_revoked", "on_partitions_assigned", "on_partitions_lost")
    if given is None or all(callable(getattr(given, name, None)) for name in methods):
        return given
    raise TypeError(f"The listener {given!r} must be a RebalanceListener.")


class ConsumerInterceptor:
    """Sees, and may change, what `poll` returns; hears of commits that succeeded."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """These offsets have been committed."""

    def close(self) -> None:
        """The consumer is being closed."""
