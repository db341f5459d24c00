"""Which partitions go back to the replicas that should lead them."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import PartitionImage
from headwater.cluster.partitions.leader_imbalance import imbalance_count, partitions_to_hand_back
from tests.support.values.cluster_images import image_of, partition_of


def numbers(found: list[TopicPartition]) -> list[int]:
    return [topic_partition.partition for topic_partition in found]


def test_a_broker_gets_its_partitions_back_once_more_than_the_share_is_led_by_others() -> None:
    partitions = [partition_of((1, 2), 1, (1, 2))] * 9 + [partition_of((1, 2), 2, (1, 2))]
    assert imbalance_count(image_of(partitions)) == 1
    assert numbers(partitions_to_hand_back(image_of(partitions), percentage=10)) == []
    assert numbers(partitions_to_hand_back(image_of(partitions), percentage=9)) == [9]


def test_each_broker_is_judged_by_itself() -> None:
    partitions = [partition_of((1, 2), 1, (1, 2))] * 50 + [partition_of((3, 2), 2, (2, 3))]
    assert numbers(partitions_to_hand_back(image_of(partitions), percentage=10)) == [50]


def test_who_is_not_there_or_not_in_sync_gets_nothing_back() -> None:
    partitions = [partition_of((1, 2), 2, (2,)), partition_of((3, 2), 2, (2, 3))]
    assert numbers(partitions_to_hand_back(image_of(partitions), percentage=0)) == [1]
    assert partitions_to_hand_back(image_of(partitions, (1, 2)), percentage=0) == []


@given(
    st.lists(
        st.permutations([1, 2, 3]).flatmap(
            lambda replicas: st.builds(
                partition_of,
                st.just(tuple(replicas)),
                st.sampled_from([*replicas, -1]),
                st.sets(st.sampled_from(replicas)).map(lambda isr: tuple(sorted(isr))),
            )
        ),
        max_size=20,
    ),
    st.integers(0, 100),
)
def test_what_is_handed_back_can_be_led_and_is_not_yet(
    partitions: list[PartitionImage], percentage: int
) -> None:
    found = partitions_to_hand_back(image_of(partitions), percentage)
    assert len(found) <= imbalance_count(image_of(partitions))
    for topic_partition in found:
        partition = partitions[topic_partition.partition]
        assert partition.leader != partition.replicas[0] and partition.replicas[0] in partition.isr
    # With a share of nothing, all that can go back does.
    everything = [
        number
        for number, each in enumerate(partitions)
        if each.leader != each.replicas[0] and each.replicas[0] in each.isr
    ]
    assert sorted(numbers(partitions_to_hand_back(image_of(partitions), 0))) == everything
