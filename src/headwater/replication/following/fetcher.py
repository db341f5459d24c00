"""A connection over which this broker follows partitions of one leader, and the task that uses it.

    ask -> answer -> append -> ask ...

One fetch is under way at a time and the next one leaves as soon as the last answer is written; at
the end of all logs it waits at the leader. What to ask and what answers mean is sans-io
(`plan`, `answers`); here is what waits: for the leader, for its connection, for
pauses to be over. Between large appends, and after each truncation, others get their turn of the
event loop.

A lost connection is made anew after a pause. The pause ends early when the fetcher is given a
partition: then the leader is likely to be there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.net.peer_channel import PeerChannel
from headwater.replication.following.answers import FollowerAnswers
from headwater.replication.following.offsets import (
    EARLIEST,
    LATEST,
    NO_OFFSET,
    offsets_request,
    read_offsets,
)
from headwater.replication.following.options import FetcherOptions
from headwater.replication.following.partition import pause_ms
from headwater.replication.following.plan import FetchPlan
from headwater.replication.partition.partition import Partition
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.storage.partition_log import PartitionLog
from headwater.wire.codec import MalformedMessageError
from headwater.wire.messages.fetch import FetchRequest, FetchResponse

_logger = logging.getLogger(__name__)

#: How much is done before others get their turn: a few milliseconds of page-cache writes.
_TURN_BYTES_MAX: Final = 1 << 20
_TURN_MS_MAX: Final = 5

Connect = Callable[[int], Awaitable[PeerChannel]]
#: Told of a log that was cut, and where it ends now.
OnTruncated = Callable[[PartitionLog, int], Awaitable[None]]


class ReplicaFetcher:
    """Its owner is the event loop."""

    def __init__(
        self,
        leader: int,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        connect: Connect,
        options: Callable[[], FetcherOptions],
        clock: Clock,
        on_truncated: OnTruncated,
        tasks: BackgroundTasks,
        throttles: ReplicationThrottles,
        newcomers: ReplicaFetcher | None = None,
    ) -> None:
        self.leader = leader
        self.plan = FetchPlan(leader, node_id, broker_epoch, throttles)
        self.answers = FollowerAnswers(self.plan)
        #: Whether a fetch is under way, which partitions that come now are no part of.
        self.is_asking = False
        self._node_id = node_id
        self._connect = connect
        self._options = options
        self._clock = clock
        self._on_truncated = on_truncated
        self._tasks = tasks
        self._newcomers = newcomers
        self._channel: PeerChannel | None = None
        self._failure_count = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._tasks.start(f"fetcher from broker {self.leader}", self._run())

    @property
    def is_dead(self) -> bool:
        """Whether the task has ended by itself, which it never should."""
        return self._task is not None and self._task.done()

    def follow(self, partition: Partition) -> None:
        self.plan.follow(partition, self._clock.wall_ms())
        self._wake.set()

    def leave(self, partition: Partition) -> None:
        """When this returns, the fetcher does not touch the partition any more."""
        self.plan.leave(partition)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        await self._disconnect()

    # -- the task --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except (KafkaError, MalformedMessageError) as error:
                await self._failed(str(error))
            except Exception as error:
                _logger.exception("Following broker %d failed", self.leader)
                await self._failed(repr(error))

    async def _round(self) -> None:
        options = self._options()
        self._wake.clear()
        if self._newcomers is not None and len(self._newcomers.plan) > 0:
            self.plan.adopt(self._newcomers.plan)
        now_ms = self._clock.monotonic_ms()
        request = self.plan.request(now_ms, options)
        if request is None:
            await self._sleep(self.plan.wait_ms(now_ms))
            return
        response = await self._ask(request, options)
        answered = self.plan.answered(response)
        self._succeeded()
        appended_bytes, turn_began_ms = 0, self._clock.monotonic_ms()
        for followed, data in answered:
            now_ms = self._clock.monotonic_ms()
            if appended_bytes >= _TURN_BYTES_MAX or now_ms - turn_began_ms >= _TURN_MS_MAX:
                await asyncio.sleep(0)
                appended_bytes, turn_began_ms = 0, self._clock.monotonic_ms()
            appended_bytes += self.answers.take(
                followed, data, options, wall_ms=self._clock.wall_ms(), now_ms=now_ms
            )
            if self.answers.truncated:
                await self._tell_truncated()
        if self.answers.out_of_range:
            await self._start_over(options)

    async def _ask(self, request: FetchRequest, options: FetcherOptions) -> FetchResponse:
        self.is_asking = True
        try:
            channel = self._channel
            if channel is None or channel.is_closed:
                channel = self._channel = await self._connect(self.leader)
            response: FetchResponse = await channel.send(
                request, timeout_s=(options.socket_timeout_ms + options.max_wait_ms) / 1000
            )
            return response
        finally:
            self.is_asking = False

    async def _start_over(self, options: FetcherOptions) -> None:
        """Ask the leader for its offsets where a follower's are out of range."""
        wanted, self.answers.out_of_range = self.answers.out_of_range, []
        channel = self._channel
        if channel is None:
            return
        timeout_s = options.socket_timeout_ms / 1000
        starts = read_offsets(
            await channel.send(
                offsets_request(wanted, EARLIEST, self._node_id), timeout_s=timeout_s
            )
        )
        ends = read_offsets(
            await channel.send(offsets_request(wanted, LATEST, self._node_id), timeout_s=timeout_s)
        )
        for followed in wanted:
            start = starts.get(followed.partition.topic_partition, NO_OFFSET)
            end = ends.get(followed.partition.topic_partition, NO_OFFSET)
            wall_ms, now_ms = self._clock.wall_ms(), self._clock.monotonic_ms()
            if start.error_code or end.error_code:
                if self.plan.is_current(followed):
                    code = start.error_code or end.error_code
                    self.answers.refused(followed, code, options, now_ms)
            else:
                self.answers.start_over(
                    followed, start.offset, end.offset, options, wall_ms=wall_ms, now_ms=now_ms
                )
                await self._tell_truncated()

    async def _tell_truncated(self) -> None:
        truncated, self.answers.truncated = self.answers.truncated, []
        for log, offset in truncated:
            await self._on_truncated(log, offset)
        await asyncio.sleep(0)

    # -- pauses ----------------------------------------------------------------------------------

    async def _sleep(self, duration_ms: float | None) -> None:
        """Until the time is over, or there is something new to do."""
        try:
            async with asyncio.timeout(None if duration_ms is None else duration_ms / 1000):
                await self._wake.wait()
        except TimeoutError:
            return

    def _succeeded(self) -> None:
        if self._failure_count > 1:
            _logger.info("Broker %d is followed again", self.leader)
        self._failure_count = 0

    async def _failed(self, reason: str) -> None:
        self.plan.failed()
        await self._disconnect()
        self._failure_count += 1
        # One failure is what a restart of the leader looks like; and it is enough if one of the two
        # fetchers of a leader speaks.
        if self._failure_count == 2 and self._newcomers is not None:
            _logger.warning("Broker %d cannot be followed: %s", self.leader, reason.rstrip("."))
        await self._sleep(pause_ms(self._failure_count, self._options().backoff_ms))

    async def _disconnect(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
