"""What an acknowledgement is worth: acks 0, 1 and all, and the notes' stories about them."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.loop_timer import LoopTimer
from headwater.replication.partition.events import PartitionEventHub
from headwater.replication.partition.options import ACKS_ALL, AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.delayed_produce import AwaitedAppend, DelayedProduce
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.sim.campaigns.logs import batch_of
from headwater.sim.campaigns.replica_set import ReplicaSet
from headwater.storage.log_config import LogConfig
from tests.support.async_tests import run_async
from tests.support.models.led_partition import LAG_MAX_MS, LedPartition, settled

A, F1, F2 = 0, 1, 2


class _Producer:
    """Sends one batch with acks=all, and waits for the answer as a request does."""

    def __init__(self, world: LedPartition, parked: ParkedRequests) -> None:
        self._append = AwaitedAppend(
            world.partition, world.append(1, acks=ACKS_ALL), durably=False, replicated=True
        )
        self.is_answered = False
        parked.produce.try_complete_else_park(
            DelayedProduce([self._append], self._answered),
            10_000,
            [world.partition.topic_partition],
        )

    def _answered(self) -> None:
        self.is_answered = True

    @property
    def error(self) -> ErrorCode | None:
        assert self.is_answered
        return None if self._append.error is None else self._append.error.code


class _AskedPartition:
    """As much of a partition as a produce request waits for; it counts how often it is asked."""

    def __init__(self, number: int) -> None:
        self.topic_partition = TopicPartition("orders", number)
        self.is_safe = False
        self.asked_count = 0

    def is_acknowledged(self, end_offset: int, *, durably: bool, replicated: bool) -> bool:
        self.asked_count += 1
        return self.is_safe


def _parked() -> ParkedRequests:
    return ParkedRequests(LoopTimer(asyncio.get_running_loop()))


def test_with_acks_all_the_answer_waits_for_every_in_sync_replica() -> None:
    world = LedPartition()
    end_offset = world.append(1, acks=ACKS_ALL)
    assert not world.partition.is_acknowledged(end_offset, durably=False)
    world.fetch(1, end_offset)
    assert not world.partition.is_acknowledged(end_offset, durably=False)
    world.fetch(2, end_offset)
    assert world.partition.is_acknowledged(end_offset, durably=False)


@run_async
async def test_with_acks_1_the_answer_waits_for_nobody_not_even_if_the_disk_is_asked() -> None:
    world = LedPartition(config=LogConfig(flush_messages=1))
    end_offset = world.append(1, acks=1)
    assert world.partition.needs_fsync(1)
    assert not world.partition.is_acknowledged(end_offset, durably=True, replicated=False)
    world.partition.request_fsync(end_offset)
    await settled(
        lambda: world.partition.is_acknowledged(end_offset, durably=True, replicated=False)
    )
    assert world.high_watermark == 0


def test_an_acks_1_record_that_only_the_leader_has_is_lost_with_it() -> None:
    replicas = ReplicaSet([A, F1])
    replicas.elect(A, [A, F1])
    replicas.produce(b"copied")
    replicas.settle()
    replicas.produce(b"acknowledged by the leader alone")
    replicas.elect(F1, [F1])
    replicas.settle()
    assert replicas[A].values() == replicas[F1].values() == [b"copied"]


def test_story_one_all_in_sync_replicas_have_it_when_the_leader_dies() -> None:
    replicas = ReplicaSet([A, F1, F2])
    replicas.elect(A, [A, F1, F2])
    offset = replicas.produce(b"order")
    replicas.fetch(F1)
    replicas.fetch(F2)
    assert not replicas[A].partition.is_acknowledged(offset + 1, durably=False)
    replicas.fetch(F1)
    replicas.fetch(F2)
    assert replicas[A].partition.is_acknowledged(offset + 1, durably=False)
    for successor in (F1, F2):
        replicas.elect(successor, [F1, F2])
        assert replicas[successor].values() == [b"order"]


def _order(is_idempotent: bool) -> bytes:
    if is_idempotent:
        return batch_of(b"order", producer_id=5, producer_epoch=0, base_sequence=0)
    return batch_of(b"order")


@pytest.mark.parametrize("successor", [F1, F2])
@pytest.mark.parametrize("is_idempotent", [True, False])
def test_story_two_a_part_of_the_isr_has_it_when_the_leader_dies(
    successor: int, is_idempotent: bool
) -> None:
    replicas = ReplicaSet([A, F1, F2])
    replicas.elect(A, [A, F1, F2])
    offset = replicas.append(_order(is_idempotent))
    replicas.fetch(F1)  # And the other one has not got it yet.
    replicas.fetch(F1)
    assert not replicas[A].partition.is_acknowledged(offset + 1, durably=False)
    replicas.elect(successor, [F1, F2])
    # The producer hears that the leader is another, never that all is well,
    with pytest.raises(KafkaError) as caught:
        replicas[A].partition.is_acknowledged(offset + 1, durably=False)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    # and sends it again. Where the new leader has it already it stands there twice, unless the
    # producer numbers its batches.
    replicas.append(_order(is_idempotent))
    replicas.settle()
    twice = successor == F1 and not is_idempotent
    expected = [b"order", b"order"] if twice else [b"order"]
    assert [replicas[each].values() for each in (A, F1, F2)] == [expected] * 3


@run_async
async def test_an_isr_of_only_the_leader_makes_acks_all_worth_one_disk() -> None:
    world = LedPartition(isr=(0,), acks_all_flush=AcksAllFlush.AUTO)
    end_offset = world.append(1, acks=ACKS_ALL)
    assert world.partition.needs_fsync(ACKS_ALL)
    assert world.high_watermark == end_offset
    assert not world.partition.is_acknowledged(end_offset, durably=True)
    await settled(lambda: world.partition.is_acknowledged(end_offset, durably=False))
    assert world.partition.log.flushed_offset == end_offset
    await world.partition.close()


def test_min_insync_replicas_refuses_before_anything_is_written() -> None:
    world = LedPartition(isr=(0,), min_insync_replicas=2)
    with pytest.raises(KafkaError) as caught:
        world.append(1, acks=ACKS_ALL)
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    batch = memoryview(bytearray(batch_of(b"value")))
    assert world.partition.append_plain(batch, acks=ACKS_ALL, now_ms=0) is None
    assert world.partition.log_end_offset == 0
    world.append(1, acks=1)  # Which it does not concern.
    assert world.partition.log_end_offset == 1


def test_more_replicas_than_there_are_cannot_be_asked_for() -> None:
    world = LedPartition(followers=(1,), min_insync_replicas=3)
    world.append(1, acks=ACKS_ALL)
    assert world.partition.min_insync_replicas == 2


@run_async
async def test_what_is_written_waits_for_replicas_that_come_back() -> None:
    """An error would have librdkafka write it twice: see docs/delivery-guarantees.md."""
    parked = _parked()
    world = LedPartition(min_insync_replicas=2, events=PartitionEventHub(parked))
    producer = _Producer(world, parked)
    world.apply(isr=(0,))
    world.fetch(1, 1)
    assert not producer.is_answered
    with pytest.raises(KafkaError) as caught:
        world.append(1, acks=ACKS_ALL)
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    world.apply(isr=(0, 1))
    assert producer.error is None


@run_async
async def test_too_few_in_sync_replicas_are_told_of_what_all_have() -> None:
    parked = _parked()
    world = LedPartition(min_insync_replicas=2, events=PartitionEventHub(parked))
    end_offset = world.append(1, acks=ACKS_ALL)
    world.apply(isr=(0, 1))
    world.fetch(1, end_offset)
    assert world.high_watermark == end_offset
    world.apply(isr=(0,))
    with pytest.raises(KafkaError) as caught:
        world.partition.is_acknowledged(end_offset, durably=False)
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


@run_async
async def test_time_ends_the_wait_for_replicas() -> None:
    parked = _parked()
    world = LedPartition(min_insync_replicas=2, events=PartitionEventHub(parked))
    producer = _Producer(world, parked)
    world.apply(isr=(0,))
    parked.produce.complete_all()
    assert producer.error is ErrorCode.REQUEST_TIMED_OUT


@run_async
async def test_a_request_for_many_partitions_asks_only_those_that_something_happened_to() -> None:
    partitions = [_AskedPartition(number) for number in range(5)]
    answers: list[str] = []
    appends = [AwaitedAppend(cast(Partition, each), 1, durably=False) for each in partitions]
    produce = _parked().produce
    keys = [each.topic_partition for each in partitions]
    operation = DelayedProduce(appends, lambda: answers.append("answered"))
    assert not produce.try_complete_else_park(operation, 10_000, keys)
    assert [each.asked_count for each in partitions] == [1, 1, 1, 1, 1]
    produce.check(keys[3])
    partitions[0].is_safe = partitions[1].is_safe = partitions[2].is_safe = True
    for key in (keys[0], keys[1], keys[2], keys[0]):
        produce.check(key)
    # Of one that is safe it is known for good.
    assert [each.asked_count for each in partitions] == [2, 2, 2, 2, 1]
    partitions[3].is_safe = partitions[4].is_safe = True
    produce.check(keys[3])
    assert answers == []
    produce.check(keys[4])
    assert answers == ["answered"]
    assert [each.asked_count for each in partitions] == [2, 2, 2, 3, 2]


@run_async
async def test_what_is_not_safe_in_time_is_told_partition_by_partition() -> None:
    partitions = [_AskedPartition(number) for number in range(3)]
    appends = [AwaitedAppend(cast(Partition, each), 1, durably=False) for each in partitions]
    produce = _parked().produce
    keys = [each.topic_partition for each in partitions]
    produce.try_complete_else_park(DelayedProduce(appends, lambda: None), 10_000, keys)
    partitions[0].is_safe = partitions[2].is_safe = True
    # What has happened to one of them meanwhile counts, though nobody was told of it.
    produce.check(keys[0])
    produce.complete_all()
    codes = [None if each.error is None else each.error.code for each in appends]
    assert codes == [None, ErrorCode.REQUEST_TIMED_OUT, None]


@run_async
async def test_a_waiting_producer_is_sent_to_the_new_leader() -> None:
    parked = _parked()
    world = LedPartition(events=PartitionEventHub(parked))
    producer = _Producer(world, parked)
    world.fetch_all(1)
    assert not producer.is_answered
    world.apply(leader=1, leader_epoch=5)
    assert producer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@run_async
async def test_a_follower_that_leaves_lets_producers_go_on() -> None:
    parked = _parked()
    world = LedPartition(events=PartitionEventHub(parked))
    world.fetch_all(1, 2)
    producer = _Producer(world, parked)
    world.fetch_all(1)
    world.clock.advance(LAG_MAX_MS + 1)
    world.fetch_all(1)
    world.leadership.check_isr()
    assert not producer.is_answered
    world.controller.accept()
    assert producer.error is None


@run_async
async def test_a_producer_waits_for_the_disk_of_a_leader_that_became_alone_meanwhile() -> None:
    parked = _parked()
    world = LedPartition(
        followers=(1,), acks_all_flush=AcksAllFlush.AUTO, events=PartitionEventHub(parked)
    )
    world.threads.is_holding = True
    producer = _Producer(world, parked)
    world.apply(isr=(0,))
    assert world.high_watermark == 1
    assert not producer.is_answered
    world.threads.release()
    await settled(lambda: producer.is_answered)
    assert producer.error is None
    await world.partition.close()


def test_a_demoted_leader_acknowledges_nothing_even_if_its_high_watermark_rises() -> None:
    world = LedPartition()
    end_offset = world.append(1)
    world.apply(leader=1, leader_epoch=5)
    world.partition.follower_appended(0, end_offset, 0)
    assert world.high_watermark == end_offset
    with pytest.raises(KafkaError):
        world.partition.is_acknowledged(end_offset, durably=False)


@run_async
async def test_a_switch_of_the_flush_is_followed_by_who_waits() -> None:
    world = LedPartition(isr=(0,), acks_all_flush=AcksAllFlush.OFF)
    end_offset = world.append(1, acks=ACKS_ALL)
    world.partition.options = PartitionOptions(1, AcksAllFlush.AUTO, LAG_MAX_MS)
    assert not world.partition.is_acknowledged(end_offset, durably=False)
    await settled(lambda: world.partition.is_acknowledged(end_offset, durably=False))
    await world.partition.close()
