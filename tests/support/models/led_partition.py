"""One partition that this broker leads, with followers that a test plays.

Brokers are 0, which leads, and its followers from 1 on. The test says when a follower fetches and
what the controller answers; whatever the leader tells anybody is written down.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import BrokerInfo, PartitionImage
from headwater.replication.leading.isr_changes import IsrOwner
from headwater.replication.leading.isr_state import IsrProposal
from headwater.replication.leading.leadership import Leadership
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.replication.partition.events import PartitionEvents
from headwater.replication.partition.options import AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.logs import DIRECTORY, PARTITION, batch_of, open_log
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.log_config import LogConfig
from headwater.wire.messages.alter_partition import ResponsePartitionData

T = TypeVar("T")

TOPIC_ID = uuid.UUID(int=7)
LAG_MAX_MS = 30_000
LEADER = 0


class WrittenEvents:
    """What a partition has told, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_append(self, partition: Partition) -> None:
        self.told.append("append")

    def on_high_watermark(self, partition: Partition) -> None:
        self.told.append(f"high watermark {partition.high_watermark}")

    def on_durable(self, partition: Partition) -> None:
        self.told.append("durable")

    def on_log_start(self, partition: Partition) -> None:
        self.told.append("log start")

    def on_in_sync(self, partition: Partition) -> None:
        self.told.append(f"in sync {list(partition.isr)}")

    def on_role(self, partition: Partition) -> None:
        self.told.append(f"leader {partition.leader} in epoch {partition.leader_epoch}")

    def on_removed(self, partition: Partition) -> None:
        self.told.append("removed")

    def take(self) -> list[str]:
        told, self.told = self.told, []
        return told


class FakeController:
    """Keeps proposals until the test answers them."""

    def __init__(self) -> None:
        self.proposals: list[tuple[IsrOwner, IsrProposal]] = []
        self.changes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def submit(self, owner: IsrOwner, proposal: IsrProposal) -> None:
        if (owner, proposal) not in self.proposals:
            self.proposals.append((owner, proposal))

    def changed(
        self, partition: TopicPartition, before: Iterable[int], after: Iterable[int]
    ) -> None:
        self.changes.append((tuple(before), tuple(after)))

    @property
    def wanted(self) -> list[tuple[int, ...]]:
        """The in-sync replicas of all proposals that have no answer."""
        return [proposal.isr for _, proposal in self.proposals]

    def accept(self) -> None:
        """Agree to the oldest proposal."""
        owner, proposal = self.proposals.pop(0)
        assert owner.is_waiting_for(proposal)
        owner.accepted(
            proposal,
            ResponsePartitionData(
                leader_id=LEADER,
                leader_epoch=proposal.leader_epoch,
                isr=list(proposal.isr),
                partition_epoch=proposal.partition_epoch + 1,
            ),
        )

    def refuse(self, code: ErrorCode) -> bool:
        """Say no to the oldest proposal; returns whether it is to be made again."""
        owner, proposal = self.proposals.pop(0)
        return owner.refused(proposal, code)


class HeldThreads:
    """Work for threads that waits until the test lets it go, if it is told to hold."""

    def __init__(self) -> None:
        self.is_holding = False
        self._waiting: list[asyncio.Future[None]] = []

    async def run(self, work: Callable[[], T]) -> T:
        if self.is_holding:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        return work()

    def release(self) -> None:
        self.is_holding = False
        for waiting in self._waiting:
            waiting.set_result(None)
        self._waiting.clear()


class LedPartition:
    def __init__(
        self,
        followers: Iterable[int] = (1, 2),
        *,
        isr: Iterable[int] | None = None,
        min_insync_replicas: int = 1,
        acks_all_flush: AcksAllFlush = AcksAllFlush.OFF,
        config: LogConfig | None = None,
        events: PartitionEvents | None = None,
    ) -> None:
        self.clock = ManualClock()
        #: What the partition has told, unless the test listens itself.
        self.events = WrittenEvents()
        self.controller = FakeController()
        self.threads = HeldThreads()
        self.disk = FaultyDisk(0, directories=["/data"])
        replicas = (LEADER, *followers)
        self.image = PartitionImage(replicas, replicas if isr is None else tuple(isr), LEADER, 4, 9)
        self.environment = PartitionEnvironment(
            LEADER,
            events or self.events,
            self.clock,
            self.threads.run,
            self.controller,
            BackgroundTasks(),
            brokers={each: BrokerInfo(each, (), None, 100 + each) for each in replicas},
        )
        log = open_log(self.disk, DIRECTORY, config, now_ms=self.clock.wall_ms())
        self.partition = Partition(
            PARTITION,
            TOPIC_ID,
            log,
            self.image,
            options=PartitionOptions(min_insync_replicas, acks_all_flush, LAG_MAX_MS),
            environment=self.environment,
        )

    @property
    def leadership(self) -> Leadership:
        leadership = self.partition.leadership
        assert leadership is not None
        return leadership

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark

    def append(self, count: int = 1, acks: int = 1) -> int:
        """Write so many records; returns where the log ends then."""
        for _ in range(count):
            batch = bytearray(batch_of(b"value", timestamp=self.clock.wall_ms()))
            self.partition.append(batch, acks=acks, now_ms=self.clock.wall_ms())
        return self.partition.log_end_offset

    def fetch(self, broker_id: int, offset: int, *, log_start_offset: int = 0) -> None:
        """A follower has all in front of `offset`, and asks for more."""
        self.leadership.check_follower(broker_id, 100 + broker_id, self.partition.leader_epoch)
        self.leadership.follower_fetched(broker_id, 100 + broker_id, offset, log_start_offset)

    def fetch_all(self, *broker_ids: int) -> None:
        """Followers have all that there is."""
        for broker_id in broker_ids:
            self.fetch(broker_id, self.partition.log_end_offset)

    def apply(
        self,
        *,
        leader: int = LEADER,
        leader_epoch: int | None = None,
        isr: Iterable[int] | None = None,
        partition_epoch: int | None = None,
    ) -> None:
        """The controller's image says something new."""
        partition = self.partition
        self.partition.apply(
            PartitionImage(
                partition.replicas,
                partition.isr if isr is None else tuple(isr),
                leader,
                partition.leader_epoch if leader_epoch is None else leader_epoch,
                partition.partition_epoch + 1 if partition_epoch is None else partition_epoch,
            )
        )

    def restart_broker(self, broker_id: int, broker_epoch: int) -> None:
        """A follower's broker comes back in another life, and the image says so."""
        self.environment.brokers = {
            **self.environment.brokers,
            broker_id: BrokerInfo(broker_id, (), None, broker_epoch),
        }


async def settled(look: Callable[[], bool]) -> None:
    """Let the event loop turn until something holds that needs no more than turns."""
    for _ in range(1_000):
        if look():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come to that")
