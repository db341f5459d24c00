import random
import uuid
from collections import Counter

from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import NO_LEADER, PartitionInfo, TopicInfo
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.partition_queue import PartitionQueue
from headwater.client.producer.intake.serialized_record import SerializedRecord
from headwater.client.producer.intake.topic_route import TopicRoute

BATCH_SIZE_BYTES = 1000


def route(*, is_adaptive: bool, leaders: tuple[int, ...] = (0, 0, 0)) -> TopicRoute:
    partitions = tuple(
        PartitionInfo(number, leader, 0, (0,), (0,)) for number, leader in enumerate(leaders)
    )
    return TopicRoute(
        TopicInfo("orders", uuid.UUID(int=1), False, partitions),
        [PartitionQueue(TopicPartition("orders", number)) for number in range(len(leaders))],
        batch_size_bytes=BATCH_SIZE_BYTES,
        is_adaptive=is_adaptive,
        generator=random.Random(9),
    )


def batch_of(size_bytes: int) -> ProduceBatch:
    batch = ProduceBatch(TopicPartition("orders", 0), 1.0)
    batch.add(SerializedRecord(5, None, b"value", (), size_bytes))
    return batch


def chosen(made: TopicRoute) -> Counter[int]:
    return Counter(made.next_sticky().topic_partition.partition for _ in range(3000))


def test_a_partition_for_which_batches_wait_gets_less() -> None:
    made = route(is_adaptive=True)
    made.queues[1].waiting.extend(batch_of(100) for _ in range(9))
    counts = chosen(made)
    # One of 21 parts against ten each for the others.
    assert 50 < counts[1] < 300
    assert counts[0] > 1000
    assert counts[2] > 1000


def test_without_adapting_all_get_as_much() -> None:
    made = route(is_adaptive=False)
    made.queues[1].waiting.extend(batch_of(100) for _ in range(9))
    assert min(chosen(made).values()) > 800


def test_small_batches_stay_with_a_partition_until_they_are_worth_a_full_one() -> None:
    made = route(is_adaptive=False)
    first = made.sticky
    stays = 0
    while made.sticky_for_new_batch() is first:
        stays += 1
        made.note_opened(batch_of(139))
        assert stays < 100
    # Each is 200 bytes with its header: five of them make 1000.
    assert stays >= 5


def test_without_any_leader_all_partitions_are_tried() -> None:
    made = route(is_adaptive=True, leaders=(NO_LEADER, NO_LEADER))
    assert set(chosen(made)) == {0, 1}


def test_a_route_is_like_another_with_the_same_queues_and_leaders() -> None:
    made = route(is_adaptive=True)
    same = TopicRoute(
        TopicInfo(
            "orders",
            uuid.UUID(int=1),
            False,
            tuple(PartitionInfo(number, 4, 0, (0,), (0,)) for number in range(3)),
        ),
        made.queues,
        batch_size_bytes=BATCH_SIZE_BYTES,
        is_adaptive=True,
        generator=random.Random(1),
    )
    assert made.is_like(same)
    assert not made.is_like(route(is_adaptive=True))
