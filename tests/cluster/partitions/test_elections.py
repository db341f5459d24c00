"""The election strategies, with the example that the notes give."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.image.image import NO_LEADER, PartitionImage
from headwater.cluster.partitions.elections import (
    ControlledShutdown,
    ElectionStrategy,
    OfflinePartition,
    PreferredReplica,
    ReassignPartition,
)


def _partition(replicas: list[int], isr: list[int], leader: int, epoch: int = 4) -> PartitionImage:
    return PartitionImage(tuple(replicas), tuple(isr), leader, epoch, 9)


#: The topic topic-leader on three brokers, before broker 0 is stopped.
TOPIC_LEADER = [
    _partition([1, 2, 0], [2, 0, 1], leader=1),
    _partition([2, 0, 1], [2, 0, 1], leader=2),
    _partition([0, 1, 2], [0, 2, 1], leader=0),
]


def test_offline_partition_takes_the_first_of_ar_and_not_of_isr() -> None:
    elected = OfflinePartition().elect(TOPIC_LEADER[2], {1, 2})
    # AR without broker 0 is [1, 2] and the ISR [2, 1]: the leader is 1 and not 2. Broker 0 leaves
    # the ISR when that leader asks for it.
    assert elected == PartitionImage(
        (0, 1, 2), (0, 2, 1), leader=1, leader_epoch=5, partition_epoch=10
    )


def test_offline_partition_takes_nobody_out_of_sync_unless_that_is_allowed() -> None:
    partition = _partition([0, 1, 2], [0], leader=0)
    assert OfflinePartition().elect(partition, {1, 2}) is None
    unclean = OfflinePartition(unclean_allowed=True).elect(partition, {2, 1})
    assert unclean is not None and (unclean.leader, unclean.isr) == (1, (1,))
    assert OfflinePartition(unclean_allowed=True).elect(partition, set()) is None
    # Somebody in sync goes first, wherever it stands in AR.
    partition = _partition([0, 1, 2], [0, 2], leader=0)
    clean = OfflinePartition(unclean_allowed=True).elect(partition, {1, 2})
    assert clean is not None and (clean.leader, clean.isr) == (2, (0, 2))


def test_reassign_partition_looks_in_the_new_replicas() -> None:
    partition = _partition([0, 1, 2], [0, 1, 2, 4, 5], leader=0)
    elected = ReassignPartition((3, 5, 4)).elect(partition, {0, 1, 2, 3, 4, 5})
    assert elected is not None and (elected.leader, elected.isr) == (5, (0, 1, 2, 4, 5))
    elected = ReassignPartition((3, 5, 4)).elect(partition, {0, 1, 2, 3, 4})
    assert elected is not None and elected.leader == 4
    assert ReassignPartition((3,)).elect(partition, {3, 4, 5}) is None


def test_preferred_replica_takes_the_first_of_ar_or_nobody() -> None:
    partition = _partition([0, 1, 2], [2, 0, 1], leader=2)
    elected = PreferredReplica().elect(partition, {0, 1, 2})
    assert elected is not None and (elected.leader, elected.isr) == (0, (2, 0, 1))
    assert elected.leader_epoch == 5
    assert PreferredReplica().elect(partition, {1, 2}) is None
    assert PreferredReplica().elect(_partition([0, 1], [1], leader=1), {0, 1}) is None


def test_controlled_shutdown_passes_over_whoever_is_stopping() -> None:
    elected = ControlledShutdown({0}).elect(TOPIC_LEADER[2], {0, 1, 2})
    assert elected is not None and (elected.leader, elected.isr) == (1, (0, 2, 1))
    elected = ControlledShutdown({0, 1}).elect(TOPIC_LEADER[2], {0, 1, 2})
    assert elected is not None and (elected.leader, elected.isr) == (2, (0, 2, 1))
    assert ControlledShutdown({0}).elect(_partition([0, 1], [0], leader=0), {0, 1}) is None


@st.composite
def _cases(draw: st.DrawFn) -> tuple[ElectionStrategy, PartitionImage, set[int]]:
    brokers = st.sampled_from(range(5))
    replicas = draw(st.lists(brokers, min_size=1, unique=True))
    isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = draw(st.sampled_from([NO_LEADER, *isr]))
    strategies: list[ElectionStrategy] = [
        OfflinePartition(),
        OfflinePartition(unclean_allowed=True),
        PreferredReplica(),
        ControlledShutdown(draw(st.sets(brokers))),
        ReassignPartition(tuple(draw(st.lists(brokers, unique=True)))),
    ]
    strategy = draw(st.sampled_from(strategies))
    return strategy, _partition(replicas, isr, leader), draw(st.sets(brokers))


@given(_cases())
def test_whoever_is_elected_is_alive_and_in_the_isr(
    case: tuple[ElectionStrategy, PartitionImage, set[int]],
) -> None:
    strategy, before, live = case
    after = strategy.elect(before, live)
    if after is None:
        return
    assert after.leader in live and after.leader in after.isr
    assert set(after.isr) <= set(before.replicas) and after.replicas == before.replicas
    assert after.leader_epoch == before.leader_epoch + 1
    assert after.partition_epoch == before.partition_epoch + 1
    if after.leader not in before.isr:
        assert strategy == OfflinePartition(unclean_allowed=True)
        assert live.isdisjoint(before.isr) and after.isr == (after.leader,)
