"""Each promise about moves has a bug that breaks it: the campaign must find every one of them.

That the last replica in sync is never dropped takes rarer stories: see `test_controller_property`.
"""

from collections.abc import Callable, Collection

import pytest

from headwater.cluster.image.image import PartitionImage
from headwater.cluster.reassignment import changes, steps
from headwater.replication.leading.leadership import Leadership
from headwater.sim.campaigns.reassignments import ReassignmentCampaign
from tests.sim.campaigns.test_cluster_bugs import LOST

Plant = Callable[[pytest.MonkeyPatch], None]

SEEDS_MAX = 200

DIFFERENT = f"replicas do not differ|all replicas get in sync|leaders are in sync|{LOST}"


def _ended(partition: PartitionImage, replicas: tuple[int, ...], leader: int) -> PartitionImage:
    return PartitionImage(
        replicas, replicas, leader, partition.leader_epoch + 1, partition.partition_epoch + 1
    )


def complete_before_the_target_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def next_state(
        partition: PartitionImage, live: Collection[int], *_rest: object
    ) -> PartitionImage | None:
        leaders = [each for each in partition.target if each in live]
        return _ended(partition, partition.target, leaders[0]) if leaders else None

    monkeypatch.setattr(changes, "next_state", next_state)


def forget_what_was_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    next_state = steps.next_state

    def next_unless_cancelled(
        partition: PartitionImage,
        live: Collection[int],
        electable: Collection[int],
        min_isr: int,
    ) -> PartitionImage | None:
        if partition.adding and set(partition.adding) == set(partition.removing):
            return None
        return next_state(partition, live, electable, min_isr)

    monkeypatch.setattr(changes, "next_state", next_unless_cancelled)


def throttle_who_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "is_waited_for", lambda *_: False)


def forget_a_throttle(monkeypatch: pytest.MonkeyPatch) -> None:
    next_state = steps.next_state

    def with_its_throttle(
        partition: PartitionImage,
        live: Collection[int],
        electable: Collection[int],
        min_isr: int,
    ) -> PartitionImage | None:
        state = next_state(partition, live, electable, min_isr)
        return None if state is None else state._replace(throttle=partition.throttle)

    monkeypatch.setattr(changes, "next_state", with_its_throttle)


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (throttle_who_is_in_sync, "nobody in sync is throttled"),
        (forget_a_throttle, "a throttle goes with its move"),
        (complete_before_the_target_is_in_sync, DIFFERENT),
        (forget_what_was_cancelled, "all replicas get in sync"),
    ],
)
def test_the_campaign_finds(monkeypatch: pytest.MonkeyPatch, plant: Plant, expected: str) -> None:
    plant(monkeypatch)
    monkeypatch.setattr("headwater.sim.campaigns.cluster.HEALED_TIME_MAX_S", 20.0)
    with pytest.raises(AssertionError, match=expected):
        for seed in range(SEEDS_MAX):
            ReassignmentCampaign(seed).run(event_count=5)
