"""Who is held back by a throttle, for how long, and who never is."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import ManualClock
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import BrokerInfo, PartitionImage
from headwater.replication.fetch import FetchLimits, FetchTarget, note_follower, read_partitions
from headwater.replication.following.fetchers import ReplicaFetchers
from headwater.replication.following.options import FetcherOptions
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.replication.partition.options import (
    AcksAllFlush,
    PartitionOptions,
    ThrottledReplicas,
)
from headwater.replication.partition.partition import Partition
from headwater.replication.throttling.throttle import Throttle
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, batch_of, open_log
from headwater.sim.campaigns.replica_set import NoEvents
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.sim.virtual_loop import VirtualLoop
from tests.support.fakes.leader import NODE_ID, FakeLeader, follower_of, image_of
from tests.support.models.led_partition import FakeController, HeldThreads

TOPIC_ID = uuid.UUID(int=5)
RULES = PartitionOptions(1, AcksAllFlush.OFF)
LISTED = ThrottledReplicas(is_all=True)
#: Broker 0 leads, 1 is in sync, and the partition is on its way to 2.
MOVING = PartitionImage((2, 0, 1), (0, 1), 0, 0, 0, adding=(2,), throttle=1000)


class Led:
    """A partition that broker 0 leads, with its throttles."""

    def __init__(self, image: PartitionImage, options: PartitionOptions = RULES) -> None:
        self.clock = ManualClock()
        self.limit = 1000
        self.throttles = ReplicationThrottles(
            Throttle(lambda: self.limit, self.clock), Throttle(lambda: self.limit, self.clock)
        )
        self.partition = Partition(
            TopicPartition("orders", 0),
            TOPIC_ID,
            open_log(FaultyDisk(1, directories=["/data"]), DIRECTORY),
            image,
            options=options,
            environment=PartitionEnvironment(
                0,
                NoEvents(),
                self.clock,
                HeldThreads().run,
                FakeController(),
                BackgroundTasks(),
                throttles=self.throttles,
                brokers={each: BrokerInfo(each, ()) for each in (0, 1, 2)},
            ),
        )

    def get(self, _topic: str, _partition: int) -> Partition:
        return self.partition

    def topic_name(self, _topic_id: uuid.UUID) -> str:
        return "orders"

    def write(self, size_bytes: int) -> None:
        self.partition.append(bytearray(batch_of(bytes(size_bytes))), acks=1, now_ms=NOW_MS)

    def fetch(self, replica_id: int, offset: int = 0) -> tuple[int, float | None]:
        """What a follower gets, and how long it waits for what it does not get."""
        limits = FetchLimits(
            1_000_000,
            replica_id=replica_id,
            throttles=self.throttles if self.throttles.leading else None,
        )
        targets = [FetchTarget("orders", TOPIC_ID, 0, offset, 1_000_000)]
        note_follower(self, targets, limits)
        fetched = read_partitions(self, targets, limits)
        for each in fetched.partitions:
            assert each.error is None
            self.throttles.sent(self.partition, replica_id, each.size_bytes)
        return fetched.size_bytes, fetched.held_back_ms


def test_a_leader_holds_back_what_is_being_added() -> None:
    led = Led(MOVING)
    led.write(5000)
    led.fetch(1, 1)  # What it has is committed, so that the new one is behind.
    size_bytes, held_back_ms = led.fetch(2)
    assert (size_bytes > 5000, held_back_ms) == (True, None)
    led.write(5000)
    nothing, held_back_ms = led.fetch(2, 0)
    assert nothing == 0
    assert held_back_ms == pytest.approx(size_bytes, abs=1), "a millisecond for each byte"
    led.clock.advance(size_bytes)
    assert led.fetch(2, 0)[0] > 0


def test_a_leader_holds_back_nobody_who_is_in_sync_or_about_to_be() -> None:
    for image in (MOVING, MOVING._replace(throttle=0)):
        led = Led(image, RULES._replace(throttled_leading=LISTED))
        led.write(5000)
        assert led.fetch(1)[0] > 5000
        led.fetch(1, 1)
        led.write(5000)
        assert led.fetch(2)[0] == 0, "what a listed one in sync got counts too, as in Kafka"
        assert led.fetch(1, 1)[0] > 5000
        # It has all there is: from now on the high watermark waits for it.
        end = led.partition.log_end_offset
        assert led.fetch(2, end) == (0, None)
        led.write(5000)
        assert led.fetch(2, end)[0] > 5000


def test_a_throttle_of_a_move_concerns_nobody_else() -> None:
    led = Led(PartitionImage((2, 0, 1, 3), (0,), 0, 0, 0, adding=(2,), throttle=1))
    led.write(5000)
    for replica_id in (1, 3, 1, 3):
        assert led.fetch(replica_id)[0] > 5000


def test_a_throttle_goes_with_its_move_and_with_its_partition() -> None:
    led = Led(MOVING)
    assert len(led.throttles.leading) == 1
    led.partition.apply(MOVING._replace(throttle=5000, partition_epoch=1))
    led.write(4000)
    led.fetch(1, 1)
    for _ in range(2):
        assert led.fetch(2)[0] > 0
    assert led.fetch(2)[0] == 0
    led.partition.apply(PartitionImage((2, 0), (0, 2), 0, 0, 2))
    assert not led.throttles.leading
    led.partition.apply(MOVING._replace(partition_epoch=3))
    led.partition.remove()
    assert not led.throttles.leading


def test_settings_name_replicas() -> None:
    assert ThrottledReplicas.from_texts(("0:1", "2:7", "3:17"), 7) == ThrottledReplicas(
        numbers=frozenset({2})
    )
    assert ThrottledReplicas.from_texts(("*",), 7).has(12)
    led = Led(PartitionImage((0, 1), (0,), 0, 0, 0))
    led.write(5000)
    assert not led.throttles.leading
    led.partition.take_options(
        RULES._replace(throttled_leading=ThrottledReplicas(numbers=frozenset({0})))
    )
    assert led.fetch(1)[0] > 0
    assert led.fetch(1)[0] == 0
    led.limit = 1_000_000
    assert led.fetch(1)[0] > 0, "the limit is read live"
    led.partition.take_options(RULES)
    assert not led.throttles.leading


# -- followers, on virtual time ------------------------------------------------------------------


class Following:
    """A broker that fetches from a leader without throttles, and has its own."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        clock = SimulatedClock(loop)
        self.limit = 1000
        self.throttles = ReplicationThrottles(
            Throttle(lambda: self.limit, clock), Throttle(lambda: self.limit, clock)
        )
        self.leader = FakeLeader()
        self.fetchers = ReplicaFetchers(
            node_id=NODE_ID,
            broker_epoch=lambda: 5,
            connect=self.leader.connect,
            options=lambda: FetcherOptions(max_partition_bytes=1000),
            clock=clock,
            tasks=BackgroundTasks(),
            throttles=self.throttles,
        )

    def follow(self, number: int, image: PartitionImage | None = None) -> Partition:
        partition = follower_of(1, number)
        if image is not None:
            partition.apply(image)
        self.throttles.take_note(partition)
        self.fetchers.role_changed(partition)
        return partition

    async def until_same(self, partition: Partition) -> float:
        """How long it takes until the follower has everything."""
        start_s = self.loop.time()
        log = self.leader.logs[partition.topic_partition.partition]
        while partition.log_end_offset != log.log_end_offset:
            assert self.loop.time() < start_s + 600, "it does not come"
            await asyncio.sleep(0.01)
        return self.loop.time() - start_s


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def _added(throttle: int) -> PartitionImage:
    return PartitionImage((1, NODE_ID), (1,), 1, 0, 1, adding=(NODE_ID,), throttle=throttle)


def test_a_follower_fetches_no_faster_than_its_move_may_and_does_not_spin(
    loop: VirtualLoop,
) -> None:
    async def scenario() -> None:
        following = Following(loop)
        for _ in range(60):
            following.leader.write(0, bytes(500))
        partition = following.follow(0, _added(1000))
        taken_s = await following.until_same(partition)
        assert partition.replication_bytes_in > 30_000
        assert 20 < taken_s < 50
        count = len(following.leader.fetches)
        assert count < 100, "a fetch for each batch, and not many that name nothing"
        # It has all of it, and follows at once from now on.
        for _ in range(10):
            following.leader.write(0, bytes(500))
            assert await following.until_same(partition) < 0.5
        await following.fetchers.close()

    loop.run_until_complete(scenario())


def test_a_follower_goes_on_as_soon_as_the_throttle_has_room(loop: VirtualLoop) -> None:
    async def scenario() -> None:
        following = Following(loop)
        following.leader.write(0, bytes(5000))
        following.leader.write(0, bytes(10))
        partition = following.follow(0, _added(1000))
        while partition.log_end_offset < 1:
            await asyncio.sleep(0.001)
        begun_s, size_bytes = loop.time(), partition.replication_bytes_in
        taken_s = await following.until_same(partition)
        assert taken_s == pytest.approx(size_bytes / 1000, abs=0.1)
        assert len(following.leader.fetches) <= 4
        assert loop.time() - begun_s == taken_s
        await following.fetchers.close()

    loop.run_until_complete(scenario())


def test_others_are_fetched_meanwhile_and_nobody_waits_longer_for_them(loop: VirtualLoop) -> None:
    async def scenario() -> None:
        following = Following(loop)
        for number in (0, 1):
            following.leader.write(number, bytes(5000))
            following.leader.write(number, bytes(10))
        held = following.follow(0, _added(1000))
        free = following.follow(1)
        assert await following.until_same(free) < 0.5
        for _ in range(8):
            following.leader.write(1, bytes(1000))
            assert await following.until_same(free) < 0.5
        assert held.log_end_offset == 1
        # The other's fetch waits at the leader, and comes back in time.
        assert 3 < await following.until_same(held) < 5.5
        await following.fetchers.close()

    loop.run_until_complete(scenario())


def test_a_throttle_that_is_lifted_is_over_within_a_second(loop: VirtualLoop) -> None:
    async def scenario() -> None:
        following = Following(loop)
        for _ in range(5):
            following.leader.write(0, bytes(5000))
        partition = following.follow(0, _added(1))
        await asyncio.sleep(5)
        assert partition.log_end_offset == 1
        partition.apply(_added(0)._replace(partition_epoch=2))
        following.throttles.take_note(partition)
        assert await following.until_same(partition) < 2
        await following.fetchers.close()

    loop.run_until_complete(scenario())


def test_a_follower_in_sync_is_never_held_back(loop: VirtualLoop) -> None:
    async def scenario() -> None:
        following = Following(loop)
        following.limit = 1
        following.leader.write(0, bytes(1000))
        image = image_of(1, 0)._replace(isr=(1, NODE_ID), partition_epoch=1)
        partition = following.follow(0, image)
        partition.take_options(RULES._replace(throttled_following=LISTED))
        following.throttles.take_note(partition)
        assert len(following.throttles.following) == 1
        for _ in range(20):
            following.leader.write(0, bytes(1000))
        assert await following.until_same(partition) < 1
        await following.fetchers.close()

    loop.run_until_complete(scenario())
