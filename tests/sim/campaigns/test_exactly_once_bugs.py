"""Each property of the exactly-once campaign has a bug that breaks it; all must be found."""

from collections.abc import Callable
from typing import Any

import pytest

from headwater.broker.topics.coordinator_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.offsets.store import OffsetStore
from headwater.coordinator.outcome import nothing_follows
from headwater.coordinator.shard_log import ShardLog
from headwater.sim.campaigns.exactly_once import ExactlyOnceCampaign
from headwater.storage.partition_log import PartitionLog

Plant = Callable[[pytest.MonkeyPatch], None]

#: A bug that so many seeds do not find would stay hidden. One of them shows in one of fifteen.
SEEDS_MAX = 150


def believe_writes(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    """Answers do not wait for the disk; what they tell is on its way there."""
    when_safe = ShardLog.when_safe

    def when_written(self: ShardLog, on_safe: Callable[[], None], on_failed: Any) -> None:
        if self.partition.topic_partition.topic != topic:
            when_safe(self, on_safe, on_failed)
            return
        on_safe()
        when_safe(self, nothing_follows, nothing_follows)

    monkeypatch.setattr(ShardLog, "when_safe", when_written)


def write_markers_before_the_decision_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    believe_writes(monkeypatch, TRANSACTIONS_TOPIC)


def acknowledge_commits_before_they_are_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    believe_writes(monkeypatch, OFFSETS_TOPIC)


def show_offsets_before_their_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def put(self: OffsetStore, _producer_id: int, *arguments: Any) -> None:
        self.put(*arguments)

    monkeypatch.setattr(OffsetStore, "put_pending", put)


def call_pending_offsets_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetStore, "is_pending", lambda *_: False)


def forget_what_was_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionLog, "aborted_transactions", lambda *_: [])


def show_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PartitionLog, "last_stable_offset", property(lambda self: self.high_watermark)
    )


def stay_in_one_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    next_generation = ClassicGroup.next_generation

    def stay(self: ClassicGroup, now_ms: int) -> None:
        next_generation(self, now_ms)
        self.generation = 1

    monkeypatch.setattr(ClassicGroup, "next_generation", stay)


# A bug may do more damage than one; the search begins where the first is what it was planted for.
@pytest.mark.parametrize(
    ("plant", "broken", "first_seed"),
    [
        (
            write_markers_before_the_decision_is_safe,
            "as a whole|copied once|stays|never go back|everybody gets done|is open|can write",
            143,
        ),
        (acknowledge_commits_before_they_are_safe, "never go back|copied once|one owner", 53),
        (show_offsets_before_their_commit, "never go back|copied once", 45),
        (call_pending_offsets_stable, "never go back|copied once", 45),
        (forget_what_was_aborted, "aborted transaction is seen|as a whole", 45),
        (show_what_is_open, "aborted transaction is seen|as a whole|stays", 45),
        (stay_in_one_generation, "one owner", 45),
    ],
)
def test_a_planted_bug_is_found(
    plant: Plant, broken: str, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    monkeypatch.setattr("headwater.sim.campaigns.broker.HEALED_TIME_MAX_S", 150.0)
    with pytest.raises(AssertionError, match=broken) as found:
        for seed in range(first_seed, first_seed + SEEDS_MAX):
            ExactlyOnceCampaign(seed).run()
    assert str(found.value).startswith("seed ")
