"""What a `Consumer` is asked besides records: positions, commits, and questions about the cluster.

Every call is done by the core, on the background thread, while the caller waits.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.user_commits import CommitCallback, as_offsets
from headwater.client.consumer.core import ConsumerCore
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.polling.poll_side import PollSide
from headwater.client.consumer.positions.lookups import OffsetAndTimestamp
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.errors import ClientClosedError
from headwater.client.failures.failed_record import dead_record, retry_record
from headwater.client.failures.sending import CanSend, send_on
from headwater.client.failures.verdicts import AfterLike, after_ms_of
from headwater.client.given_items import given_partition
from headwater.client.machines.background_loop import BackgroundLoop

T = TypeVar("T")


class ConsumerCalls:
    _core: ConsumerCore
    _side: PollSide
    _background: BackgroundLoop
    _clock: Clock
    _is_closed: bool

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
    ) -> None:
        """Read on from this offset."""
        self._call(lambda: self._core.seek(given_partition(partition), offset, leader_epoch))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read on from the first record there is, in these partitions or in all."""
        self._call(lambda: self._core.seek_to_beginning(partitions))

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read on from the next record that is written, in these partitions or in all."""
        self._call(lambda: self._core.seek_to_end(partitions))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until `resume`; they stay assigned."""
        self._call(lambda: self._core.pause(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again."""
        self._call(lambda: self._core.resume(partitions))

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._call(self._core.subscription.paused)

    def position(self, partition: TopicPartition, timeout_s: float | None = None) -> int:
        """The offset of the next record that a poll will return."""
        return self._run(self._core.position(given_partition(partition), timeout_s))

    def lag(
        self, partitions: Iterable[TopicPartition] | None = None, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """How many offsets each position is behind the end of what can be read."""
        return self._run(self._core.lag(partitions, timeout_s))

    # -- commits ---------------------------------------------------------------------------------

    @property
    def commits_automatically(self) -> bool:
        """Whether polls commit what the ones before them returned."""
        commits = self._core.commits
        return commits is not None and commits.is_automatic

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Commit these offsets, of the next records to read, or all positions; waits for it."""
        self._run(self._core.commit(offsets, timeout_s))
        self._side.run_callbacks()

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting; a later poll calls back, with the offsets and any error."""
        self._call(lambda: self._core.commit_nowait(offsets, callback))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, for each partition; None where that is nothing."""
        return self._run(self._core.committed(partitions, timeout_s))

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
        """Send a record that could not be handled to the group's retry topic; returns a future.

        Wait for it before the record's offset is committed, or do both in one transaction. Where
        this consumer has deserializers, the producer needs serializers that undo them.

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

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition, the first record that is not older than the time given."""
        return self._run(self._core.lookups.for_times(times_ms, timeout_s))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record in each partition."""
        return self._run(self._core.lookups.beginning_offsets(partitions, timeout_s))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Where reading would end now: with read committed, before the first open transaction."""
        return self._run(self._core.lookups.end_offsets(partitions, timeout_s))

    def partitions_for(self, topic: str, timeout_s: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic, asked for anew."""
        return self._run(self._core.lookups.partitions_for(topic, timeout_s))

    def topics(self, timeout_s: float | None = None) -> set[str]:
        """The names of all topics."""
        return self._run(self._core.topics(timeout_s))

    def group_identity(self) -> GroupIdentity:
        """Who this member is, for `Producer.send_offsets_to_transaction`."""
        return self._call(lambda: self._core.identity)

    def metrics(self) -> dict[str, float]:
        """Counters and measurements, by the names that Kafka has for them."""
        return self._call(self._core.figures)

    @property
    def connection_failure(self) -> KafkaError | None:
        """Why the cluster could not be asked about itself the last time; None if it could."""
        return self._core.connection_failure

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Have the group assign its partitions anew, during the next polls."""
        self._call(lambda: self._core.enforce_rebalance(reason))

    # -- how -------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosedError("The consumer is closed.")

    def _now_s(self) -> float:
        return self._clock.monotonic_ms() / 1000

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._is_closed:
            work.close()
            self._check_open()
        return self._background.run(work)

    def _call(self, function: Callable[[], T]) -> T:
        self._check_open()
        return self._background.call(function)
