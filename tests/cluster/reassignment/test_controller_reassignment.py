"""Moves of partitions as a controller begins, continues and ends them in the metadata store."""

import json

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import ConfigResource, PartitionImage, ResourceKind
from headwater.cluster.image.loader import load_image
from headwater.cluster.node_documents import CorruptNodeError, decode_topic
from headwater.cluster.reassignment.requests import Reassignment
from headwater.cluster.topics.new_topic import NewPartitions
from tests.support.async_tests import run_async
from tests.support.models.broker_crowd import BrokerCrowd, describe, fresh_image

T0 = TopicPartition("t", 0)


async def reassign(
    crowd: BrokerCrowd,
    target: tuple[int, ...] | None,
    name: TopicPartition = T0,
    *,
    factor_may_change: bool = True,
) -> ErrorCode:
    outcome = await crowd.seat.controller.reassign_partitions(
        [Reassignment(name, target)], factor_may_change=factor_may_change
    )
    error = outcome[name]
    return ErrorCode.NONE if error is None else error.code


async def document(crowd: BrokerCrowd) -> dict[str, object]:
    node = await crowd.observer.get("/brokers/topics/t")
    found = json.loads(node.data)
    return {key: found[key] for key in ("partitions", "adding_replicas", "removing_replicas")}


@run_async
async def test_a_move_is_in_the_store_as_kafka_has_it_there() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3, 4])
    await crowd.create("t", (1, 2), (2, 1))
    assert await reassign(crowd, (3, 2)) is ErrorCode.NONE
    assert await document(crowd) == {
        "partitions": {"0": [3, 2, 1], "1": [2, 1]},
        "adding_replicas": {"0": [3]},
        "removing_replicas": {"0": [1]},
    }
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    await crowd.alter([1, 2, 3], "t")
    assert crowd.partition() == PartitionImage((3, 2), (2, 3), 3, 1, 3)
    assert await document(crowd) == {
        "partitions": {"0": [3, 2], "1": [2, 1]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    await crowd.close()


@run_async
async def test_what_cannot_be_moved() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3])
    await crowd.create("t", (1, 2))
    before = crowd.partition()
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    for target in ((), (1, 1), (1, 9), (-1, 2)):
        assert await reassign(crowd, target) is invalid
    assert await reassign(crowd, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for name in (TopicPartition("t", 1), TopicPartition("t", -1), TopicPartition("absent", 0)):
        assert await reassign(crowd, (1, 2), name) is unknown
        assert await reassign(crowd, None, name) is unknown
    factor = ErrorCode.INVALID_REPLICATION_FACTOR
    assert await reassign(crowd, (1, 2, 3), factor_may_change=False) is factor
    twice = [Reassignment(T0, (3,)), Reassignment(T0, (2,))]
    outcome = await crowd.seat.controller.reassign_partitions(twice)
    assert outcome[T0] is not None
    assert crowd.partition() == before
    assert await reassign(crowd, (1, 2)) is ErrorCode.NONE
    assert crowd.partition() == before
    cordon = {"cordoned.log.dirs": "*"}
    resource = ConfigResource(ResourceKind.BROKER, "3")
    await crowd.seat.controller.set_configs(resource, cordon)
    assert await reassign(crowd, (1, 3)) is invalid
    await crowd.close()


@run_async
async def test_a_move_survives_its_controller() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3, 4])
    await crowd.create("t", (1, 2))
    await reassign(crowd, (3, 4))
    await crowd.replace_controller(2)
    assert crowd.partition().target == (3, 4)
    await crowd.alter([1, 2, 3], "t")
    await crowd.replace_controller(4)
    await crowd.alter([1, 2, 3, 4], "t")
    assert crowd.partition()[:3] == ((3, 4), (3, 4), 3)
    await crowd.close()


@run_async
async def test_a_dead_target_keeps_a_move_waiting_until_it_is_back_or_another_is_named() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3, 4])
    await crowd.create("t", (1, 2))
    await crowd.create("held", (3, 4))
    await crowd.fail(3)
    await crowd.settle()
    # It is known, because it holds something.
    assert await reassign(crowd, (3, 4)) is ErrorCode.NONE
    await crowd.alter([1, 2, 4], "t")
    assert crowd.partition().is_moving
    assert await reassign(crowd, (4, 2)) is ErrorCode.NONE
    assert crowd.partition()[:3] == ((4, 2), (2, 4), 4)
    await crowd.close()


@run_async
async def test_a_move_that_is_cancelled_is_over() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3, 4])
    await crowd.create("t", (1, 2))
    await reassign(crowd, (3, 4))
    await crowd.alter([1, 2, 3], "t")
    assert await reassign(crowd, None) is ErrorCode.NONE
    assert crowd.partition()[:3] == ((1, 2), (1, 2), 1)
    assert await reassign(crowd, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert (await document(crowd))["adding_replicas"] == {}
    await crowd.close()


@run_async
async def test_a_cancelled_move_waits_for_min_insync_replicas() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3])
    await crowd.create("t", (1, 2))
    resource = ConfigResource(ResourceKind.TOPIC, "t")
    await crowd.seat.controller.set_configs(resource, {"min.insync.replicas": "2"})
    await reassign(crowd, (3, 2))
    await crowd.fail(2)
    await crowd.settle()
    await crowd.alter([1, 3], "t")
    assert await reassign(crowd, None) is ErrorCode.NONE
    assert crowd.partition().is_moving
    assert set(crowd.partition().isr) == {1, 3}
    # It says no more what it waited for: now the leader may ask to be alone.
    await crowd.seat.controller.set_configs(resource, {"min.insync.replicas": "1"})
    await crowd.settle()
    await crowd.alter([1], "t")
    # As in Kafka, what the two lists have in common has the order of the target.
    assert crowd.partition()[:3] == ((2, 1), (1,), 1)
    assert not crowd.partition().is_moving
    await crowd.close()


@run_async
async def test_topics_grow_and_go_while_they_move() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3, 4])
    await crowd.create("t", (1, 2))
    await reassign(crowd, (3, 4, 1))
    controller = crowd.seat.controller
    assert await controller.create_partitions([NewPartitions("t", 2)]) == {"t": None}
    # It gets as many replicas as the topic will have.
    assert len(crowd.partition("t", 1).replicas) == 3
    assert crowd.partition().is_moving
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    assert await controller.delete_topics(["t"]) == {"t": None}
    assert "t" not in crowd.image.topics
    assert "t" not in (await load_image(crowd.observer)).topics
    await crowd.close()


@run_async
async def test_many_partitions_of_one_topic_move_in_several_transactions() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3])
    await crowd.create("t", *[(1, 2)] * 450)
    names = [TopicPartition("t", number) for number in range(450)]
    wanted = [Reassignment(each, (3, 2)) for each in names]
    outcome = await crowd.seat.controller.reassign_partitions(wanted)
    assert outcome == dict.fromkeys(names)
    assert all(crowd.partition(*each).adding == (3,) for each in names)
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    await crowd.close()


@pytest.mark.parametrize(
    "moves",
    [
        '"adding_replicas":{"0":[9]},"removing_replicas":{}',
        '"adding_replicas":{"0":[1,2]},"removing_replicas":{}',
        '"adding_replicas":{},"removing_replicas":{"0":[1,1]}',
        '"adding_replicas":{},"removing_replicas":{"7":[1]}',
        '"adding_replicas":{},"removing_replicas":{"x":[1]}',
        '"adding_replicas":{"0":["1"]},"removing_replicas":{}',
        '"adding_replicas":[1],"removing_replicas":{}',
    ],
)
def test_a_document_that_says_what_cannot_be_is_refused(moves: str) -> None:
    start = '{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,2]},'
    with pytest.raises(CorruptNodeError):
        decode_topic("/brokers/topics/t", f"{start}{moves}}}".encode())


async def throttles(crowd: BrokerCrowd) -> object:
    node = await crowd.observer.get("/brokers/topics/t")
    return json.loads(node.data).get("throttles")


@run_async
async def test_a_throttle_is_stored_with_its_move_and_goes_with_it() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3, 4])
    await crowd.create("t", (1, 2), (2, 1))
    controller = crowd.seat.controller
    assert await throttles(crowd) is None
    both = [TopicPartition("t", number) for number in (0, 1)]
    outcome = await controller.reassign_partitions(
        [Reassignment(each, (3, 2), 5000) for each in both]
    )
    assert set(outcome.values()) == {None}
    assert await throttles(crowd) == {"0": 5000, "1": 5000}
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    # It may be another one at any time, and nothing else changes with it.
    before = crowd.partition()
    assert await controller.throttle_reassignments(7) == dict.fromkeys(both)
    assert crowd.partition() == before._replace(
        throttle=7, partition_epoch=before.partition_epoch + 1
    )
    assert await throttles(crowd) == {"0": 7, "1": 7}
    # Who turns a move around and says nothing of it keeps it.
    assert await reassign(crowd, (4, 2)) is ErrorCode.NONE
    assert crowd.partition().throttle == 7
    await crowd.alter([1, 2, 4], "t")
    assert not crowd.partition().is_moving
    assert crowd.partition().throttle == 0
    assert await throttles(crowd) == {"1": 7}
    assert await controller.throttle_reassignments(0) == {both[1]: None}
    assert await throttles(crowd) is None
    assert await controller.throttle_reassignments(9) == {both[1]: None}
    assert await reassign(crowd, None, both[1]) is ErrorCode.NONE
    assert await throttles(crowd) is None, "a cancelled move takes its throttle with it"
    assert await controller.throttle_reassignments(9) == {}
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    await crowd.close()


@pytest.mark.parametrize("rate", ["-1", '"5"', "1.5", "9223372036854775808"])
def test_a_throttle_that_cannot_be(rate: str) -> None:
    data = (
        '{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAABw","partitions":{"0":[1,2]},'
        f'"adding_replicas":{{"0":[2]}},"removing_replicas":{{}},"throttles":{{"0":{rate}}}}}'
    )
    with pytest.raises(CorruptNodeError):
        decode_topic("/brokers/topics/t", data.encode())
