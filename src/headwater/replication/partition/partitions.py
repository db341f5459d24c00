"""All partitions that this broker has a replica of.

The controller decides what exists and who leads; each change of the cluster image is applied here:
partitions learn their role, logs are made and deleted. Roles come first, because clients wait for
leaders. A log is made in a thread, because it waits for the disk, and the change counts as applied
when all of its logs are there. A change may name every partition of the cluster, so whatever stays
as it was must cost next to nothing.

What a handler asks for and does not get is told apart: a partition that nobody has
(UNKNOWN_TOPIC_OR_PARTITION), one that only others have (NOT_LEADER_OR_FOLLOWER), and one whose disk
has failed (KAFKA_STORAGE_ERROR).

Where this broker is in sync and cannot open its log, it resigns (`resignation`): the controller may
know somebody with a better disk.

A full disk is no failed one. Logs that it has no room for are made later: whoever asks for such a
partition has it tried again, once in a while.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import ClusterImage, PartitionImage, TopicImage
from headwater.replication.leading.resignation import Resignation
from headwater.replication.partition.environment import IsrProposals, PartitionEnvironment
from headwater.replication.partition.events import PartitionEvents
from headwater.replication.partition.options import PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.replica_logs import ReplicaLogs
from headwater.replication.partition.write_failures import WriteFailures
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.partition_log import PartitionLog

#: Logs that a thread makes before the event loop hears of it.
_CREATED_AT_ONCE = 50

#: How long a disk without room is left alone.
_RETRY_INTERVAL_MS = 1_000

#: The settings of a topic that partitions follow, by its name.
OptionsOf = Callable[[str], PartitionOptions]


@dataclass(slots=True)
class TrafficTotals:
    """What partitions that are gone have moved, so that a broker's totals never go back."""

    bytes_in: int = 0
    messages_in: int = 0
    bytes_out: int = 0
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    fsync_rounds: int = 0

    def add(self, partition: Partition) -> None:
        self.bytes_in += partition.bytes_in
        self.messages_in += partition.messages_in
        self.bytes_out += partition.bytes_out
        self.replication_bytes_in += partition.replication_bytes_in
        self.replication_bytes_out += partition.replication_bytes_out
        self.fsync_rounds += partition.fsync_rounds


class Partitions:
    def __init__(
        self,
        directories: LogDirectories,
        *,
        node_id: int,
        options_of: OptionsOf,
        events: PartitionEvents,
        isr_changes: IsrProposals,
        clock: Clock,
        run_in_thread: RunInThread,
        run_in_one_thread: RunInThread,
        tasks: BackgroundTasks,
        throttles: ReplicationThrottles | None = None,
    ) -> None:
        self._tasks = tasks
        self.throttles = throttles or ReplicationThrottles.unlimited()
        self._logs = ReplicaLogs(directories, clock, run_in_thread)
        self._node_id = node_id
        self._options_of = options_of
        self._events = events
        self._clock = clock
        rooms = {each.path: each.room for each in directories.directories}
        self._environment = PartitionEnvironment(
            node_id,
            events,
            clock,
            run_in_thread,
            isr_changes,
            tasks,
            WriteFailures(rooms),
            self.throttles,
            run_in_one_thread=run_in_one_thread,
        )
        self._by_topic: dict[str, dict[int, Partition]] = {}
        #: By the bytes of the id, as they come in a request.
        self._by_topic_id: dict[bytes, dict[int, Partition]] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._elsewhere: set[TopicPartition] = set()
        #: Those that there was no room for, with what is needed to make them.
        self._unmade: dict[TopicPartition, tuple[TopicImage, PartitionImage]] = {}
        #: Of those whose log cannot be opened, though this broker is to be in sync.
        self._resignations: dict[TopicPartition, Resignation] = {}
        self._retry: asyncio.Task[None] | None = None
        self._retry_ms = 0.0
        self.gone = TrafficTotals()
        directories.moves.on_moved = self._replace_log

    def __iter__(self) -> Iterator[Partition]:
        for partitions in list(self._by_topic.values()):
            yield from list(partitions.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_topic.values()))

    # -- looking up ------------------------------------------------------------------------------

    def find(self, topic: str, partition: int) -> Partition | None:
        """The partition if this broker serves it."""
        partitions = self._by_topic.get(topic)
        return None if partitions is None else partitions.get(partition)

    def find_by_id(self, topic_id: bytes, partition: int) -> Partition | None:
        """The same, of a topic that is named by the bytes of its id."""
        partitions = self._by_topic_id.get(topic_id)
        return None if partitions is None else partitions.get(partition)

    def of_topic(self, topic: str) -> Mapping[int, Partition]:
        """What this broker has of a topic."""
        return self._by_topic.get(topic, {})

    def get(self, topic: str, partition: int) -> Partition:
        """The partition, or a `KafkaError` that says why it cannot be had here."""
        partitions = self._by_topic.get(topic)
        found = None if partitions is None else partitions.get(partition)
        if found is None:
            raise self._absent(TopicPartition(topic, partition))
        return found

    def topic_name(self, topic_id: uuid.UUID) -> str:
        """The name of a topic; UNKNOWN_TOPIC_ID if no partition of such a topic is here."""
        name = self._names.get(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This broker knows no such topic id.")
        return name

    def _absent(self, partition: TopicPartition) -> KafkaError:
        if partition in self._unmade:
            self._make_unmade()
        failure = self._logs.failures.get(partition)
        if failure is not None:
            return failure
        if partition in self._elsewhere:
            return KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This broker has no replica of {partition}."
            )
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no {partition}.")

    # -- following the image ---------------------------------------------------------------------

    async def load(self, image: ClusterImage) -> None:
        """Take up the partitions of a broker that starts; their logs have been opened."""
        self._environment.brokers = image.brokers
        for topic in image.topics.values():
            await self._apply_topic(topic, is_new=False)
        self._logs.set_strays_aside(
            lambda partition: (
                self.find(*partition) is not None
                # Nobody can say just now what becomes of it.
                or partition.topic in image.unreadable_topics
            )
        )

    async def apply(self, change: ImageChange) -> None:
        """Give partitions their roles, make what the change brings, delete what it takes away."""
        await self.settle()
        self._environment.brokers = change.image.brokers
        for topic in change.deleted_topics:
            await self._delete(topic)
        for name in sorted(change.changed_partitions):
            topic_image = change.image.topics.get(name)
            if topic_image is not None:
                numbers = sorted(change.changed_partitions[name])
                await self._apply_topic(topic_image, is_new=True, numbers=numbers)
        for name in sorted(change.changed_topics):
            topic_image = change.image.topics.get(name)
            if topic_image is not None:
                await self._apply_topic(topic_image, is_new=True)
        if change.changed_brokers:
            for partition in self:
                if partition.leadership is not None:
                    partition.leadership.brokers_changed()

    def check_isr(self) -> None:
        """Once in a while: find followers of partitions led here that do not keep up."""
        for partition in self:
            if partition.leadership is not None:
                partition.leadership.check_isr()
        for resignation in self._resignations.values():
            resignation.ask()

    async def settle(self) -> None:
        """Wait for logs that are being made after all."""
        if self._retry is not None:
            await self._retry

    def _make_unmade(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._retry is None and now_ms >= self._retry_ms:
            self._retry_ms = now_ms + _RETRY_INTERVAL_MS
            self._retry = self._tasks.start("making of logs", self._try_unmade())

    async def _try_unmade(self) -> None:
        try:
            for partition, (topic, image) in list(self._unmade.items()):
                await self._add(topic, [(partition, image)], is_new=True)
                if partition in self._unmade:
                    break  # There is still no room.
        finally:
            self._retry = None

    def refresh_options(self, topics: Iterable[str] | None = None) -> None:
        """The settings of some topics, or of all, have changed."""
        for topic in list(self._by_topic) if topics is None else topics:
            options = self._options_of(topic)
            for partition in self.of_topic(topic).values():
                partition.take_options(options)

    def _replace_log(self, log: PartitionLog) -> None:
        partition = self.find(*log.partition)
        if partition is not None:
            partition.replace_log(log)

    async def _apply_topic(
        self, topic: TopicImage, *, is_new: bool, numbers: Iterable[int] | None = None
    ) -> None:
        existing = self._by_topic.setdefault(topic.name, {})
        self._by_topic_id[topic.topic_id.bytes] = existing
        self._names[topic.topic_id] = topic.name
        missing: list[tuple[TopicPartition, PartitionImage]] = []
        gone: list[Partition] = []
        for number in range(len(topic.partitions)) if numbers is None else numbers:
            image = topic.partitions[number]
            partition = existing.get(number)
            if self._node_id in image.replicas:
                if partition is not None:
                    partition.apply(image)
                    continue
                key = TopicPartition(topic.name, number)
                self._elsewhere.discard(key)
                if self._logs.has_failed(key):
                    self._resign(key, topic, image)
                else:
                    missing.append((key, image))
            elif partition is None or image.partition_epoch > partition.partition_epoch:
                # Of two states of a partition the later one counts, above all where it takes away.
                key = TopicPartition(topic.name, number)
                self._elsewhere.add(key)
                self._forget(key)
                if partition is not None:
                    gone.append(existing.pop(number))
        if gone:
            await self._remove(gone)
        if missing:
            await self._add(topic, missing, is_new=is_new)

    async def _add(
        self,
        topic: TopicImage,
        missing: list[tuple[TopicPartition, PartitionImage]],
        *,
        is_new: bool,
    ) -> None:
        options = self._options_of(topic.name)
        for first in range(0, len(missing), _CREATED_AT_ONCE):
            some = missing[first : first + _CREATED_AT_ONCE]
            logs = await self._logs.open(topic, [each for each, _ in some], is_new=is_new)
            for key, image in some:
                self._withdraw(key)
                log = logs.get(key)
                if log is not None:
                    self._unmade.pop(key, None)
                    partition = Partition(
                        key,
                        topic.topic_id,
                        log,
                        image,
                        options=options,
                        environment=self._environment,
                    )
                    self._by_topic[topic.name][key.partition] = partition
                    self._events.on_role(partition)
                    continue
                if self._logs.has_no_room(key):
                    self._unmade[key] = (topic, image)
                self._resign(key, topic, image)

    def _resign(self, key: TopicPartition, topic: TopicImage, image: PartitionImage) -> None:
        """Without a log this broker neither leads a partition nor is it in sync."""
        self._withdraw(key)
        if self._node_id in image.isr:
            self._resignations[key] = Resignation(key, topic.topic_id, image, self._environment)

    def _withdraw(self, key: TopicPartition) -> None:
        resignation = self._resignations.pop(key, None)
        if resignation is not None:
            resignation.withdraw()

    async def _delete(self, topic: TopicImage) -> None:
        partitions = self._by_topic.pop(topic.name, {})
        self._by_topic_id.pop(topic.topic_id.bytes, None)
        self._names.pop(topic.topic_id, None)
        for number in range(len(topic.partitions)):
            key = TopicPartition(topic.name, number)
            self._forget(key)
            self._elsewhere.discard(key)
        await self._remove(list(partitions.values()))

    def _forget(self, key: TopicPartition) -> None:
        """It is not this broker's any more, whether its log could be had or not."""
        self._logs.failures.pop(key, None)
        self._unmade.pop(key, None)
        self._withdraw(key)

    async def _remove(self, partitions: list[Partition]) -> None:
        """Delete the logs of partitions that are not found here any more."""
        for partition in partitions:
            self.gone.add(partition)
            partition.remove()
            # Whoever waits for it hears that it is gone, and whoever writes to its log stops.
            self._events.on_removed(partition)
        await self._logs.delete([each.topic_partition for each in partitions])
