"""Who is told what happens to a partition, and how several listeners are told as one.

Two kinds of news. *Progress* (an append, the high watermark, the disk, the log start) comes with
every request and wakes requests that wait. *Roles* come with a change of the cluster image: this
broker leads a partition now, or follows another leader, or has nothing to do with it any more.
`PartitionEventHub` gives progress to one listener, without a detour, and roles to all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headwater.replication.partition.partition import Partition


class RoleListener(Protocol):
    """Who has work of its own with partitions, as followers' fetchers do."""

    def role_changed(self, partition: Partition) -> None:
        """It has another leader or leader epoch, or is new here."""
        ...

    def removed(self, partition: Partition) -> None:
        """It is about to be deleted here: its log must not be touched any more."""
        ...


class PartitionEvents(Protocol):
    """Who is told what happens to a partition."""

    def on_append(self, partition: Partition) -> None:
        """The leader's log has grown: followers, which it has, may fetch more."""
        ...

    def on_high_watermark(self, partition: Partition) -> None:
        """Readers may see more, and writers who waited for the replicas may go on."""
        ...

    def on_durable(self, partition: Partition) -> None:
        """More of the log is on disk, or its disk has failed."""
        ...

    def on_log_start(self, partition: Partition) -> None:
        """The low watermark may have risen."""
        ...

    def on_in_sync(self, partition: Partition) -> None:
        """Other replicas are in sync than before: waiting writers may have to be told."""
        ...

    def on_role(self, partition: Partition) -> None:
        """The partition has another leader or leader epoch, or is new here."""
        ...

    def on_removed(self, partition: Partition) -> None:
        """The partition goes: it is deleted, or this broker is none of its replicas any more."""
        ...


class PartitionEventHub:
    """Progress goes to `progress`, roles to it and to every listener, in the order they came."""

    def __init__(self, progress: PartitionEvents) -> None:
        self._progress = progress
        self._listeners: list[RoleListener] = []
        # Bound once: an append calls these, and shall not pay for the hub.
        self.on_append: Callable[[Partition], None] = progress.on_append
        self.on_high_watermark: Callable[[Partition], None] = progress.on_high_watermark
        self.on_durable: Callable[[Partition], None] = progress.on_durable
        self.on_log_start: Callable[[Partition], None] = progress.on_log_start
        self.on_in_sync: Callable[[Partition], None] = progress.on_in_sync

    def add(self, listener: RoleListener) -> None:
        self._listeners.append(listener)

    def on_role(self, partition: Partition) -> None:
        self._progress.on_role(partition)
        for listener in self._listeners:
            listener.role_changed(partition)

    def on_removed(self, partition: Partition) -> None:
        for listener in self._listeners:
            listener.removed(partition)
        self._progress.on_removed(partition)
