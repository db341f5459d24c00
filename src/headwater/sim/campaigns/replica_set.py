"""One partition on several brokers, played step by step: real logs and roles, no network.

A step is one fetch: the follower's plan makes the request, the leader's own code answers it, and
the follower takes the answer. In between, brokers crash, come back and are elected at will. Disks
are simulated ones, which lose what was not synced when the power goes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from itertools import groupby
from random import Random
from typing import NoReturn

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.checks import require
from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.fetch.session import FetchSession
from headwater.cluster.image.image import BrokerInfo, PartitionImage
from headwater.replication.fetch import (
    Fetched,
    FetchedPartition,
    FetchLimits,
    FetchTarget,
    note_follower,
    read_partitions,
)
from headwater.replication.following.answers import FollowerAnswers
from headwater.replication.following.options import FetcherOptions
from headwater.replication.following.plan import FetchPlan
from headwater.replication.leading.isr_changes import IsrOwner
from headwater.replication.leading.isr_state import IsrProposal
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.replication.partition.options import ACKS_ALL, AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.logs import DIRECTORY, PARTITION, batch_of, open_log, read_records
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

TOPIC_ID = uuid.UUID(int=7)
RULES = PartitionOptions(1, AcksAllFlush.OFF)
OPTIONS = FetcherOptions(max_wait_ms=0)


class NoEvents:
    """Nobody waits for these partitions."""

    def on_append(self, partition: Partition) -> None: ...
    def on_high_watermark(self, partition: Partition) -> None: ...
    def on_durable(self, partition: Partition) -> None: ...
    def on_log_start(self, partition: Partition) -> None: ...
    def on_in_sync(self, partition: Partition) -> None: ...
    def on_role(self, partition: Partition) -> None: ...
    def on_removed(self, partition: Partition) -> None: ...


class Proposals:
    """What leaders would like to change about the in-sync replicas; the test decides."""

    def __init__(self) -> None:
        self.submitted: list[IsrProposal] = []

    def submit(self, owner: IsrOwner, proposal: IsrProposal) -> None:
        self.submitted.append(proposal)

    def changed(
        self, partition: TopicPartition, before: Iterable[int], after: Iterable[int]
    ) -> None: ...


async def _no_thread(_work: object) -> NoReturn:
    raise AssertionError("nothing here waits for the disk in a thread")


class Replica:
    """One broker's replica. It survives crashes of its broker; its `partition` does not."""

    def __init__(
        self,
        node_id: int,
        config: LogConfig,
        clock: ManualClock,
        options: PartitionOptions = RULES,
        seed: int = 0,
    ) -> None:
        self.node_id = node_id
        self.config = config
        self.clock = clock
        self.options = options
        self.proposals = Proposals()
        self.disk = FaultyDisk(seed * 100 + node_id, directories=["/data"])
        self.broker_epoch = 1
        self.sessions: dict[int, FetchSession] = {}
        self._recovery_point = 0
        self._open(is_clean=False, high_watermark=0)

    def _open(self, *, is_clean: bool, high_watermark: int) -> None:
        log = open_log(
            self.disk,
            DIRECTORY,
            self.config,
            is_clean=is_clean,
            recovery_point=self._recovery_point,
            now_ms=self.clock.wall_ms(),
        )
        log.keep_recovery_point = self._keep_recovery_point
        log.raise_high_watermark(high_watermark)
        self.partition = Partition(
            PARTITION,
            TOPIC_ID,
            log,
            PartitionImage((), (), -1, -1, -1),
            options=self.options,
            environment=PartitionEnvironment(
                node_id=self.node_id,
                events=NoEvents(),
                clock=self.clock,
                run_in_thread=_no_thread,
                isr_changes=self.proposals,
                tasks=BackgroundTasks(),
            ),
        )
        self.plan = FetchPlan(-1, self.node_id, lambda: self.broker_epoch)
        self.answers = FollowerAnswers(self.plan)
        self.sessions.clear()
        self.proposals.submitted.clear()

    def _keep_recovery_point(self, offset: int) -> None:
        self._recovery_point = offset

    @property
    def log(self) -> PartitionLog:
        return self.partition.log

    def stop(self, *, knows_high_watermark: bool = True) -> None:
        """The process ends and starts again; the page cache has all that it wrote.

        The high watermark is in a checkpoint, which may be old.
        """
        high_watermark = self.log.high_watermark if knows_high_watermark else 0
        self.disk = self.disk.after_process_end()
        self.broker_epoch += 1
        self._open(is_clean=False, high_watermark=high_watermark)

    def lose_power(self, rng: Random, *, knows_high_watermark: bool = True) -> None:
        """Whatever was not synced may be gone; the broker starts again."""
        high_watermark = self.log.high_watermark if knows_high_watermark else 0
        self.disk = self.disk.crash(rng)
        self.broker_epoch += 1
        self._open(is_clean=False, high_watermark=high_watermark)

    def values(self, upper_offset: int | None = None) -> list[bytes | None]:
        """The values of all records below an offset."""
        log = self.log
        return [each.value for each in read_records(log, log.log_start_offset, upper_offset)]

    # What `Partitions` is to the leader's code.

    def get(self, topic: str, partition: int) -> Partition:
        if TopicPartition(topic, partition) != PARTITION:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such partition.")
        return self.partition

    def topic_name(self, topic_id: uuid.UUID) -> str:
        if topic_id != TOPIC_ID:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "There is no such topic.")
        return PARTITION.topic

    def answer(self, request: FetchRequest) -> FetchResponse:
        """What this broker answers a follower's fetch."""
        follower = request.replica_state.replica_id
        targets = [
            FetchTarget(
                self.topic_name(topic.topic_id) if topic.topic_id == TOPIC_ID else "",
                topic.topic_id,
                each.partition,
                each.fetch_offset,
                each.partition_max_bytes,
                each.current_leader_epoch,
                each.last_fetched_epoch,
                each.log_start_offset,
            )
            for topic in request.topics
            for each in topic.partitions
        ]
        session = self.sessions.get(follower)
        if request.session_epoch == 0:
            session = self.sessions[follower] = FetchSession(
                follower + 1, targets, by_id=True, now_ms=0, replica_id=follower
            )
        elif session is None or session.session_id != request.session_id:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        else:
            session.check_epoch(request.session_epoch)
            session.update(
                targets,
                [
                    (topic.topic_id, number)
                    for topic in request.forgotten_topics_data
                    for number in topic.partitions
                ],
            )
            session.advance(0)
        limits = FetchLimits(
            request.max_bytes,
            replica_id=follower,
            replica_epoch=request.replica_state.replica_epoch,
        )
        note_follower(self, session.targets(), limits)
        fetched: Fetched = read_partitions(self, session.targets(), limits)
        news = session.take_note(fetched.partitions)
        return FetchResponse(
            session_id=session.session_id,
            responses=[
                FetchableTopicResponse(
                    topic_id=topic_id, partitions=[_data(each) for each in of_topic]
                )
                for topic_id, of_topic in groupby(news, key=lambda each: each.target.topic_id)
            ],
        )


def _data(fetched: FetchedPartition) -> PartitionData:
    number = fetched.target.partition
    if fetched.error is not None:
        return PartitionData(
            partition_index=number, error_code=fetched.error.code, high_watermark=-1
        )
    if fetched.diverging is not None:
        epoch, end_offset = fetched.diverging
        return PartitionData(
            partition_index=number,
            diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
        )
    read = require(fetched.read, "a fetch of %d found nothing and did not fail", number)
    region = read.log_read.region
    return PartitionData(
        partition_index=number,
        high_watermark=read.high_watermark,
        log_start_offset=read.log_start_offset,
        records=b"" if region is None else region.read(),
    )


class ReplicaSet:
    """All replicas of the partition, and the controller's word."""

    def __init__(
        self,
        node_ids: Iterable[int],
        config: LogConfig | None = None,
        options: PartitionOptions = RULES,
        seed: int = 0,
    ) -> None:
        self.clock = ManualClock()
        self.replicas: Mapping[int, Replica] = {
            node_id: Replica(node_id, config or LogConfig(), self.clock, options, seed)
            for node_id in node_ids
        }
        self.leader = -1
        self.leader_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.partition_epoch = 0

    def __getitem__(self, node_id: int) -> Replica:
        return self.replicas[node_id]

    def elect(self, leader: int, isr: Iterable[int], *, tell: Iterable[int] | None = None) -> None:
        """A new leader in a new epoch; those in `tell` hear of it, or all."""
        self.leader, self.isr = leader, tuple(isr)
        self.leader_epoch += 1
        self.partition_epoch += 1
        for node_id in self.replicas if tell is None else tell:
            self.tell(node_id)

    def change_isr(self, isr: Iterable[int]) -> None:
        """The controller has agreed to other in-sync replicas, and the leader hears of it."""
        self.isr = tuple(isr)
        self.partition_epoch += 1
        self.tell(self.leader)

    def tell(self, node_id: int) -> None:
        """The controller's image reaches a broker."""
        replica = self.replicas[node_id]
        partition = replica.partition
        before = (partition.leader, partition.leader_epoch)
        partition._environment.brokers = {
            each.node_id: BrokerInfo(each.node_id, (), None, each.broker_epoch)
            for each in self.replicas.values()
        }
        partition.apply(
            PartitionImage(
                tuple(self.replicas),
                self.isr,
                self.leader,
                self.leader_epoch,
                self.partition_epoch,
            )
        )
        if (partition.leader, partition.leader_epoch) == before:
            return
        if replica.plan.leader != self.leader:
            replica.plan = FetchPlan(self.leader, node_id, lambda: replica.broker_epoch)
            replica.answers = FollowerAnswers(replica.plan)
        replica.plan.leave(partition)
        if not partition.is_leader:
            replica.plan.follow(partition, self.clock.wall_ms())

    def produce(self, *values: bytes) -> int:
        """One batch to the leader; returns its offset."""
        return self.append(batch_of(*values))

    def append(self, batch: bytes, origin: AppendOrigin = AppendOrigin.CLIENT) -> int:
        leader = self.replicas[self.leader].partition
        result = leader.append(batch, acks=ACKS_ALL, now_ms=self.clock.wall_ms(), origin=origin)
        return result.base_offset

    def fetch(self, follower: int, options: FetcherOptions = OPTIONS) -> int:
        """One round of a follower; returns the bytes that it wrote."""
        replica = self.replicas[follower]
        request = replica.plan.request(self.clock.monotonic_ms(), options)
        if request is None:
            return 0
        response = self.replicas[replica.plan.leader].answer(request)
        return self.take(follower, response, options)

    def take(
        self, follower: int, response: FetchResponse, options: FetcherOptions = OPTIONS
    ) -> int:
        """A follower gets an answer; out of range, it asks for the ends of the leader's log."""
        replica = self.replicas[follower]
        written = 0
        for followed, data in replica.plan.answered(response):
            written += replica.answers.take(
                followed,
                data,
                options,
                wall_ms=self.clock.wall_ms(),
                now_ms=self.clock.monotonic_ms(),
            )
        out_of_range, replica.answers.out_of_range = replica.answers.out_of_range, []
        for followed in out_of_range:
            leader = self.replicas[replica.plan.leader].log
            replica.answers.start_over(
                followed,
                leader.log_start_offset,
                leader.log_end_offset,
                options,
                wall_ms=self.clock.wall_ms(),
                now_ms=self.clock.monotonic_ms(),
            )
        return written

    def settle(self, rounds: int = 20) -> None:
        """Let all followers fetch until the leader's offsets have reached everybody."""
        for _ in range(rounds):
            for node_id in self.replicas:
                if node_id != self.leader:
                    self.fetch(node_id)
            self.clock.advance(2_000)
