"""The leader's high watermark: the notes' examples step by step, and what else moves it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.fetch import FetchLimits, FetchTarget, note_follower, read_partitions
from headwater.replication.partition.options import AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.logs import PARTITION
from tests.support.models.led_partition import LAG_MAX_MS, TOPIC_ID, LedPartition
from tests.support.tiers import rounds


class _Lookup:
    """The one partition that there is, as handlers find it."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def get(self, topic: str, partition: int) -> Partition:
        assert (topic, partition) == PARTITION
        return self._partition

    def topic_name(self, topic_id: object) -> str:
        assert topic_id == TOPIC_ID
        return PARTITION.topic


class _Follower:
    """A follower's offsets, as the notes draw them: it copies what the leader answers."""

    def __init__(self, world: LedPartition, broker_id: int) -> None:
        self._world = world
        self._broker_id = broker_id
        self.log_end_offset = 0
        self.high_watermark = 0

    def fetch(self, record_count_max: int) -> int:
        """Ask, append at most so many records, and take the high watermark; returns the latter."""
        target = FetchTarget(
            *(PARTITION.topic, TOPIC_ID, 0, self.log_end_offset, 1_000_000),
            current_leader_epoch=4,
            log_start_offset=0,
        )
        limits = FetchLimits(
            1_000_000, replica_id=self._broker_id, replica_epoch=100 + self._broker_id
        )
        lookup = _Lookup(self._world.partition)
        note_follower(lookup, [target], limits)
        [fetched] = read_partitions(lookup, [target], limits).partitions
        assert fetched.error is None and fetched.read is not None
        readable = self._world.partition.log_end_offset - self.log_end_offset
        assert (fetched.size_bytes > 0) == (readable > 0)
        self.log_end_offset += min(readable, record_count_max)
        self.high_watermark = min(self.log_end_offset, fetched.read.high_watermark)
        return fetched.read.high_watermark


def test_the_notes_walk_through_three_replicas() -> None:
    world = LedPartition()
    second, third = _Follower(world, 1), _Follower(world, 2)

    # At some time the leader's LEO is 5, and every high watermark is 0.
    assert world.append(5) == 5
    assert world.high_watermark == 0

    # Both followers fetch from 0. The answer has records and the leader's high watermark, 0. They
    # get as far as 3 and 4, and their own high watermark is min(LEO, 0) = 0.
    assert second.fetch(3) == 0
    assert third.fetch(4) == 0
    assert (second.log_end_offset, third.log_end_offset) == (3, 4)
    assert (second.high_watermark, third.high_watermark) == (0, 0)

    # The leader grows to 15 meanwhile. The next fetches carry the LEOs 3 and 4, and when the leader
    # has both it takes the smallest, min(15, 3, 4) = 3, and answers with it.
    assert world.append(10) == 15
    assert second.fetch(100) == 0
    assert third.fetch(100) == 3
    assert world.high_watermark == 3

    # Followers take min(LEO, 3) = 3; the first one hears of it with its next fetch.
    assert third.high_watermark == 3
    assert second.fetch(100) == 4
    assert second.high_watermark == 4
    assert third.fetch(100) == 15
    assert world.high_watermark == 15


def test_the_notes_other_example_one_follower_is_a_record_behind() -> None:
    world = LedPartition()
    world.append(2)
    world.fetch_all(1, 2)
    assert world.high_watermark == 2
    # Messages arrive at the leader, and consumers do not see them yet.
    assert world.append(3) == 5
    assert world.high_watermark == 2
    # One follower has all of it, the other all but one.
    world.fetch(1, 5)
    world.fetch(2, 4)
    assert world.high_watermark == 4
    world.fetch(2, 5)
    assert world.high_watermark == 5


def test_a_partition_without_followers_shows_what_it_has_at_once() -> None:
    world = LedPartition(followers=())
    world.append(3)
    assert world.high_watermark == 3
    assert world.partition.leadership is None
    assert "append" not in world.events.told


def test_an_append_wakes_followers_and_their_fetches_wake_consumers() -> None:
    world = LedPartition(followers=(1,))
    world.append()
    assert world.events.take() == ["append"]
    world.fetch(1, 1)
    assert world.events.take() == ["high watermark 1", "log start"]
    world.fetch(1, 1)
    assert world.events.take() == []


def test_replicas_out_of_sync_hold_nothing_up() -> None:
    world = LedPartition(isr=(0, 1))
    world.append(5)
    world.fetch(1, 5)
    assert world.high_watermark == 5


def test_the_high_watermark_waits_for_a_follower_that_is_about_to_join() -> None:
    world = LedPartition(followers=(1,), isr=(0,))
    world.append(5)
    assert world.high_watermark == 5
    world.fetch(1, 3)  # Not caught up: the leader goes on without it.
    world.append(1)
    assert world.high_watermark == 6
    world.fetch(1, 6)  # It has all, and is to join.
    assert world.controller.wanted == [(0, 1)]
    world.append(4)
    assert world.high_watermark == 6
    world.controller.accept()
    assert world.high_watermark == 6
    world.fetch(1, 10)
    assert world.high_watermark == 10


def test_it_waits_for_a_follower_that_keeps_up_but_is_not_at_the_high_watermark_yet() -> None:
    world = LedPartition(followers=(1,), isr=(0,))
    world.append(5)
    world.fetch(1, 2)
    world.append(1)
    world.fetch(1, 5)  # All that there was at its fetch before.
    assert world.controller.wanted == []
    world.append(4)
    assert world.high_watermark == 6
    world.fetch(1, 6)
    assert world.controller.wanted == [(0, 1)]
    world.clock.advance(LAG_MAX_MS + 1)
    world.controller.refuse(ErrorCode.INELIGIBLE_REPLICA)
    assert world.high_watermark == 10


def test_a_follower_that_stops_on_the_way_in_is_waited_for_no_longer_than_one_in_sync() -> None:
    world = LedPartition(followers=(1,), isr=(0,))
    world.append(5)
    world.fetch(1, 2)
    world.append(1)
    world.fetch(1, 5)
    world.append(4)
    world.clock.advance(LAG_MAX_MS)
    world.leadership.check_isr()
    assert world.high_watermark == 6
    world.clock.advance(1)
    world.leadership.check_isr()
    assert world.high_watermark == 10


def test_nobody_waits_for_a_follower_that_the_controller_does_not_want() -> None:
    world = LedPartition(followers=(1,), isr=(0,))
    world.fetch(1, 0)
    world.append(4)
    assert world.high_watermark == 0
    world.controller.refuse(ErrorCode.INELIGIBLE_REPLICA)
    assert world.high_watermark == 4
    world.fetch(1, 4)
    assert world.controller.wanted == []
    world.clock.advance(1_000)
    world.fetch(1, 4)
    assert world.controller.wanted == [(0, 1)]


def test_nobody_waits_for_a_follower_whose_broker_is_gone() -> None:
    world = LedPartition(followers=(1,), isr=(0,))
    world.append(5)
    world.fetch(1, 2)
    world.append(1)
    world.fetch(1, 5)
    world.append(4)
    assert world.high_watermark == 6
    world.environment.brokers = {0: world.environment.brokers[0]}
    world.leadership.brokers_changed()
    assert world.high_watermark == 10


def test_below_the_minimum_of_in_sync_replicas_it_stands_still() -> None:
    world = LedPartition(isr=(0,), min_insync_replicas=2)
    world.append(3, acks=1)
    assert world.high_watermark == 0
    world.partition.options = PartitionOptions(1, AcksAllFlush.OFF, LAG_MAX_MS)
    world.leadership.advance_high_watermark()
    assert world.high_watermark == 3


def test_a_new_leader_keeps_its_high_watermark_until_the_others_have_fetched() -> None:
    world = LedPartition()
    world.append(4)
    world.fetch(1, 2)
    world.fetch(2, 3)
    world.apply(leader=1, leader_epoch=5)
    world.apply(leader=0, leader_epoch=6)
    # What was known of the followers counts no more: they may have been truncated.
    assert world.high_watermark == 2
    world.fetch(1, 4)
    assert world.high_watermark == 2
    world.fetch(2, 4)
    assert world.high_watermark == 4
    assert world.partition.leader_epoch_start_offset == 4


def test_a_leader_that_goes_on_in_a_new_epoch_remembers_its_followers() -> None:
    world = LedPartition()
    world.append(4)
    world.fetch(1, 2)
    world.fetch(2, 3)
    world.apply(leader_epoch=5)
    world.fetch(1, 3)
    assert world.high_watermark == 3


def test_a_replica_that_left_the_isr_by_the_controllers_word_is_not_waited_for() -> None:
    world = LedPartition()
    world.append(4)
    world.fetch(1, 4)
    world.events.take()
    world.apply(isr=(0, 1))
    assert world.high_watermark == 4
    assert world.events.take() == ["high watermark 4", "in sync [0, 1]"]


@pytest.mark.parametrize(
    ("replica_id", "epoch", "leader_epoch", "code"),
    [
        (7, 107, 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (7, 107, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (1, 100, 4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_strangers_and_earlier_lives_of_a_broker_are_refused(
    replica_id: int, epoch: int, leader_epoch: int, code: ErrorCode
) -> None:
    world = LedPartition()
    world.fetch(1, 0)
    with pytest.raises(KafkaError) as caught:
        world.leadership.check_follower(replica_id, epoch, leader_epoch)
    assert caught.value.code is code


def test_the_low_watermark_is_that_of_the_live_replicas() -> None:
    world = LedPartition()
    world.append(5)
    world.fetch_all(1, 2)
    assert world.partition.delete_records(3) == 3
    assert world.partition.low_watermark == 0
    world.events.take()
    world.fetch(1, 5, log_start_offset=3)
    assert world.events.take() == ["log start"]
    assert world.partition.low_watermark == 0
    world.environment.brokers = {each: world.environment.brokers[each] for each in (0, 1)}
    assert world.partition.low_watermark == 3
    world.leadership.brokers_changed()
    assert world.events.take() == ["log start"]


_steps = st.lists(
    st.tuples(st.sampled_from(["append", "fetch", "isr", "epoch"]), st.integers(0, 40)),
    max_size=40,
)


@given(_steps)
def test_it_never_goes_back_and_never_passes_what_the_in_sync_replicas_have(
    steps: list[tuple[str, int]],
) -> None:
    world = LedPartition()
    reached = {1: -1, 2: -1}
    before = 0
    for kind, number in steps[: rounds(40, 40)]:
        broker_id = 1 + number % 2
        if kind == "append":
            world.append(1 + number % 3)
        elif kind == "fetch":
            offset = min(number, world.partition.log_end_offset)
            if offset >= reached[broker_id]:
                reached[broker_id] = offset
                world.fetch(broker_id, offset)
        elif kind == "isr":
            in_sync = [each for each in (1, 2) if reached[each] >= world.high_watermark]
            world.controller.proposals.clear()
            world.apply(isr=(0, *in_sync[: number % 3]))
        else:
            world.apply(leader_epoch=world.partition.leader_epoch + 1)
        members = [each for each in world.partition.isr if each != 0]
        assert world.high_watermark >= before
        assert all(world.high_watermark <= max(reached[each], before) for each in members)
        before = world.high_watermark
