"""Records that are handed out one by one, and what happens to those that are not."""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.client.consumer.polling.hand_out import HandOut
from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import TimestampType


def record(partition: int, offset: int) -> ConsumerRecord:
    return ConsumerRecord(
        "orders", partition, offset, 1, TimestampType.CREATE_TIME, None, None, (), 0
    )


RECORDS = [record(0, 5), record(0, 6), record(1, 9), record(0, 8), record(1, 10)]


def test_what_is_left_begins_after_the_last_one_handed_out() -> None:
    hand_out = HandOut()
    assert hand_out.rest() == []
    iterator = hand_out.begin(RECORDS)
    assert [next(iterator), next(iterator)] == RECORDS[:2]
    assert hand_out.rest() == RECORDS[2:]
    assert {tp.partition: left.offset for tp, left in hand_out.first_left().items()} == {1: 9, 0: 8}
    assert list(iterator) == RECORDS[2:]
    assert hand_out.first_left() == {}


def test_what_is_taken_back_does_not_come_from_the_iterator() -> None:
    hand_out = HandOut()
    iterator = hand_out.begin(RECORDS)
    next(iterator)
    assert hand_out.take_back() == RECORDS[1:]
    assert list(iterator) == []
    assert hand_out.take_back() == []


def test_partitions_are_dropped_and_others_kept() -> None:
    hand_out = HandOut()
    iterator = hand_out.begin(RECORDS)
    next(iterator)
    partition = TopicPartition("orders", 0)
    assert hand_out.drop([TopicPartition("orders", 7)]) == {}
    assert hand_out.drop([partition]) == {partition: RECORDS[1]}
    assert list(iterator) == []
    assert hand_out.take_back() == [RECORDS[2], RECORDS[4]]
