"""Which replicas have to wait: those that are throttled, and that nobody waits for.

Whoever is in sync is never held back: the high watermark waits for it, and with it every producer
that wants all replicas to have its records. So is nobody whom the leader is about to take in. A
leader knows both; a follower takes itself for in sync if it was told so, or if it has all that the
leader has committed.

A throttle belongs to what asked for it. That of a setting holds until somebody changes the setting.
That of a move stands in the partition's own state, holds for replicas that are being added, and
goes when the move ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.base.clocks import SystemClock
from headwater.replication.throttling.throttle import Throttle

if TYPE_CHECKING:
    from headwater.replication.partition.partition import Partition

_UNLIMITED = 2**63 - 1


class ReplicationThrottles:
    """Both sides of a broker; its owner is the event loop."""

    def __init__(self, leading: Throttle, following: Throttle) -> None:
        self.leading = leading
        self.following = following

    @classmethod
    def unlimited(cls) -> ReplicationThrottles:
        """Without limits of the broker; moves may have their own."""
        clock = SystemClock()
        return cls(Throttle(lambda: _UNLIMITED, clock), Throttle(lambda: _UNLIMITED, clock))

    # -- which are throttled ---------------------------------------------------------------------

    def take_note(self, partition: Partition) -> None:
        """The partition has another role, other replicas or other settings."""
        key = (partition.topic_id, partition.topic_partition.partition)
        options, told = partition.options, partition.told
        if partition.is_leader:
            self.following.forget(key)
            is_listed = options.throttled_leading.has(key[1])
            self.leading.take_note(key, is_listed=is_listed, move_rate=told.throttle)
        else:
            self.leading.forget(key)
            is_listed = options.throttled_following.has(key[1])
            move_rate = told.throttle if partition.is_being_added else 0
            self.following.take_note(key, is_listed=is_listed, move_rate=move_rate)

    def forget(self, partition: Partition) -> None:
        """The partition is not this broker's any more."""
        key = (partition.topic_id, partition.topic_partition.partition)
        self.leading.forget(key)
        self.following.forget(key)

    # -- the leader's side -----------------------------------------------------------------------

    def leader_wait_ms(self, partition: Partition, replica_id: int) -> float:
        """How long a follower gets nothing; 0.0 if it gets what there is."""
        leadership = partition.leadership
        if leadership is None or leadership.is_waited_for(replica_id):
            return 0.0
        key = (partition.topic_id, partition.topic_partition.partition)
        return self.leading.wait_ms(key, is_added=replica_id in partition.told.adding)

    def sent(self, partition: Partition, replica_id: int, size_bytes: int) -> None:
        """A follower gets so much."""
        leadership = partition.leadership
        is_added = (
            replica_id in partition.told.adding
            and leadership is not None
            and not leadership.is_waited_for(replica_id)
        )
        key = (partition.topic_id, partition.topic_partition.partition)
        self.leading.record(key, size_bytes, is_added=is_added)

    # -- the follower's side ---------------------------------------------------------------------

    def follower_wait_ms(self, partition: Partition, *, has_committed: bool) -> float:
        """How long this broker fetches nothing of the partition; 0.0 if it fetches on.

        `has_committed` tells whether it is known to have all that is committed.
        """
        if has_committed or partition.is_in_sync:
            return 0.0
        key = (partition.topic_id, partition.topic_partition.partition)
        return self.following.wait_ms(key, is_added=partition.is_being_added)

    def received(self, partition: Partition, size_bytes: int) -> None:
        """This broker has fetched so much."""
        is_added = partition.is_being_added and not partition.is_in_sync
        key = (partition.topic_id, partition.topic_partition.partition)
        self.following.record(key, size_bytes, is_added=is_added)
