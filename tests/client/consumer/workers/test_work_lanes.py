import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.lanes import Ordering, Task, Turn, WorkLanes
from headwater.client.consumer.workers.tracker import OffsetTracker
from tests.support.fakes.consumer import TOPIC, record


def task(one: ConsumerRecord) -> Task:
    return Task(one, TopicPartition(one.topic, one.partition), OffsetTracker(), threading.Event())


def lane(one: ConsumerRecord, ordering: Ordering) -> object:
    if ordering is Ordering.PARTITION:
        return one.partition
    return None if one.key is None else (one.partition, one.key)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from((None, b"a", b"b"))), max_size=30),
    st.sampled_from(list(Ordering)),
    st.randoms(use_true_random=False),
)
def test_every_lane_keeps_its_order_and_one_record_at_a_time(
    rows: list[tuple[int, bytes | None]], ordering: Ordering, order: random.Random
) -> None:
    lanes = WorkLanes(ordering)
    records = [record(partition, offset, key) for offset, (partition, key) in enumerate(rows)]
    waiting = list(records)
    running: list[Turn] = []
    begun: list[ConsumerRecord] = []
    while waiting or running or lanes.is_ready:
        choice = order.random()
        if waiting and choice < 0.4:
            lanes.add(task(waiting.pop(0)))
        elif lanes.is_ready and choice < 0.8:
            turn = lanes.take()
            running.append(turn)
            begun.append(turn.task.record)
            if ordering is not Ordering.NONE:
                busy = [lane(one.task.record, ordering) for one in running]
                assert len([one for one in busy if one is not None]) == len(
                    {one for one in busy if one is not None}
                )
        elif running:
            lanes.finish(running.pop(order.randrange(len(running))))
        assert lanes.running_count() == len(running)
    assert sorted(begun) == sorted(records)
    if ordering is not Ordering.NONE:
        for name in {lane(one, ordering) for one in records} - {None}:
            offsets = [one.offset for one in begun if lane(one, ordering) == name]
            assert offsets == sorted(offsets)


@pytest.mark.parametrize("ordering", list(Ordering))
def test_what_waits_can_be_dropped_while_something_runs(ordering: Ordering) -> None:
    lanes = WorkLanes(ordering)
    for offset in range(4):
        lanes.add(task(record(0, offset, b"k")))
        lanes.add(task(record(1, offset, b"k")))
    first = lanes.take()
    partition = first.task.topic_partition
    lanes.drop([partition])
    assert lanes.running_count([partition]) == 1
    other = TopicPartition(TOPIC, 1 - partition.partition)
    seen = []
    while lanes.is_ready:
        turn = lanes.take()
        seen.append(turn.task.record.offset)
        assert turn.task.topic_partition == other
        lanes.finish(turn)
    assert seen == [0, 1, 2, 3]
    lanes.add(task(record(partition.partition, 9, b"k")))
    lanes.finish(first)
    assert lanes.take().task.record.offset == 9
