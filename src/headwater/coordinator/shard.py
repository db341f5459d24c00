"""A coordinator's state for one partition of its topic."""

from __future__ import annotations

from typing import Protocol

from headwater.base.errors import KafkaError
from headwater.cluster.image.change import ImageChange
from headwater.coordinator.outcome import Outcome, ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord


class Shard(Protocol):
    """State that is made of records alone, but for what a failover may forget.

    Parked answers, sessions of members and timers are soft: they are not in the topic, and a new
    coordinator starts without them (`on_loaded` gives it the time to set its own).
    """

    def replay(
        self, record: StoredRecord, offset: int, producer: ProducerIdentity | None, now_ms: int
    ) -> None:
        """Take a record that stands in the topic at `offset`.

        With a producer it is part of that producer's transaction, and pending until that ends.
        A kind of record that is not known is skipped.
        """
        ...

    def replay_transaction_end(self, producer: ProducerIdentity, *, is_committed: bool) -> None:
        """A transaction has ended: what is pending of it counts from now on, or never."""
        ...

    def on_loaded(self, now_ms: int) -> None:
        """All records were replayed, and requests follow: set timers."""
        ...

    def on_image(self, change: ImageChange, now_ms: int) -> list[Outcome]:
        """The cluster has changed: topics may have come, grown or gone."""
        ...

    def close(self, error: KafkaError) -> None:
        """Another broker takes over, or this one stops: give all parked answers this error."""
        ...

    def stored_state(self) -> object:
        """What records alone decide: equal to that of a shard replayed from the same topic."""
        ...
