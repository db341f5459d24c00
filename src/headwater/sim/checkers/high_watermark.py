"""High watermark going back: what readers were allowed to see, they may go on seeing.

`HighWatermarks` is for one reader of one broker. In a cluster a new leader may know an older high
watermark than the leader before it, and catches up with its first appends. What must hold is that
within one epoch it never goes back, and that the log of every later leader reaches at least as far:
`CommittedEnds` is for somebody who sees all brokers.
"""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.sim.histories.history import History, PropertyViolated


class HighWatermarks:
    """What one reader was told of high watermarks, which never go back while nothing is lost.

    A power loss may take back what was not on disk, but never below what was acknowledged with
    acks=all: readers then start again from there.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.power_loss_count = 0
        self._seen: dict[TopicPartition, int] = {}

    def observe(self, partition: TopicPartition, high_watermark: int) -> None:
        """An answer came that was asked for after the last power loss."""
        before = self._seen.get(partition, 0)
        if high_watermark < before:
            raise PropertyViolated(
                f"the high watermark never goes back: in {partition} it was {before} and is "
                f"{high_watermark}"
            )
        self._seen[partition] = high_watermark

    def power_lost(self) -> None:
        self.power_loss_count += 1
        for partition in self._seen:
            self._seen[partition] = self._history.acknowledged_end(partition)


class CommittedEnds:
    """How far each partition was committed, by leader epoch.

    The exception is a replica that was alone in sync: what it had not synced was on no other, and
    is gone with its power, except for what was acknowledged with acks=all.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        #: Of the latest epoch seen, its number and its high watermark.
        self._latest: dict[TopicPartition, tuple[int, int]] = {}
        #: How far any leader has committed.
        self._committed: dict[TopicPartition, int] = {}

    def observe(
        self, partition: TopicPartition, leader_epoch: int, high_watermark: int, log_end: int
    ) -> None:
        """A leader is this far; one that was replaced and has not heard of it says nothing new."""
        epoch, before = self._latest.get(partition, (-1, 0))
        if leader_epoch < epoch:
            return
        if leader_epoch == epoch and high_watermark < before:
            raise PropertyViolated(
                f"the high watermark never goes back: in {partition}, epoch {epoch}, it was "
                f"{before} and is {high_watermark}"
            )
        committed = self._committed.get(partition, 0)
        if log_end < committed:
            raise PropertyViolated(
                f"the high watermark never goes back: {partition} was committed up to {committed}, "
                f"and its leader in epoch {leader_epoch} ends at {log_end}"
            )
        self._latest[partition] = (leader_epoch, high_watermark)
        self._committed[partition] = max(committed, high_watermark)

    def forget(self, partition: TopicPartition) -> None:
        """A topic of the same name begins anew."""
        self._latest.pop(partition, None)
        self._committed.pop(partition, None)

    def lone_replica_lost(self, partition: TopicPartition) -> None:
        """The only replica in sync lost its power: what was not acknowledged may be gone."""
        acknowledged_end = self._history.acknowledged_end(partition)
        committed = self._committed.get(partition, 0)
        self._committed[partition] = min(committed, acknowledged_end)
        epoch, high_watermark = self._latest.get(partition, (-1, 0))
        self._latest[partition] = (epoch, min(high_watermark, acknowledged_end))
