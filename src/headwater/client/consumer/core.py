"""`ConsumerCore`: all of a consumer but its shell.

It lives on one event loop, together with its connection and the machines that the driver runs. The
user's thread (with `Consumer`) or task (with `AsyncConsumer`) polls. What belongs to polling is in
`PollSide` and may be called from that thread; everything in this class belongs to the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.user_commits import (
    CommitCallback,
    GroupCommits,
    as_offsets,
)
from headwater.client.consumer.errors import NoGroupError
from headwater.client.consumer.machines import ConsumerMachines
from headwater.client.consumer.membership.membership import GroupIdentity, Membership, Subscription
from headwater.client.consumer.options import ConsumerOptions
from headwater.client.consumer.polling.poll_side import PollSide
from headwater.client.consumer.polling.rebalances import Rebalances
from headwater.client.consumer.positions.lookups import OffsetLookups
from headwater.client.consumer.positions.reset import EARLIEST, LATEST, OffsetReset
from headwater.client.errors import DeadlineError
from headwater.client.given_items import given_number, given_partitions
from headwater.client.tracing.consumer_trace import ConsumerTrace
from headwater.client.tracing.tracer import make_tracer

_logger = logging.getLogger("headwater.client")

#: Of a topic; no retry mends them.
_TOPIC_ERRORS: Final = frozenset(
    {ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)


class ConsumerCore:
    """`post` has something called on the loop, `notify` lets a poll that waits look again."""

    def __init__(
        self,
        options: ConsumerOptions,
        *,
        post: Callable[[Callable[[], object]], None],
        notify: Callable[[], None],
    ) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self.api_timeout_s = options.seconds("default.api.timeout.ms")
        self._machines = machines = ConsumerMachines(options, notify)
        self.subscription = machines.subscription
        self.metrics = machines.metrics
        self.group = machines.group
        self._connection = machines.connection
        self._failures = machines.failures
        self._buffer = machines.buffer
        self._upkeep = machines.upkeep
        self._positions = machines.positions
        self._driver = machines.driver
        self._missing = machines.missing
        self._upkeep.on_change(self._metadata_changed)
        tracer = make_tracer(options.values, options.environment)
        #: None unless the consumer traces.
        self.trace = (
            None
            if tracer is None
            else ConsumerTrace(tracer, options.group_id, machines.group.identity)
        )
        self._interceptors = options.interceptors.with_first(self.trace)
        self.commits: GroupCommits | None = None
        if self.group.offset_commits is not None:
            self.commits = GroupCommits(
                self.group.offset_commits,
                auto_interval_s=options.auto_commit_interval_s,
                interceptors=options.interceptors,
                metrics=self.metrics,
                wake=self._driver.wake,
                notify=notify,
                on_committed=None if self.trace is None else self.trace.committed,
            )
        self.lookups = OffsetLookups(self._connection, options.isolation_level)
        self.poll_side = PollSide(
            self.subscription,
            self._buffer,
            commits=self.commits,
            membership=self.group.membership,
            failures=self._failures,
            interceptors=self._interceptors,
            metrics=self.metrics,
            wake=lambda: post(self._driver.wake),
            post=post,
            loop_time=self._loop.time,
        )
        self.rebalances = Rebalances(
            self.subscription,
            membership=self.group.membership,
            commits=self.commits,
            metrics=self.metrics,
            commit_timeout_s=self.api_timeout_s,
            consumed=self.poll_side.consumed,
            changed=self._assignment_changed,
            now_s=self._loop.time,
        )
        self._driver.wake()

    # -- what is read ----------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] | None, pattern: str | None) -> None:
        membership = self._needed_membership("subscribe")
        subscription = self.subscription.subscribe(topics, pattern)
        self._upkeep.wants_all = pattern is not None
        membership.subscribe(subscription, self._loop.time())
        self._assignment_changed(())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        if self.commits is not None and self.subscription.is_manual:
            # What has been read of those that go now is committed, as by a poll.
            self.commits.commit_automatically(self.poll_side.consumed())
        self._assignment_changed(self.subscription.assign(partitions))

    def unsubscribe(self) -> None:
        """After what is owned was let go of."""
        was_subscribed = self.subscription.is_subscribed
        self._upkeep.wants_all = False
        removed = self.subscription.unsubscribe()
        if was_subscribed and self.group.membership is not None:
            self.group.membership.subscribe(Subscription(), self._loop.time())
        self._assignment_changed(removed)

    def enforce_rebalance(self, reason: str) -> None:
        self.group.enforce_rebalance(reason, self._loop.time())
        self._driver.wake()

    def _needed_membership(self, what: str) -> Membership:
        if self.group.membership is None:
            raise NoGroupError(
                f"To {what} a consumer needs a group: set group.id, or assign partitions.",
            )
        return self.group.membership

    def _assignment_changed(self, removed: Collection[TopicPartition]) -> None:
        self._buffer.drop(removed)
        if self.trace is not None:
            self.trace.forget(removed)
        self.poll_side.hand_out.drop(removed)
        self.group.note_identity()
        self._upkeep.set_topics(self.subscription.topics() | self.group.topics())
        self._missing.look(self._loop.time())
        self._driver.wake()

    def _metadata_changed(self) -> None:
        self._positions.metadata_changed()
        if self.group.membership is not None:
            self.group.membership.metadata_changed(self._loop.time())
        metadata = self._connection.metadata
        for name in sorted(self.subscription.topics()):
            if metadata.topic(name) is None:
                self._upkeep.is_stale()
                try:
                    metadata.existing_topic(name)
                except KafkaError as error:
                    if error.code in _TOPIC_ERRORS:
                        self._failures.add(error)
        self._missing.look(self._loop.time())
        self._driver.wake()

    # -- positions -------------------------------------------------------------------------------

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata, leader_epoch: int
    ) -> None:
        if isinstance(offset, OffsetAndMetadata):
            offset, _, leader_epoch = offset
        offset = given_number(offset, "The offset", lowest=0)
        state = self.subscription.state(partition)
        self._rewind([partition])
        state.set_position(offset, leader_epoch)
        self._driver.wake()

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None) -> None:
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None) -> None:
        self._reset(partitions, LATEST)

    def _reset(self, partitions: Iterable[TopicPartition] | None, reset: OffsetReset) -> None:
        states = self.subscription.chosen(partitions)
        self._rewind([state.topic_partition for state in states])
        for state in states:
            state.request_reset(reset)
        self._driver.wake()

    def _rewind(self, partitions: Collection[TopicPartition]) -> None:
        self._buffer.drop(partitions)
        self._failures.forget(partitions)
        self.poll_side.hand_out.drop(partitions)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for state in self.subscription.chosen(partitions):
            state.is_paused = True
            self.give_back([state.topic_partition])

    def give_back(self, partitions: Collection[TopicPartition]) -> None:
        """What is left of a poll that is being iterated over is to be read again later."""
        for partition, record in self.poll_side.hand_out.drop(partitions).items():
            self._buffer.drop([partition])
            self.subscription.state(partition).set_position(record.offset)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for state in self.subscription.chosen(partitions):
            state.is_paused = False
        self._driver.wake()

    async def position(self, partition: TopicPartition, timeout_s: float | None) -> int:
        """The position once it is known; raises what stands in its way."""
        state = self.subscription.state(partition)
        limit_s = self.api_timeout_s if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(limit_s):
                while not state.has_position:
                    failure = self._failures.take()
                    if failure is not None:
                        raise failure
                    await self._positions.next_change().wait()
        except TimeoutError:
            raise DeadlineError(
                f"The position in {partition} was not found within {limit_s:g} s."
            ) from self._upkeep.failure
        left = self.poll_side.hand_out.first_left().get(partition)
        return state.offset if left is None else left.offset

    async def lag(
        self, partitions: Iterable[TopicPartition] | None, timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        """By the last fetches; who has had none yet is asked for."""
        states = self.subscription.chosen(partitions)
        offsets = {
            state.topic_partition: await self.position(state.topic_partition, timeout_s)
            for state in states
        }
        level = self._options.isolation_level
        ends = {state.topic_partition: state.end_offset(level) for state in states}
        unknown = [partition for partition, end_offset in ends.items() if end_offset < 0]
        ends.update(await self.lookups.end_offsets(unknown, timeout_s))
        return {
            partition: max(0, ends[partition] - offset) for partition, offset in offsets.items()
        }

    # -- commits ---------------------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None,
        timeout_s: float | None,
    ) -> None:
        limit_s = self.api_timeout_s if timeout_s is None else timeout_s
        await self._needed_commits().commit(self._offsets(offsets), limit_s)

    def commit_nowait(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None,
        callback: CommitCallback | None,
    ) -> None:
        self._needed_commits().commit_nowait(self._offsets(offsets), callback)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        self._needed_commits()
        return await self.group.committed(
            given_partitions(partitions),
            self._driver.wake,
            self.api_timeout_s if timeout_s is None else timeout_s,
        )

    def _needed_commits(self) -> GroupCommits:
        if self.commits is None:
            raise NoGroupError("Offsets belong to a group: set group.id.")
        return self.commits

    def _offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return self.poll_side.consumed() if offsets is None else as_offsets(offsets)

    # -- the rest --------------------------------------------------------------------------------

    @property
    def identity(self) -> GroupIdentity:
        return self.group.identity()

    @property
    def connection_failure(self) -> KafkaError | None:
        """Why the cluster could not be asked about itself the last time, if so."""
        return self._upkeep.failure

    def figures(self) -> dict[str, float]:
        figures = self.metrics.figures(
            self.subscription.states(), self._options.isolation_level, self._loop.time()
        )
        traced = {} if self.trace is None else self.trace.tracer.metrics()
        skipped_count = self._buffer.corrupt.skipped_count
        return {**figures, **traced, "corrupt-batches-skipped-total": skipped_count}

    async def topics(self, timeout_s: float | None) -> set[str]:
        with_internal = not self._options.values.boolean("exclude.internal.topics")
        return await self.lookups.topics(timeout_s, with_internal=with_internal)

    async def close(self, timeout_s: float) -> None:
        """Leave the group and close all connections; what is owned was let go of before."""
        try:
            await self.group.leave(self._driver.wake, self._loop.time(), timeout_s)
        finally:
            if self.trace is not None:
                await self.trace.tracer.close(timeout_s)
            await self._driver.close()
            await self._connection.close()
            self._options.interceptors.close()
