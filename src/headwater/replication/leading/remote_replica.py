"""What a leader knows of one follower, from the fetches that it sends.

A follower's fetch offset is its log end offset (LEO): it asks for what comes behind its last
record. Whether it keeps up is a matter of time, not of records (`replica.lag.time.max.ms`): it has
*caught up* at the moment of a fetch that asks for the leader's own LEO; and a fetch that asks for
what was the leader's LEO at the fetch before shows that it had caught up at that earlier one, so a
steady stream of appends takes nobody out of sync who follows it one fetch behind.

A follower fetches many partitions at once, and of those that it has all of, nobody looks at each:
its session's clock tells when it fetched last, and holds for all of them (`FetchClock`).
"""

from __future__ import annotations

import math
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError

UNKNOWN_OFFSET: Final = -1
UNKNOWN_EPOCH: Final = -1


class FetchClock:
    """When a follower's session has fetched last, and the time before."""

    __slots__ = ("fetched_ms", "previous_ms")

    def __init__(self) -> None:
        self.fetched_ms = self.previous_ms = -math.inf

    def tick(self, now_ms: float) -> None:
        self.previous_ms, self.fetched_ms = self.fetched_ms, now_ms


class RemoteReplica:
    """One follower of a partition that this broker leads; times are monotonic."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "clock",
        "fetched_ms",
        "is_joining",
        "leader_end_offset",
        "log_end_offset",
        "log_start_offset",
        "paused_until_ms",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = UNKNOWN_EPOCH
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        #: When it last fetched, and where the leader's log ended then.
        self.fetched_ms = -math.inf
        self.leader_end_offset = UNKNOWN_OFFSET
        self.caught_up_ms = -math.inf
        #: That of the session that fetches it.
        self.clock: FetchClock | None = None
        #: Out of sync, but so close that the high watermark waits for it to come in.
        self.is_joining = False
        #: It is not to be proposed before this, after the controller has turned it down.
        self.paused_until_ms = -math.inf

    def begin_epoch(self, now_ms: float, leader_end_offset: int, *, is_in_sync: bool) -> None:
        """The leader goes on in a new epoch: an in-sync follower has its full time again."""
        self.caught_up_ms = self.fetched_ms = now_ms if is_in_sync else -math.inf
        self.leader_end_offset = leader_end_offset
        self.clock = None
        self.is_joining = False

    def check_broker_epoch(self, broker_epoch: int) -> None:
        """Refuse a fetch that an earlier life of the broker sent."""
        if UNKNOWN_EPOCH < broker_epoch < self.broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {self.broker_id} has the epoch {self.broker_epoch}, and its fetch comes "
                f"from {broker_epoch}.",
            )

    def fetched(
        self,
        fetch_offset: int,
        log_start_offset: int,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: float,
        clock: FetchClock | None = None,
    ) -> None:
        """Take note of a fetch."""
        if self.clock is not None and self._had_all:
            self.fetched_ms = max(self.fetched_ms, self.clock.previous_ms)
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif fetch_offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = max(broker_epoch, self.broker_epoch)
        self.fetched_ms = now_ms
        self.leader_end_offset = max(leader_end_offset, self.leader_end_offset)
        self.clock = clock

    @property
    def _had_all(self) -> bool:
        """Whether the fetch that was noted last asked for the leader's LEO."""
        return self.log_end_offset == self.leader_end_offset

    def left_session(self) -> None:
        """It is not fetched any more: the session's clock says nothing about it from now on."""
        if self.clock is not None and self._had_all:
            self.caught_up_ms = max(self.caught_up_ms, self.clock.fetched_ms)
            self.fetched_ms = max(self.fetched_ms, self.clock.fetched_ms)
        self.clock = None

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_max_ms: int) -> bool:
        """Whether it has all that there is, or had it not too long ago."""
        if self.log_end_offset == leader_end_offset:
            return True
        caught_up_ms = self.caught_up_ms
        if self.clock is not None and self._had_all:
            caught_up_ms = max(caught_up_ms, self.clock.fetched_ms)
        return now_ms - caught_up_ms <= lag_max_ms
