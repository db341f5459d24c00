"""Runs a coordinator: a shard of state for each partition of its topic that this broker leads.

An operation runs on a shard without interruption. Its records are appended to the partition, then
replayed into the shard, and its answer goes out when they are safe. If the append fails nothing has
changed. Loading a partition replays all of its records into a new shard, the same way; meanwhile
clients hear COORDINATOR_LOAD_IN_PROGRESS. When another broker leads the partition, the shard is
closed and forgotten: everything that matters is in the topic. A shard belongs to one leader epoch:
when that grows it is loaded anew, even if this broker leads again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final, Generic, TypeVar

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.loop_timer import LoopTimer
from headwater.base.printable import listed
from headwater.base.threads import RunInThread
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.key_hash import partition_for
from headwater.coordinator.outcome import Change, Outcome, ProducerIdentity, Reply
from headwater.coordinator.shard import Shard
from headwater.coordinator.shard_log import ShardLog, ShardLogOptions, as_coordinator_error
from headwater.coordinator.shard_timers import ShardTimers
from headwater.coordinator.timers import Timers
from headwater.coordinator.write_backoff import WriteBackoff
from headwater.replication.partition.partitions import Partitions
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.wire.records import ControlType

_logger = logging.getLogger(__name__)

#: Members hear with a heartbeat, every 3 or 5 s by default, that another broker coordinates them.
_HEARTBEAT_MS_MAX: Final = 10_000

S = TypeVar("S", bound=Shard)
R = TypeVar("R")


class _State(Enum):
    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class RuntimeEnvironment:
    """What a runtime needs of its broker."""

    node_id: int
    partitions: Partitions
    parked: ParkedRequests
    timer: LoopTimer
    clock: Clock
    run_in_thread: RunInThread
    tasks: BackgroundTasks


class _Led(Generic[S]):
    """A partition that this broker leads, and its shard."""

    __slots__ = ("backoff", "leader_epoch", "loading", "log", "number", "shard", "state", "timers")

    def __init__(
        self,
        number: int,
        shard: S,
        log: ShardLog,
        leader_epoch: int,
        timers: ShardTimers,
        backoff: WriteBackoff,
    ) -> None:
        self.number = number
        self.shard = shard
        self.log = log
        self.leader_epoch = leader_epoch
        self.timers = timers
        self.backoff = backoff
        self.state = _State.LOADING
        self.loading: asyncio.Task[None] | None = None


class _LoadBatch:
    """What a broker takes over at a time, for one line in the log."""

    def __init__(self, begun_ms: float) -> None:
        self.begun_ms = begun_ms
        self.numbers: list[int] = []
        self.record_count = 0
        #: The numbers of those that are not there yet.
        self.pending: set[int] = set()


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        topic: str,
        options: ShardLogOptions,
        environment: RuntimeEnvironment,
        make_shard: Callable[[int, int, Timers], S],
    ) -> None:
        """`make_shard` gets the partition's number, its leader epoch, and the shard's timers."""
        self.topic = topic
        self._options = options
        self._environment = environment
        self._make_shard = make_shard
        self._partition_count = 0
        self._led: dict[int, _Led[S]] = {}
        #: Leader epochs of partitions that are led here, but whose log could not be made yet.
        self._without_log: dict[int, int] = {}
        #: When partitions were unloaded that this broker has not led since.
        self._left_ms: dict[int, float] = {}
        self._loads: _LoadBatch | None = None

    # -- following the cluster -------------------------------------------------------------------

    def start(self, image: ClusterImage) -> None:
        """Begin to load the partitions that this broker leads."""
        self._follow(image)

    async def on_image(self, change: ImageChange) -> None:
        """A subscriber of the image, after partitions have followed the change."""
        if (
            self.topic in change.changed_topics
            or self.topic in change.changed_partitions
            or any(topic.name == self.topic for topic in change.deleted_topics)
        ):
            self._follow(change.image)
        for led in list(self._led.values()):
            if led.state is _State.ACTIVE:
                for outcome in led.shard.on_image(change, self._environment.clock.wall_ms()):
                    self._settle(led, outcome)

    def _follow(self, image: ClusterImage) -> None:
        topic = image.topics.get(self.topic)
        partitions = () if topic is None else topic.partitions
        self._partition_count = len(partitions)
        self._without_log.clear()
        left: list[int] = []
        for number, led in list(self._led.items()):
            is_mine = number < len(partitions) and (
                partitions[number].leader == self._environment.node_id
                and partitions[number].leader_epoch == led.leader_epoch
            )
            if not is_mine:
                self._unload(led)
                left.append(number)
        for number, partition in enumerate(partitions):
            if partition.leader == self._environment.node_id and number not in self._led:
                self._load(number, partition.leader_epoch)
        given_up = [number for number in left if number not in self._led]
        if given_up:
            _logger.info(
                "%s: %s went to other coordinators: %s.",
                self.topic,
                counted(len(given_up), "partition"),
                listed(sorted(given_up)),
            )

    def _load(self, number: int, leader_epoch: int) -> None:
        environment = self._environment
        try:
            partition = environment.partitions.get(self.topic, number)
        except KafkaError:
            self._without_log[number] = leader_epoch
            return
        self._without_log.pop(number, None)
        self._left_ms.pop(number, None)
        log = ShardLog(
            partition,
            leader_epoch,
            self._options,
            environment.parked,
            environment.clock,
            environment.run_in_thread,
        )
        timers = ShardTimers(environment.timer, environment.clock)
        shard = self._make_shard(number, leader_epoch, timers)
        led = _Led(number, shard, log, leader_epoch, timers, WriteBackoff(environment.timer))
        timers.run = lambda outcome: self._settle(led, outcome)
        self._led[number] = led
        if log.partition.log_end_offset == log.partition.log_start_offset:
            self._activate(led)  # Nothing to read: the first group of a cluster need not wait.
        else:
            if self._loads is None:
                self._loads = _LoadBatch(environment.clock.monotonic_ms())
            self._loads.pending.add(number)
            name = f"loading of {self.topic}-{number}"
            led.loading = environment.tasks.start(name, self._replay(led))

    async def _replay(self, led: _Led[S]) -> None:
        try:
            count = await led.log.replay_into(led.shard)
        except Exception as error:
            # A record that nobody understands costs its partition, and not the broker: it would
            # cost each one that is to lead the partition next, too.
            expected = isinstance(error, (KafkaError, OSError))
            led.state = _State.FAILED
            _logger.error(
                "%s-%d could not be loaded: %s",
                self.topic,
                led.number,
                str(error) or type(error).__name__,
                exc_info=None if expected else error,
            )
            self._load_ended(led.number)
        else:
            if self._led.get(led.number) is led:
                self._activate(led)
                self._load_ended(led.number, count)

    def _load_ended(self, number: int, record_count: int | None = None) -> None:
        """A partition is loaded, with so many records, or will not be."""
        loads = self._loads
        if loads is None or number not in loads.pending:
            return
        loads.pending.remove(number)
        if record_count is not None:
            loads.numbers.append(number)
            loads.record_count += record_count
        if loads.pending:
            return
        self._loads = None
        if loads.numbers:
            _logger.info(
                "%s: %s with %s loaded in %d ms: %s.",
                self.topic,
                counted(len(loads.numbers), "partition"),
                counted(loads.record_count, "record"),
                self._environment.clock.monotonic_ms() - loads.begun_ms,
                listed(sorted(loads.numbers)),
            )

    def _activate(self, led: _Led[S]) -> None:
        led.state = _State.ACTIVE
        led.shard.on_loaded(self._environment.clock.wall_ms())

    def _unload(self, led: _Led[S]) -> None:
        del self._led[led.number]
        self._left_ms[led.number] = self._environment.clock.monotonic_ms()
        if led.loading is not None:
            led.loading.cancel()
            self._load_ended(led.number)
        led.timers.close()
        led.shard.close(
            KafkaError(
                ErrorCode.NOT_COORDINATOR, f"{self.topic}-{led.number} moved to another broker."
            )
        )
        led.backoff.close()

    async def loaded(self) -> None:
        """Wait until everything that is being loaded is."""
        tasks = [led.loading for led in self._led.values() if led.loading is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """The broker stops."""
        for led in list(self._led.values()):
            self._unload(led)

    # -- looking ---------------------------------------------------------------------------------

    def partition_of(self, key: str) -> int:
        """The number of the partition that a group or a transactional id belongs to."""
        if self._partition_count == 0:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {self.topic} does not exist yet."
            )
        return partition_for(key, self._partition_count)

    def is_led(self, key: str, leader_epoch: int) -> bool:
        """Whether this broker serves a key, or is about to, and still in that leader epoch."""
        led = self._led.get(self.partition_of(key)) if self._partition_count else None
        return led is not None and led.leader_epoch == leader_epoch

    def is_asked_in_good_faith(self, key: str) -> bool:
        """Whether clients have reason to take this broker for the coordinator of a key.

        It leads the key's partition, even if it cannot serve it just now; or it did lately, so that
        members may not have heard yet that another one does.
        """
        if not self._partition_count:
            return False
        number = self.partition_of(key)
        if number in self._led or number in self._without_log:
            return True
        left_ms = self._left_ms.get(number)
        now_ms = self._environment.clock.monotonic_ms()
        return left_ms is not None and now_ms < left_ms + _HEARTBEAT_MS_MAX

    def shards(self) -> Iterator[S]:
        """All that serve."""
        return iter([led.shard for led in self._led.values() if led.state is _State.ACTIVE])

    def shard(self, number: int) -> S | None:
        """The one of a partition, if it serves."""
        led = self._led.get(number)
        return led.shard if led is not None and led.state is _State.ACTIVE else None

    @property
    def is_loading(self) -> bool:
        """Whether some partition is not ready yet, so that `shards` does not tell everything."""
        return any(led.state is _State.LOADING for led in self._led.values())

    def _active(self, number: int) -> _Led[S]:
        if number in self._without_log:
            self._load(number, self._without_log[number])
        led = self._led.get(number)
        if led is None or led.state is _State.FAILED:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"This broker does not lead {self.topic}-{number}."
            )
        if led.state is _State.LOADING:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{number} is being loaded."
            )
        return led

    # -- operations ------------------------------------------------------------------------------

    async def write(self, key: str, operation: Callable[[S, int], Change[R]]) -> R:
        """Run an operation (shard, time), and answer when its records are safe."""

        def run(shard: S, now_ms: int, reply: Reply[R]) -> Outcome:
            change = operation(shard, now_ms)
            return Outcome(
                records=change.records,
                on_safe=lambda: reply.send(change.response),
                on_failed=reply.fail,
                producer=change.producer,
            )

        return await self.ask(key, run)

    async def read(self, key: str, operation: Callable[[S, int], R]) -> R:
        """Look at a shard, and answer when all that can be seen there is safe."""

        def run(shard: S, now_ms: int, reply: Reply[R]) -> Outcome:
            answer = operation(shard, now_ms)
            return Outcome(
                on_safe=lambda: reply.send(answer), on_failed=reply.fail, follows_writes=True
            )

        return await self.ask(key, run)

    async def ask(self, key: str, operation: Callable[[S, int, Reply[R]], Outcome]) -> R:
        """Run an operation (shard, time, reply) that replies when it sees fit."""
        led = self._active(self.partition_of(key))
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        reply: Reply[R] = Reply(partial(_complete, future))
        self._settle(led, operation(led.shard, self._environment.clock.wall_ms(), reply))
        return await future

    async def end_transaction(
        self,
        number: int,
        producer: ProducerIdentity,
        control_type: ControlType,
        coordinator_epoch: int,
    ) -> None:
        """Write a transaction's marker to one partition; returns when it is safe."""
        led = self._active(number)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reply: Reply[None] = Reply(partial(_complete, future))
        led.log.append_marker(producer, control_type, coordinator_epoch)
        led.shard.replay_transaction_end(producer, is_committed=control_type is ControlType.COMMIT)
        led.log.when_safe(lambda: reply.send(None), reply.fail)
        await future

    def _settle(self, led: _Led[S], outcome: Outcome) -> None:
        """Write an outcome's records, let the shard see them, and go on when they are safe."""
        records = outcome.records
        if records:
            try:
                offset = led.log.append(records, outcome.producer)
            except KafkaError as error:
                led.backoff.fail(outcome.on_failed, as_coordinator_error(error))
                return
            now_ms = self._environment.clock.wall_ms()
            for number, record in enumerate(records):
                led.shard.replay(record, offset + number, outcome.producer, now_ms)
        if not records:
            if outcome.follows_writes and not led.log.is_all_safe():
                led.log.when_safe(outcome.on_safe, outcome.on_failed)
            else:
                outcome.on_safe()
            return

        def on_safe() -> None:
            led.backoff.succeeded()
            outcome.on_safe()

        led.log.when_safe(on_safe, partial(led.backoff.fail, outcome.on_failed))


def _complete(future: asyncio.Future[R], answer: R | KafkaError) -> None:
    if future.done():
        return  # Nobody waits any more: the connection is gone.
    if isinstance(answer, KafkaError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
