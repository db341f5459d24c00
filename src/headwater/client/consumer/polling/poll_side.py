"""The polling thread's side of a consumer: takes records from the buffer, and hears what happened.

Of one thread at a time. It never waits and never touches the network; what is to be done there is
posted to the loop. Who polls looks at `has_news` first: rebalances, callbacks and errors go before
records, of which none is lost by that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.columns.arrow.batches import ArrowPart, check_arrow_schema, columns_to_arrow
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.user_commits import GroupCommits
from headwater.client.consumer.errors import SubscriptionError
from headwater.client.consumer.fetching.partition_state import PositionStep
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.interceptors import Interceptors
from headwater.client.consumer.membership.membership import Membership
from headwater.client.consumer.metrics import ConsumerMetrics
from headwater.client.consumer.polling.failures import Failures
from headwater.client.consumer.polling.fetch_buffer import FetchBuffer
from headwater.client.consumer.polling.hand_out import HandOut
from headwater.client.consumer.polling.paused_collection import paused_collection
from headwater.client.consumer.polling.record_reader import RecordReader
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.given_items import given_number, given_seconds

if TYPE_CHECKING:
    import pyarrow as pa

#: How many records `poll_arrow` returns at most if nobody says otherwise.
ARROW_RECORDS: Final = 1 << 16
#: A membership need not hear of every poll, since its limits are in seconds.
_POLLED_INTERVAL_S: Final = 0.05


def record_limit(given: int | None, default: int) -> int:
    """How many records a poll returns at most."""
    return default if given is None else given_number(given, "max_records", lowest=0)


class PollSide:
    def __init__(
        self,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        *,
        commits: GroupCommits | None,
        membership: Membership | None,
        failures: Failures,
        interceptors: Interceptors,
        metrics: ConsumerMetrics,
        wake: Callable[[], None],
        post: Callable[[Callable[[], object]], None],
        loop_time: Callable[[], float],
    ) -> None:
        self.hand_out = HandOut()
        self._subscription = subscription
        self._buffer = buffer
        self._commits = commits
        self._membership = membership
        self._interceptors = interceptors
        self._metrics = metrics
        self._wake = wake
        self._post = post
        self._loop_time = loop_time
        self._tell_polled_s = 0.0
        self._failures = failures

    def end_of_wait_s(self, now_s: float, timeout_s: float) -> float:
        """Until when a poll may wait; raises if there is nothing that it could wait for."""
        if not self._subscription.is_chosen:
            raise SubscriptionError(
                "This consumer has not subscribed to topics and has no partitions assigned: call "
                "subscribe() or assign() before it is polled."
            )
        try:
            return now_s + timeout_s
        except TypeError:
            given_seconds(timeout_s)
            raise TypeError("timeout_s cannot be None: it must be a number of seconds.") from None

    def begin(self, now_s: float) -> None:
        """A poll begins: the group hears of it, and what the one before returned is committed."""
        self._metrics.poll_began(now_s)
        membership = self._membership
        if membership is not None and now_s >= self._tell_polled_s:
            self._tell_polled_s = now_s + _POLLED_INTERVAL_S
            loop_time = self._loop_time
            self._post(lambda: membership.polled(loop_time()))
            self._wake()
        commits = self._commits
        if commits is not None and commits.is_due(now_s):
            offsets = self.consumed()
            self._post(lambda: commits.commit_automatically(offsets))

    def end(self, now_s: float) -> None:
        self._metrics.poll_ended(now_s)

    # -- news ------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether a rebalance, a callback or a failure is to be looked at."""
        membership, commits = self._membership, self._commits
        return (
            (membership is not None and (membership.event is not None or bool(membership.failure)))
            or (commits is not None and commits.has_callbacks)
            or bool(self._failures)
        )

    def raise_failure(self) -> None:
        """Raise what the user has to hear, once each; records that are there stay there."""
        failure = self.take_failure()
        if failure is not None:
            raise failure

    def take_failure(self) -> KafkaError | None:
        """What the user has to hear, once each."""
        failure = self._failures.take()
        if failure is None and self._membership is not None and self._membership.failure:
            return self._membership.take_failure()
        return failure

    def run_callbacks(self) -> None:
        if self._commits is not None:
            self._commits.run_callbacks()

    # -- records ---------------------------------------------------------------------------------

    def take_left(self, count: int) -> list[ConsumerRecord]:
        """What an iteration over a former poll has not handed out, at most `count` of it."""
        left = self.hand_out.take_back()
        if len(left) > count:
            self.hand_out.begin(left[count:])
            return left[:count]
        return left

    def take(self, count: int, now_s: float) -> list[ConsumerRecord]:
        """The next records, at most `count`; raises a damage where nothing stands before it."""
        with paused_collection():
            records = self._take_records(count, now_s)
        if records:
            self._metrics.consumed(len(records), now_s)
            if self._interceptors:
                records = self._interceptors.on_consume(records)
        return records

    def _take_records(self, count: int, now_s: float) -> list[ConsumerRecord]:
        records: list[ConsumerRecord] = []
        while len(records) < count:
            reader = self._next_reader()
            if reader is None:
                break
            try:
                taken = reader.take(count - len(records))
            except Exception:
                if records:
                    break
                raise
            if records:
                records += taken
            else:
                records = taken
            self._moved(reader, now_s)
        return records

    def take_arrow(
        self, count: int, now_s: float, schema: pa.Schema | None
    ) -> pa.RecordBatch | None:
        """The same as one Arrow batch; None if there is nothing."""
        if schema is not None:
            # Before anything is taken, since what is taken counts as consumed.
            check_arrow_schema(schema)
        parts: list[ArrowPart] = []
        left_count = count
        while left_count > 0:
            reader = self._next_reader()
            if reader is None:
                break
            try:
                columns = reader.take_columns(left_count)
            except Exception:
                if parts:
                    break
                raise
            if columns is not None:
                parts.append(ArrowPart(*reader.state.topic_partition, columns))
                left_count -= len(columns)
            self._moved(reader, now_s)
        if not parts:
            return None
        self._metrics.consumed(count - left_count, now_s)
        return columns_to_arrow(parts, schema)

    def empty_arrow(self, schema: pa.Schema | None) -> pa.RecordBatch:
        return columns_to_arrow([], schema)

    def _next_reader(self) -> RecordReader | None:
        reader, has_begun = self._buffer.next_reader()
        if has_begun:
            # Now the next fetch may leave.
            self._wake()
        return reader

    def _moved(self, reader: RecordReader, now_s: float) -> None:
        """Something was taken: the position is after it."""
        state = reader.state
        state.offset, state.offset_epoch = reader.offset, reader.leader_epoch
        if reader.is_exhausted:
            self._buffer.finish(reader)
            self._metrics.bytes_consumed(reader.size_bytes, now_s)
            if state.step is not PositionStep.FETCHING:
                # Whether the position is valid is asked once nothing is buffered any more.
                self._wake()

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What would be committed now: one offset more than the last record handed out."""
        offsets = {
            state.topic_partition: state.committable()
            for state in self._subscription.states()
            if state.has_position
        }
        for partition, record in self.hand_out.first_left().items():
            if partition in offsets:
                offsets[partition] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
        return offsets
