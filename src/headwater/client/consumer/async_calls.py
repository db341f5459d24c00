"""What an `AsyncConsumer` is asked besides records: positions, commits, and questions.

What only changes the consumer's mind is done at once, and may be awaited all the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.user_commits import CommitCallback
from headwater.client.consumer.core import ConsumerCore
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.positions.lookups import OffsetAndTimestamp


class Done:
    """What is done already, and may be awaited all the same."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE: Final = Done()


class AsyncConsumerCalls(ABC):
    _started: ConsumerCore | None

    @abstractmethod
    def _begin(self) -> ConsumerCore:
        """Make the core."""

    @property
    def _core(self) -> ConsumerCore:
        return self._started or self._begin()

    # -- positions -------------------------------------------------------------------------------

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata, leader_epoch: int = -1
    ) -> Done:
        """Go on with this offset."""
        self._core.seek(TopicPartition(*partition), offset, leader_epoch)
        return DONE

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> Done:
        """Go on with the first record that there is, of these partitions or of all."""
        self._core.seek_to_beginning(partitions)
        return DONE

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> Done:
        """Go on with the next record that is written."""
        self._core.seek_to_end(partitions)
        return DONE

    def pause(self, partitions: Iterable[TopicPartition]) -> Done:
        """Hand out nothing of these until `resume`; they stay assigned."""
        self._core.pause(partitions)
        return DONE

    def resume(self, partitions: Iterable[TopicPartition]) -> Done:
        self._core.resume(partitions)
        return DONE

    def paused(self) -> set[TopicPartition]:
        return self._core.subscription.paused()

    async def position(self, partition: TopicPartition, timeout_s: float | None = None) -> int:
        """The offset of the next record that will be handed out."""
        return await self._core.position(TopicPartition(*partition), timeout_s)

    async def lag(
        self, partitions: Iterable[TopicPartition] | None = None, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """How many offsets lie between the positions and the end of what can be read."""
        return await self._core.lag(partitions, timeout_s)

    # -- commits ---------------------------------------------------------------------------------

    @property
    def commits_automatically(self) -> bool:
        """Whether polls commit what the ones before them returned."""
        commits = self._core.commits
        return commits is not None and commits.is_automatic

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Commit these offsets (of the next record to read), or all positions; waits for it."""
        await self._core.commit(offsets, timeout_s)
        self._core.poll_side.run_callbacks()

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> Done:
        """The same without waiting; a later poll calls back with the offsets and the error."""
        self._core.commit_nowait(offsets, callback)
        return DONE

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None for a partition of which it has nothing."""
        return await self._core.committed(partitions, timeout_s)

    # -- questions -------------------------------------------------------------------------------

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first record that is not older than the time given."""
        return await self._core.lookups.for_times(times_ms, timeout_s)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return await self._core.lookups.beginning_offsets(partitions, timeout_s)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Where reading would end now: with read committed, before the first open transaction."""
        return await self._core.lookups.end_offsets(partitions, timeout_s)

    async def partitions_for(
        self, topic: str, timeout_s: float | None = None
    ) -> list[PartitionInfo]:
        return await self._core.lookups.partitions_for(topic, timeout_s)

    async def topics(self, timeout_s: float | None = None) -> set[str]:
        """The names of all topics."""
        return await self._core.topics(timeout_s)

    def group_identity(self) -> GroupIdentity:
        """Who this member is, for a producer that commits its offsets in a transaction."""
        return self._core.identity

    def metrics(self) -> dict[str, float]:
        """What was counted and measured, under Kafka's names."""
        return self._core.figures()

    def enforce_rebalance(self, reason: str = "the user wishes it") -> Done:
        """Have the group share out its partitions anew, with the next polls."""
        self._core.enforce_rebalance(reason)
        return DONE
