"""What one fetcher follows, and what it asks the leader for next. Sans-io.

The plan keeps the partitions and, apart, those whose position the leader's session does not have:
a request is made of these alone, so a round costs nothing for the many partitions in which nothing
happens. Partitions may come and go at any moment, also while a request is under way. An answer to a
question that would not be asked any more, because of a new role or a truncation, does not count.

A partition that a throttle holds back is left out of requests until there is room. Then the fetch
that waits at the leader for the others has come back, too: it waits no longer than that.

What answers do to partitions is in `answers`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from math import ceil
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.following.log import begin_following
from headwater.replication.following.options import FetcherOptions
from headwater.replication.following.partition import Condition, FollowedKey, FollowedPartition
from headwater.replication.following.session import SESSION_ERRORS, FollowerSession
from headwater.replication.partition.partition import Partition
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.storage.errors import LogStorageError
from headwater.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData

_logger = logging.getLogger(__name__)

#: For how long a throttle leaves a partition out before it is asked again.
_HOLD_MIN_MS: Final = 1.0
_HOLD_MAX_MS: Final = 1_000.0


class FetchPlan:
    """Its owner is the event loop.

    One request is under way at a time; its answer goes to `answered`, or its absence to `failed`,
    before the next.
    """

    def __init__(
        self,
        leader: int,
        node_id: int,
        broker_epoch: Callable[[], int],
        throttles: ReplicationThrottles | None = None,
    ) -> None:
        self.leader = leader
        self.throttles = throttles or ReplicationThrottles.unlimited()
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._session = FollowerSession()
        self._max_partition_bytes = 0
        self._followed: dict[FollowedKey, FollowedPartition] = {}
        #: Fetchable, but not with the position that the leader's session has.
        self._changed: dict[FollowedKey, FollowedPartition] = {}
        self._paused: dict[FollowedKey, FollowedPartition] = {}
        self._halted: dict[FollowedKey, FollowedPartition] = {}
        #: In the leader's session, but not to be fetched.
        self._forgotten: dict[FollowedKey, None] = {}

    def __len__(self) -> int:
        return len(self._followed)

    def __iter__(self) -> Iterator[FollowedPartition]:
        return iter(self._followed.values())

    # -- which partitions ------------------------------------------------------------------------

    def follow(self, partition: Partition, wall_ms: int) -> None:
        """The partition is led by this plan's leader, in an epoch that is perhaps new."""
        self.leave(partition)
        followed = FollowedPartition(partition)
        try:
            begin_following(partition.log, wall_ms)
        except LogStorageError as error:
            partition.storage_failed(error)
            followed.condition = Condition.FAILED
        self._enter(followed)

    def leave(self, partition: Partition) -> None:
        """Follow the partition no more."""
        key = (partition.topic_id, partition.topic_partition.partition)
        followed = self._followed.pop(key, None)
        if followed is not None:
            self._set_aside(followed)
            self._paused.pop(key, None)
            self._halted.pop(key, None)

    def adopt(self, other: FetchPlan) -> None:
        """Take over all partitions of another plan for the same leader."""
        for followed in list(other):
            other.leave(followed.partition)
            self._enter(followed)

    def _enter(self, followed: FollowedPartition) -> None:
        self._followed[followed.key] = followed
        if followed.condition is Condition.FETCHABLE:
            self._changed[followed.key] = followed
        elif followed.condition in (Condition.PAUSED, Condition.HELD_BACK):
            self._paused[followed.key] = followed
        else:
            self._halted[followed.key] = followed

    def _set_aside(self, followed: FollowedPartition) -> None:
        """Out of the leader's session, with the next request."""
        self._changed.pop(followed.key, None)
        if followed.told is not None:
            followed.told = None
            self._forgotten[followed.key] = None

    # -- how they do -----------------------------------------------------------------------------

    def is_current(self, followed: FollowedPartition) -> bool:
        """Whether what the leader says of this partition is still to be believed."""
        return self._followed.get(followed.key) is followed and followed.is_current

    def moved(self, followed: FollowedPartition) -> None:
        """The partition's position may have changed."""
        if followed.told != followed.position():
            self._changed[followed.key] = followed

    def pause(self, followed: FollowedPartition, now_ms: float, longest_ms: int) -> None:
        """Leave the partition out for a while."""
        self._set_aside(followed)
        followed.pause(now_ms, longest_ms)
        self._paused[followed.key] = followed

    def halt(self, followed: FollowedPartition, condition: Condition) -> None:
        """Leave the partition out until it has another role."""
        self._set_aside(followed)
        followed.condition = condition
        self._halted[followed.key] = followed

    def warn(self, followed: FollowedPartition, what: str) -> None:
        """One line for a partition that goes on failing."""
        if not followed.has_warned:
            followed.has_warned = True
            _logger.warning("%s %s", followed.partition.topic_partition, what.rstrip("."))

    @property
    def failed_count(self) -> int:
        """Partitions that are given up until they have another role."""
        return sum(each.condition is Condition.FAILED for each in self._halted.values())

    # -- asking ----------------------------------------------------------------------------------

    def request(self, now_ms: float, options: FetcherOptions) -> FetchRequest | None:
        """What to ask now; None if there is nothing to be fetched."""
        self._resume(now_ms)
        if self.throttles.following:
            self._hold_back(now_ms)
            options = self._in_time(now_ms, options)
        if len(self._paused) + len(self._halted) == len(self._followed):
            self._session.start_again()
            return None
        if options.max_partition_bytes != self._max_partition_bytes:
            self._max_partition_bytes = options.max_partition_bytes
            self._session.start_again()
        named, self._changed = self._changed, {}
        forgotten, self._forgotten = self._forgotten, {}
        if self._session.is_full:
            forgotten = {}
            named = {
                key: followed
                for key, followed in self._followed.items()
                if followed.condition is Condition.FETCHABLE
            }
        return self._session.request(
            named.values(),
            # What is named again is part of the session again.
            [key for key in forgotten if key not in named],
            options,
            node_id=self._node_id,
            broker_epoch=self._broker_epoch(),
        )

    def wait_ms(self, now_ms: float) -> float | None:
        """When nothing is fetchable: how long until something is; None if that takes a new role."""
        if not self._paused:
            return None
        return max(0.0, min(each.resumes_ms for each in self._paused.values()) - now_ms)

    def _hold_back(self, now_ms: float) -> None:
        """Leave those out that have to wait for their throttles."""
        for key in self.throttles.following:
            followed = self._followed.get(key)
            if followed is None or followed.condition is not Condition.FETCHABLE:
                continue
            wait_ms = self.throttles.follower_wait_ms(
                followed.partition, has_committed=followed.has_committed
            )
            if wait_ms:
                self._set_aside(followed)
                # Not for long at once: the throttle may be another before its time is over.
                followed.hold_back(now_ms + min(max(wait_ms, _HOLD_MIN_MS), _HOLD_MAX_MS))
                self._paused[key] = followed

    def _in_time(self, now_ms: float, options: FetcherOptions) -> FetcherOptions:
        """The options of a fetch that is back when somebody who is held back may go on."""
        until_ms = min(
            (
                each.resumes_ms
                for each in self._paused.values()
                if each.condition is Condition.HELD_BACK
            ),
            default=None,
        )
        if until_ms is None:
            return options
        return options._replace(
            max_wait_ms=max(0, min(options.max_wait_ms, ceil(until_ms - now_ms)))
        )

    def _resume(self, now_ms: float) -> None:
        for followed in [each for each in self._paused.values() if each.resumes_ms <= now_ms]:
            del self._paused[followed.key]
            followed.condition = Condition.FETCHABLE
            self._changed[followed.key] = followed

    # -- answers ---------------------------------------------------------------------------------

    def failed(self) -> None:
        """No answer came, so it is unknown what the leader remembers."""
        self._session.start_again()

    def answered(self, response: FetchResponse) -> list[tuple[FollowedPartition, PartitionData]]:
        """What the answer says of each partition; `KafkaError` if it refuses the whole request."""
        if response.error_code:
            was_full = self._session.is_full
            self._session.start_again()
            if response.error_code in SESSION_ERRORS and not was_full:
                return []
            code = ErrorCode.from_wire(response.error_code)
            raise KafkaError(code, f"Broker {self.leader} refuses to be followed: {code.name}.")
        self._session.answered(response.session_id)
        return [
            (followed, data)
            for topic in response.responses
            for data in topic.partitions
            if (followed := self._followed.get((topic.topic_id, data.partition_index))) is not None
        ]
