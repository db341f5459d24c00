"""Where a follower's log parts from its leader's, also when the leader has written nothing yet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.fetch import FetchTarget, find_divergence
from headwater.replication.partition.partition_read import read_for_follower
from headwater.sim.campaigns.logs import PARTITION
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.leader_epochs import EpochEndOffset, LeaderEpochs
from tests.support.models.led_partition import TOPIC_ID, LedPartition

START = 4  # The leader epoch with which a played partition begins.


def _divergence(world: LedPartition, last_epoch: int, offset: int) -> EpochEndOffset | None:
    target = FetchTarget(
        *(PARTITION.topic, TOPIC_ID, 0, offset, 1_000), last_fetched_epoch=last_epoch
    )
    return find_divergence(world.partition, target)


def test_a_leader_that_has_written_nothing_yet_knows_where_others_went_wrong() -> None:
    world = LedPartition()
    world.append(10)
    world.apply(leader=1, leader_epoch=5)
    world.apply(leader=0, leader_epoch=6)
    # Broker 1 led in epoch 5, wrote 10 to 12 and lost the lead before anybody had them.
    assert _divergence(world, 5, 13) == (START, 10)
    # A follower that has all of the last epoch, and one that has more of it than the leader.
    assert _divergence(world, START, 10) is None
    assert _divergence(world, START, 12) == (START, 10)
    # One that says nothing of its epochs is believed.
    assert _divergence(world, -1, 13) is None
    world.append(5)
    assert _divergence(world, 5, 13) == (START, 10)
    assert _divergence(world, START, 10) is None
    assert _divergence(world, 6, 15) is None


def test_of_an_empty_log_everything_parts() -> None:
    world = LedPartition()
    assert _divergence(world, 2, 3) == (2, 0)
    assert _divergence(world, 2, 0) is None


def test_in_front_of_the_log_start_there_is_nothing_to_compare() -> None:
    world = LedPartition()
    world.append(5)
    world.fetch_all(1, 2)
    world.partition.delete_records(3)
    assert _divergence(world, 2, 1) is None
    with pytest.raises(KafkaError) as caught:
        read_for_follower(world.partition.log, 1, 1_000)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_epoch_that_nobody_here_has_heard_of_is_out_of_range() -> None:
    world = LedPartition()
    world.append(5)
    with pytest.raises(KafkaError) as caught:
        _divergence(world, START + 1, 5)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@given(st.lists(st.sampled_from(["append", "elected", "again"]), max_size=25))
def test_it_answers_as_if_each_epoch_had_been_written_down_when_it_began(steps: list[str]) -> None:
    world = LedPartition()
    written = LeaderEpochs(FaultyDisk(0, directories=["/epochs"]), "/epochs")
    written.assign(START, 0)
    for step in steps:
        partition = world.partition
        if step == "append":
            world.append(1)
            continue
        if step == "elected":
            world.apply(leader=1, leader_epoch=partition.leader_epoch + 1)
        world.apply(leader=0, leader_epoch=partition.leader_epoch + 1)
        written.assign(partition.leader_epoch, partition.log_end_offset)
    for epoch in range(world.partition.leader_epoch + 1):
        expected = written.end_offset_for(epoch, world.partition.log_end_offset)
        assert world.partition.end_offset_for(epoch) == expected
