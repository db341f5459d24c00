"""Which follower's session wants to hear of which partition, so that quiet ones cost nothing.

A follower fetches thousands of partitions in one request, over and over, and hardly any of them has
anything new. A leader that looked at all of them each time would do little else. So a session (see
`broker.replica_session`) keeps apart those about which there is nothing to tell, and what happens
to one of them is passed on to it here.
"""

from __future__ import annotations

from typing import Protocol

from headwater.base.ids import TopicPartition


class FollowerWatcher(Protocol):
    """A session of a follower."""

    def touched(self, partition: TopicPartition, *, wakes: bool) -> None:
        """There is something to tell of it; with `wakes` a fetch that waits is to be answered."""
        ...


class FollowerWatches:
    """By partition; a partition has few followers. Its owner is the event loop."""

    def __init__(self) -> None:
        self._watchers: dict[TopicPartition, list[FollowerWatcher]] = {}

    def __len__(self) -> int:
        return len(self._watchers)

    def watch(self, partition: TopicPartition, watcher: FollowerWatcher) -> None:
        watchers = self._watchers.setdefault(partition, [])
        if watcher not in watchers:
            watchers.append(watcher)

    def leave(self, partition: TopicPartition, watcher: FollowerWatcher) -> None:
        watchers = self._watchers.get(partition)
        if watchers is not None and watcher in watchers:
            watchers.remove(watcher)
            if not watchers:
                del self._watchers[partition]

    def touch(self, partition: TopicPartition, *, wakes: bool) -> None:
        """Something has happened to the partition."""
        watchers = self._watchers.get(partition)
        if watchers is not None:
            for watcher in list(watchers):
                watcher.touched(partition, wakes=wakes)
