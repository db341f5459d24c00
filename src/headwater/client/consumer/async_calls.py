"""What an `AsyncConsumer` is asked besides records: positions, commits, and questions.

What only changes the consumer's mind is done at once, and may be awaited all the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeVar

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.user_commits import CommitCallback, as_offsets
from headwater.client.consumer.core import ConsumerCore
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.positions.lookups import OffsetAndTimestamp
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import dead_record, retry_record
from headwater.client.failures.sending import CanSend, send_on
from headwater.client.failures.verdicts import AfterLike, after_ms_of
from headwater.client.given_items import given_partition

T = TypeVar("T")


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

    # -- traces ----------------------------------------------------------------------------------

    def handling(self, record: ConsumerRecord) -> AbstractContextManager[None]:
        """For `with`, around the handling of a record: with `trace.enable` a step of its trace.

        What is sent inside belongs to that trace too, also by other tasks that are started there.
        """
        trace = self._core.trace
        return nullcontext() if trace is None else trace.handling(record)

    @property
    def is_traced(self) -> bool:
        """Whether what is done with records is written down, by `trace.enable`."""
        return self._core.trace is not None

    def committed_elsewhere(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> None:
        """Tell the traces of records that a producer has committed these in its transaction."""
        if self._core.trace is not None:
            self._core.trace.committed(as_offsets(offsets))

    # -- positions -------------------------------------------------------------------------------

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata, leader_epoch: int = -1
    ) -> Done:
        """Read on from this offset."""
        self._core.seek(given_partition(partition), offset, leader_epoch)
        return DONE

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> Done:
        """Read on from the first record there is, in these partitions or in all."""
        self._core.seek_to_beginning(partitions)
        return DONE

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> Done:
        """Read on from the next record that is written, in these partitions or in all."""
        self._core.seek_to_end(partitions)
        return DONE

    def pause(self, partitions: Iterable[TopicPartition]) -> Done:
        """Return no records of these partitions until `resume`; they stay assigned."""
        self._core.pause(partitions)
        return DONE

    def resume(self, partitions: Iterable[TopicPartition]) -> Done:
        """Return records of these partitions again."""
        self._core.resume(partitions)
        return DONE

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._core.subscription.paused()

    async def position(self, partition: TopicPartition, timeout_s: float | None = None) -> int:
        """The offset of the next record that a poll will return."""
        return await self._core.position(given_partition(partition), timeout_s)

    async def lag(
        self, partitions: Iterable[TopicPartition] | None = None, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """How many offsets each position is behind the end of what can be read."""
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
        """Commit these offsets, of the next records to read, or all positions; waits for it."""
        await self._core.commit(offsets, timeout_s)
        self._core.poll_side.run_callbacks()

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> Done:
        """Commit without waiting; a later poll calls back, with the offsets and any error."""
        self._core.commit_nowait(offsets, callback)
        return DONE

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, for each partition; None where that is nothing."""
        return await self._core.committed(partitions, timeout_s)

    # -- failures --------------------------------------------------------------------------------

    def retry_later(
        self,
        record: ConsumerRecord,
        error: BaseException | str,
        *,
        producer: CanSend[T],
        after: AfterLike | None = None,
        queues: Sequence[AfterLike] = (),
    ) -> T:
        """Send a record that could not be handled to the group's retry topic; await it, twice.

        Once until it is taken and, with what that returns, once more until it is written: both
        before the record's offset is committed, unless they are in one transaction. Where this
        consumer has deserializers, the producer needs serializers that undo them.

        Of a group that has a queue for each delay `queues` are these delays, such as "5s".
        """
        group = self.group_identity().group_id
        queues_ms = [after_ms_of(delay) for delay in queues]
        return send_on(
            retry_record(record, error, group=group, after=after, queues_ms=queues_ms), producer
        )

    def dead_letter(
        self,
        record: ConsumerRecord,
        error: BaseException | str,
        *,
        producer: CanSend[T],
        queues: Sequence[AfterLike] = (),
    ) -> T:
        """The same for a record that shall not be tried again, whatever attempts are left."""
        group = self.group_identity().group_id
        queues_ms = [after_ms_of(delay) for delay in queues]
        return send_on(dead_record(record, error, group=group, queues_ms=queues_ms), producer)

    # -- questions -------------------------------------------------------------------------------

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition, the first record that is not older than the time given."""
        return await self._core.lookups.for_times(times_ms, timeout_s)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record in each partition."""
        return await self._core.lookups.beginning_offsets(partitions, timeout_s)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Where reading would end now: with read committed, before the first open transaction."""
        return await self._core.lookups.end_offsets(partitions, timeout_s)

    async def partitions_for(
        self, topic: str, timeout_s: float | None = None
    ) -> list[PartitionInfo]:
        """The partitions of a topic, asked for anew."""
        return await self._core.lookups.partitions_for(topic, timeout_s)

    async def topics(self, timeout_s: float | None = None) -> set[str]:
        """The names of all topics."""
        return await self._core.topics(timeout_s)

    def group_identity(self) -> GroupIdentity:
        """Who this member is, for `Producer.send_offsets_to_transaction`."""
        return self._core.identity

    def metrics(self) -> dict[str, float]:
        """Counters and measurements, by the names that Kafka has for them."""
        return self._core.figures()

    @property
    def connection_failure(self) -> KafkaError | None:
        """Why the cluster could not be asked about itself the last time; None if it could."""
        return self._core.connection_failure

    def enforce_rebalance(self, reason: str = "the application asked for it") -> Done:
        """Have the group assign its partitions anew, during the next polls."""
        self._core.enforce_rebalance(reason)
        return DONE
