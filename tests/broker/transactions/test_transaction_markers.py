"""Delivering the outcome of transactions."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from tests.support.tiers import rounds
from tests.support.worlds.marker_world import (
    COORDINATOR_EPOCH,
    MarkerWorld,
    image_of,
    prepared,
    run_marker_world,
)

_A0, _A1, _B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
_LEADERS = {"a": [1, 2], "b": [2]}


def test_every_leader_gets_the_markers_of_its_partitions() -> None:
    async def scenario(world: MarkerWorld) -> None:
        transaction = prepared("t", 7, _A0, _A1, _B0)
        world.sender.deliver(transaction)
        await asyncio.sleep(1)
        assert sorted(world.sent) == [(1, 7, _A0), (2, 7, _A1), (2, 7, _B0)]
        assert len(world.requests) == 2
        marker = world.requests[0][1].markers[0]
        assert marker.transaction_result
        assert (marker.producer_epoch, marker.coordinator_epoch) == (5, COORDINATOR_EPOCH)
        assert world.completed == [transaction]
        assert len(world.sender) == 0

    run_marker_world(_LEADERS, scenario)


def test_transactions_that_wait_for_a_broker_share_a_request() -> None:
    async def scenario(world: MarkerWorld) -> None:
        world.gate.clear()
        for number in range(100):
            world.sender.deliver(prepared(f"t{number}", number, _A0))
            await asyncio.sleep(0.001)
        assert len(world.requests) < 10
        world.gate.set()
        await asyncio.sleep(1)
        assert len(world.completed) == 100
        assert len(world.requests) < 10
        assert len(world.sent) == 100

    run_marker_world(_LEADERS, scenario)


def test_one_that_is_under_way_is_not_sent_again() -> None:
    async def scenario(world: MarkerWorld) -> None:
        world.gate.clear()
        transaction = prepared("t", 7, _A0)
        world.sender.deliver(transaction)
        await asyncio.sleep(1)
        world.sender.deliver(transaction)
        world.gate.set()
        await asyncio.sleep(1)
        assert world.sent == [(1, 7, _A0)]
        assert world.completed == [transaction]

    run_marker_world(_LEADERS, scenario)


def test_a_partition_that_moves_is_followed_to_its_new_leader() -> None:
    async def scenario(world: MarkerWorld) -> None:
        world.say = lambda broker, _, partition: (
            ErrorCode.NOT_LEADER_OR_FOLLOWER if (broker, partition) == (1, _A0) else ErrorCode.NONE
        )
        transaction = prepared("t", 7, _A0, _B0)
        world.sender.deliver(transaction)
        await asyncio.sleep(10)
        assert world.completed == []
        assert 5 < len(world.sent) < 25  # It waits longer and longer.
        world.image = image_of({"a": [-1, 2], "b": [2]}, COORDINATOR_EPOCH)
        await asyncio.sleep(10)
        world.image = image_of({"a": [2, 2], "b": [2]}, COORDINATOR_EPOCH)
        await asyncio.sleep(2)
        assert world.sent[-1] == (2, 7, _A0)
        assert [each for each in world.sent if each[2] == _B0] == [(2, 7, _B0)]
        assert world.completed == [transaction]

    run_marker_world(_LEADERS, scenario)


def test_a_deleted_topic_holds_nothing_up() -> None:
    async def scenario(world: MarkerWorld) -> None:
        world.say = lambda _, __, partition: (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition == _B0 else ErrorCode.NONE
        )
        world.sender.deliver(prepared("t", 7, _A0, _B0, TopicPartition("a", 9)))
        await asyncio.sleep(5)
        assert world.completed == []
        world.image = image_of({"a": [1, 2]}, COORDINATOR_EPOCH)
        await asyncio.sleep(5)
        assert len(world.completed) == 1

    run_marker_world(_LEADERS, scenario)


def test_a_transaction_of_nothing_but_deleted_topics_is_complete_at_once() -> None:
    async def scenario(world: MarkerWorld) -> None:
        world.sender.deliver(prepared("t", 7, TopicPartition("gone", 0)))
        await asyncio.sleep(0.1)
        assert len(world.completed) == 1
        assert world.requests == []

    run_marker_world(_LEADERS, scenario)


def test_a_fenced_coordinator_leaves_it_to_the_next() -> None:
    async def scenario(world: MarkerWorld) -> None:
        world.say = lambda *_: ErrorCode.TRANSACTION_COORDINATOR_FENCED
        world.sender.deliver(prepared("t", 7, _A0, _A1))
        await asyncio.sleep(10)
        assert world.completed == []
        assert len(world.sent) <= 2
        assert len(world.sender) == 0

    run_marker_world(_LEADERS, scenario)


def test_who_is_no_longer_the_coordinator_stops() -> None:
    async def scenario(world: MarkerWorld) -> None:
        world.say = lambda *_: ErrorCode.NOT_ENOUGH_REPLICAS
        world.sender.deliver(prepared("t", 7, _A0))
        await asyncio.sleep(5)
        sent = len(world.sent)
        world.image = image_of(_LEADERS, COORDINATOR_EPOCH + 1)
        await asyncio.sleep(10)
        assert len(world.sent) <= sent + 1
        assert len(world.sender) == 0

    run_marker_world(_LEADERS, scenario)


def test_completion_is_told_until_it_is_written() -> None:
    async def scenario(world: MarkerWorld) -> None:
        errors = [KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)] * 3
        world.say_complete = lambda: errors.pop() if errors else None
        world.sender.deliver(prepared("t", 7, _A0))
        await asyncio.sleep(5)
        assert len(world.completed) == 1
        world.say_complete = lambda: KafkaError(ErrorCode.NOT_COORDINATOR)
        world.sender.deliver(prepared("u", 8, _A0))
        await asyncio.sleep(5)
        assert len(world.completed) == 1
        assert len(world.sender) == 0

    run_marker_world(_LEADERS, scenario)


_TROUBLE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


@settings(max_examples=rounds(60, 1000), deadline=None)
@given(st.data())
def test_each_partition_has_its_marker_before_a_transaction_is_complete(
    data: st.DataObject,
) -> None:
    partitions = [TopicPartition("a", number) for number in range(4)]
    transactions = [
        prepared(f"t{number}", number, *data.draw(st.sets(st.sampled_from(partitions), min_size=1)))
        for number in range(data.draw(st.integers(1, 6)))
    ]
    trouble = data.draw(st.lists(st.sampled_from(_TROUBLE), max_size=20))
    pauses_s = [data.draw(st.sampled_from((0.0, 0.01))) for _ in transactions]

    async def scenario(world: MarkerWorld) -> None:
        written: set[tuple[int, TopicPartition]] = set()

        def say(broker: int, producer_id: int, partition: TopicPartition) -> ErrorCode:
            if trouble:
                return trouble.pop()
            written.add((producer_id, partition))
            return ErrorCode.NONE

        world.say = say
        for transaction, pause_s in zip(transactions, pauses_s, strict=True):
            world.sender.deliver(transaction)
            await asyncio.sleep(pause_s)
        for _ in range(100):
            for done in world.completed:
                for partition in done.partitions:
                    assert (done.producer.producer_id, partition) in written
            await asyncio.sleep(0.5)
        assert sorted(world.completed) == sorted(transactions)

    run_marker_world({"a": [1, 2, 3, 1]}, scenario)
