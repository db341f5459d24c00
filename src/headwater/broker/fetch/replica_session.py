"""A follower's fetch session, which looks only at partitions that have something to tell.

A partition is *quiet* when the follower has all of its log, is in sync, and knows the high
watermark and the log start. That stays so until something happens to it, and then the session is
told (`replication.follower_watches`): the partition is *touched*. A fetch deals with what it names
and with what was touched, however many others the session holds; they are quiet again once the
follower has been told all there is.

A follower that fetches has caught up with every quiet partition at that moment. That is noted once
for all of them, on the session's clock, which `RemoteReplica` reads.

Retention moves log starts without telling anybody; once in a while they are compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.broker.fetch.session import FetchSession, SessionKey, key_of
from headwater.replication.fetch import FetchedPartition, FetchTarget
from headwater.replication.leading.remote_replica import FetchClock
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.follower_watches import FollowerWatches

_SWEEP_INTERVAL_MS: Final = 5_000


class ReplicaSession(FetchSession):
    def __init__(
        self,
        session_id: int,
        targets: Sequence[FetchTarget],
        *,
        by_id: bool,
        now_ms: int,
        replica_id: int,
        watches: FollowerWatches,
    ) -> None:
        self.clock = FetchClock()
        #: Called when something must be told at once; set while a fetch waits.
        self.on_wake: Callable[[], None] | None = None
        self._watches = watches
        self._touched: dict[SessionKey, None] = {}
        self._watched: dict[SessionKey, Partition] = {}
        self._keys: dict[TopicPartition, SessionKey] = {}
        self._swept_ms = 0.0
        self._is_waking = False
        super().__init__(session_id, targets, by_id=by_id, now_ms=now_ms, replica_id=replica_id)

    def update(self, targets: Iterable[FetchTarget], forgotten: Iterable[SessionKey]) -> None:
        named = list(targets)
        super().update(named, ())
        self._touched.update((key_of(target, by_id=self.by_id), None) for target in named)
        for key in forgotten:
            self._forget(key)

    def begin_fetch(self, monotonic_ms: float) -> None:
        """The follower fetches: as of now it has all of every quiet partition."""
        self.clock.tick(monotonic_ms)
        if monotonic_ms - self._swept_ms >= _SWEEP_INTERVAL_MS:
            self._swept_ms = monotonic_ms
            for key, partition in self._watched.items():
                if self._partitions[key].log_start_offset != partition.log.log_start_offset:
                    self._touched[key] = None

    def targets(self) -> list[FetchTarget]:
        return [self._partitions[key].target for key in self._touched]

    def watch(self, fetched: Iterable[FetchedPartition]) -> None:
        """From now on hear of what happens to these."""
        for each in fetched:
            partition = each.partition
            if partition is not None:
                key = key_of(each.target, by_id=self.by_id)
                if self._watched.get(key) is not partition:
                    self._watched[key] = partition
                    self._keys[partition.topic_partition] = key
                    self._watches.watch(partition.topic_partition, self)

    def take_note(self, fetched: Iterable[FetchedPartition]) -> list[FetchedPartition]:
        seen = list(fetched)
        news = super().take_note(seen)
        for each in seen:
            key = key_of(each.target, by_id=self.by_id)
            if key not in self._touched:
                continue
            if self._is_quiet(each):
                del self._touched[key]
            elif each.size_bytes > 0:
                # Others that are waiting come first the next time.
                del self._touched[key]
                self._touched[key] = None
        return news

    def _is_quiet(self, fetched: FetchedPartition) -> bool:
        partition = fetched.partition
        return (
            fetched.read is not None
            and partition is not None
            and fetched.target.fetch_offset == partition.log.log_end_offset
            and self.replica_id in partition.isr
        )

    def touched(self, partition: TopicPartition, *, wakes: bool) -> None:
        key = self._keys.get(partition)
        if key is not None and key in self._partitions:
            self._touched[key] = None
            if wakes and self.on_wake is not None and not self._is_waking:
                # When the requests that are being read have all been dealt with: then the answer
                # has what all of them wrote, and not only the first.
                self._is_waking = True
                asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        if self.on_wake is not None:
            self.on_wake()

    def close(self) -> None:
        """The session is over: hear of nothing any more."""
        for key in list(self._partitions):
            self._forget(key)

    def _forget(self, key: SessionKey) -> None:
        self._partitions.pop(key, None)
        self._touched.pop(key, None)
        partition = self._watched.pop(key, None)
        if partition is None:
            return
        if self._keys.get(partition.topic_partition) == key:
            del self._keys[partition.topic_partition]
            self._watches.leave(partition.topic_partition, self)
        if partition.leadership is not None:
            partition.leadership.follower_left(self.replica_id, self.clock)
