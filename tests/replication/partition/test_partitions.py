"""The partitions of a broker follow the cluster image: their roles, their logs, and failures."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import BrokerInfo, ClusterImage, PartitionImage, TopicImage
from headwater.cluster.image.layered_map import LayeredMap
from headwater.replication.partition.options import AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.partitions import Partitions
from headwater.sim.campaigns.broker_logs import open_directories
from headwater.sim.campaigns.logs import NOW_MS, batch_of
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.directories.directory_entries import EntryKind, list_entries
from headwater.storage.directories.log_directories import LogDirectories
from tests.support.async_tests import run_async
from tests.support.models.led_partition import FakeController, WrittenEvents

T = TypeVar("T")

OWN = 1  # The number of the broker under test.
PATHS = ["/a", "/b"]
ORDERS = uuid.UUID(int=11)


def _state(
    leader: int, replicas: tuple[int, ...] = (1, 2), epoch: int = 0, isr: tuple[int, ...] = ()
) -> PartitionImage:
    return PartitionImage(replicas, isr or replicas, leader, epoch, epoch)


def _image(partitions: list[PartitionImage], topic_id: uuid.UUID = ORDERS) -> ClusterImage:
    topic = TopicImage("orders", topic_id, tuple(partitions))
    return ClusterImage(
        brokers={each: BrokerInfo(each, (), None, 10 + each) for each in (1, 2, 3)},
        topics=LayeredMap({"orders": topic}),
        topic_names=LayeredMap({topic_id: "orders"}),
    )


class _Events(WrittenEvents):
    """Also says of which partition."""

    def on_role(self, partition: Partition) -> None:
        super().on_role(partition)
        self.told[-1] = f"{partition.topic_partition.partition}: {self.told[-1]}"

    def on_removed(self, partition: Partition) -> None:
        # Whoever writes to the log is told while it is there.
        assert partition.log.failure is None
        self.told.append(f"{partition.topic_partition.partition}: removed")


class _Broker:
    def __init__(self, disk: FaultyDisk | None = None) -> None:
        self.disk = disk or FaultyDisk(directories=PATHS)
        self.directories: LogDirectories = open_directories(self.disk, PATHS)
        self.events = _Events()
        self.controller = FakeController()
        self.clock = ManualClock(NOW_MS)
        self.partitions = Partitions(
            self.directories,
            node_id=OWN,
            options_of=lambda _topic: PartitionOptions(1, AcksAllFlush.OFF),
            events=self.events,
            isr_changes=self.controller,
            clock=self.clock,
            run_in_thread=self._run,
            run_in_one_thread=self._run,
            tasks=BackgroundTasks(),
        )
        self.image = ClusterImage()
        self.thread_count = 0

    async def _run(self, work: Callable[[], T]) -> T:
        self.thread_count += 1
        return work()

    async def load(self, image: ClusterImage) -> None:
        self.image = image
        await self.partitions.load(image)

    async def change(
        self,
        *,
        topics: Mapping[str, TopicImage | None] | None = None,
        partitions: Mapping[int, PartitionImage] | None = None,
        brokers: Mapping[int, BrokerInfo | None] | None = None,
    ) -> None:
        edits = ImageEdits(
            topics=dict(topics or {}),
            partitions={"orders": dict(partitions)} if partitions else {},
            brokers=dict(brokers or {}),
        )
        change = edits.apply(self.image)
        self.image = change.image
        await self.partitions.apply(change)

    def append(self, number: int) -> None:
        self.partitions.get("orders", number).append(
            bytearray(batch_of(b"value")), acks=1, now_ms=NOW_MS
        )

    def stop(self) -> None:
        self.directories.shutdown(1)

    def names(self, kind: EntryKind) -> list[str]:
        return [
            entry.name
            for path in PATHS
            for entry in list_entries(self.disk, path)
            if entry.kind is kind
        ]


def _code(broker: _Broker, number: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        broker.partitions.get("orders", number)
    return caught.value.code


@run_async
async def test_partitions_learn_their_roles_and_only_those_that_change_are_touched() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1), _state(2), _state(2, (2, 3))]))
    assert broker.events.take() == ["0: leader 1 in epoch 0", "1: leader 2 in epoch 0"]
    assert _code(broker, 2) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert _code(broker, 3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    threads = broker.thread_count
    await broker.change(partitions={1: _state(1, epoch=1)})
    assert broker.events.take() == ["1: leader 1 in epoch 1"]
    assert broker.partitions.get("orders", 1).is_leader
    # A snapshot of the whole cluster that says nothing new.
    await broker.change(topics={"orders": broker.image.topics["orders"]})
    assert broker.events.take() == []
    assert broker.thread_count == threads


@run_async
async def test_an_older_state_is_ignored() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1, epoch=5)]))
    partition = broker.partitions.get("orders", 0)
    await broker.change(partitions={0: _state(2, epoch=4)})
    assert partition.is_leader and partition.leader_epoch == 5
    await broker.change(partitions={0: PartitionImage((1, 2), (1,), 1, 5, 4)})
    assert list(partition.isr) == [1, 2]
    await broker.change(partitions={0: PartitionImage((1, 2), (1,), 1, 5, 6)})
    assert list(partition.isr) == [1]


@run_async
async def test_an_older_state_takes_no_log_away() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1, epoch=5)]))
    broker.append(0)
    for epoch in (4, 5):
        await broker.change(partitions={0: _state(2, (2, 3), epoch=epoch)})
        assert broker.partitions.get("orders", 0).log_end_offset == 1
    await broker.change(partitions={0: _state(2, (2, 3), epoch=6)})
    assert _code(broker, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.names(EntryKind.LOG) == []


@run_async
async def test_a_partition_without_a_leader_is_neither_led_nor_followed() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1)]))
    broker.events.take()
    await broker.change(partitions={0: _state(-1, epoch=1)})
    assert broker.events.take() == ["0: leader -1 in epoch 1"]
    with pytest.raises(KafkaError) as caught:
        broker.partitions.get("orders", 0).check_leader()
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@run_async
async def test_a_new_replica_gets_a_log_and_one_that_is_taken_away_loses_it() -> None:
    broker = _Broker()
    await broker.load(_image([_state(2, (2, 3)), _state(1)]))
    broker.append(1)
    broker.events.take()
    await broker.change(partitions={0: _state(2, (2, 1), epoch=1)})
    assert broker.events.take() == ["0: leader 2 in epoch 1"]
    assert broker.partitions.get("orders", 0).leader == 2
    gone = broker.partitions.get("orders", 1)
    await broker.change(partitions={1: _state(2, (2, 3), epoch=1)})
    assert broker.events.take() == ["1: removed"]
    assert gone.is_removed and not gone.is_leader
    assert _code(broker, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.names(EntryKind.LOG) == ["orders-0"]
    assert broker.partitions.gone.messages_in == 1


@run_async
async def test_a_deleted_topic_goes_and_another_of_its_name_may_come() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1)]))
    broker.append(0)
    again = TopicImage("orders", uuid.UUID(int=12), (_state(1),))
    await broker.change(topics={"orders": again})
    assert broker.events.take()[-2:] == ["0: removed", "0: leader 1 in epoch 0"]
    partition = broker.partitions.get("orders", 0)
    assert partition.log_end_offset == 0
    assert broker.partitions.find_by_id(again.topic_id.bytes, 0) is partition
    assert broker.partitions.find_by_id(ORDERS.bytes, 0) is None


@run_async
async def test_topics_that_were_deleted_while_the_broker_was_away_become_strays() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1), _state(2)]))
    broker.append(0)
    broker.stop()
    back = _Broker(broker.disk)
    await back.load(_image([_state(2, (2, 3)), _state(2)]))
    # The partition was given to others meanwhile, and the second one stays.
    assert back.names(EntryKind.LOG) == ["orders-1"]
    [stray] = back.names(EntryKind.STRAY)
    assert stray.startswith("orders-0.")
    back.stop()
    later = _Broker(broker.disk)
    await later.load(_image([_state(1)], uuid.UUID(int=12)))
    assert later.partitions.get("orders", 0).log_end_offset == 0
    assert len(later.names(EntryKind.STRAY)) == 2


@run_async
async def test_a_follower_that_died_is_not_waited_for() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1)]))
    broker.append(0)
    await broker.change(brokers={2: None})
    assert broker.controller.wanted == [(1,)]


@run_async
async def test_a_log_that_cannot_be_opened_is_not_replaced_by_an_empty_one() -> None:
    broker = _Broker()
    await broker.load(_image([_state(1), _state(1)]))
    broker.append(0)
    lost = broker.directories.directory_of(TopicPartition("orders", 0))
    assert lost is not None
    broker.stop()

    back = _Broker(broker.disk)
    [offline] = [each for each in back.directories.directories if each.path == lost.path]
    offline.fail(OSError(errno.EIO, "it is broken"))
    await back.load(_image([_state(1), _state(1)]))
    assert _code(back, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    # It leads, and cannot: somebody else must.
    assert back.controller.wanted == [(2,)]
    [(owner, proposal)] = back.controller.proposals
    assert owner.topic_partition == TopicPartition("orders", 0)
    back.controller.refuse(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    back.partitions.check_isr()
    assert back.controller.wanted == [(2,)]
    # Whatever happens to the partition, or to its topic, does not make a new log of it.
    await back.change(partitions={0: _state(2, epoch=1)})
    assert not owner.is_waiting_for(proposal)
    grown = TopicImage("orders", ORDERS, (_state(2, epoch=1), _state(1), _state(1)))
    await back.change(topics={"orders": grown})
    assert _code(back, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert back.partitions.get("orders", 2).is_leader
    # It does not lead any more, and still counts as in sync.
    assert back.controller.wanted[-1] == (2,)
    await back.change(partitions={0: _state(2, epoch=2, isr=(2,))})
    back.controller.proposals.clear()
    back.partitions.check_isr()
    assert back.controller.wanted == []
    # Elected again, it says so again.
    await back.change(partitions={0: _state(1, epoch=3)})
    assert back.controller.wanted == [(2,)]


@run_async
async def test_rules_that_change_let_the_high_watermark_go_on() -> None:
    broker = _Broker()
    options = PartitionOptions(2, AcksAllFlush.OFF)
    broker.partitions._options_of = lambda _topic: options
    await broker.load(_image([_state(1, isr=(1,))]))
    broker.append(0)
    partition = broker.partitions.get("orders", 0)
    assert partition.high_watermark == 0
    options = PartitionOptions(1, AcksAllFlush.OFF)
    broker.partitions.refresh_options(["orders"])
    assert partition.high_watermark == 1
