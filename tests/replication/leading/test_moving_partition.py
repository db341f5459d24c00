"""What a leader does about in-sync replicas while its partition moves to other brokers."""

from __future__ import annotations

from headwater.cluster.image.image import PartitionImage
from headwater.replication.partition.options import AcksAllFlush
from tests.support.async_tests import run_async
from tests.support.models.led_partition import LEADER, LedPartition, settled


def move(
    world: LedPartition,
    isr: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
) -> None:
    """The controller says that the partition moves."""
    partition = world.partition
    world.partition.apply(
        PartitionImage(
            partition.replicas,
            isr,
            LEADER,
            partition.leader_epoch,
            partition.partition_epoch + 1,
            adding,
            removing,
        )
    )


@run_async
async def test_whoever_is_left_alone_has_everything_on_its_disk_before_it_asks() -> None:
    world = LedPartition(followers=(1, 2), acks_all_flush=AcksAllFlush.AUTO)
    world.append(3)
    world.fetch_all(1, 2)
    world.threads.is_holding = True
    move(world, (LEADER, 1, 2), (LEADER,), (1, 2))
    assert world.controller.wanted == []
    assert world.partition.log.flushed_offset < 3
    world.threads.release()
    await settled(lambda: bool(world.controller.wanted))
    assert world.controller.wanted == [(LEADER,)]
    assert world.partition.log.flushed_offset == 3


@run_async
async def test_whoever_has_left_for_good_does_not_join_again() -> None:
    world = LedPartition(followers=(1, 2))
    move(world, (LEADER, 1, 2), (LEADER,), (1, 2))
    world.controller.accept()
    assert world.partition.isr == (LEADER,)
    world.append(1)
    world.fetch_all(1, 2)
    assert world.controller.wanted == []
    # Turned around, they are welcome again.
    move(world, (LEADER,), (), ())
    world.fetch_all(1)
    assert world.controller.wanted == [(LEADER, 1)]


def test_nobody_is_sent_away_while_the_target_is_not_in_sync() -> None:
    world = LedPartition(followers=(1, 2), isr=(LEADER, 1))
    # Broker 2 is to come, 1 to go.
    move(world, (LEADER, 1), (2,), (1,))
    assert world.controller.wanted == []


def test_a_move_needs_as_many_in_sync_as_were_needed_before() -> None:
    world = LedPartition(followers=(1, 2), isr=(LEADER,), min_insync_replicas=2)
    assert not world.partition.has_enough_in_sync
    # From one replica to three.
    move(world, (LEADER,), (1, 2), ())
    assert world.partition.has_enough_in_sync
    world.append(1, acks=-1)
    # From three replicas to one.
    move(world, (LEADER, 1), (), (1, 2))
    assert world.partition.min_insync_replicas == 2
