"""What answers do to a followed partition, and what errors cost it."""

from __future__ import annotations

import logging

import pytest

from headwater.base.errors import ErrorCode
from headwater.replication.following.partition import Condition, FollowedPartition, pause_ms
from headwater.sim.campaigns.logs import leader_batch
from headwater.sim.campaigns.replica_set import OPTIONS, ReplicaSet
from headwater.sim.disk.faults import Fault
from headwater.wire.messages.fetch import EpochEndOffset, PartitionData

LEADER, FOLLOWER = 1, 2


class Answered:
    """A follower that has asked, and is about to be answered."""

    def __init__(self) -> None:
        self.replicas = ReplicaSet([LEADER, FOLLOWER])
        self.replicas.elect(LEADER, [LEADER, FOLLOWER])
        self.replica = self.replicas[FOLLOWER]
        self.now_ms = 0.0
        self.ask()

    def ask(self) -> bool:
        return self.replica.plan.request(self.now_ms, OPTIONS) is not None

    @property
    def followed(self) -> FollowedPartition:
        (followed,) = self.replica.plan
        return followed

    def condition(self) -> Condition:
        return self.followed.condition

    def answer(self, **fields: object) -> int:
        data = PartitionData(**fields)  # type: ignore[arg-type]
        return self.replica.answers.take(
            self.followed, data, OPTIONS, wall_ms=self.replicas.clock.wall_ms(), now_ms=self.now_ms
        )


def test_offsets_follow_the_leader_as_far_as_the_log_goes() -> None:
    answered = Answered()
    records = leader_batch(0, b"a", b"b", b"c")
    assert answered.answer(records=records, high_watermark=5, log_start_offset=1) == len(records)
    log = answered.replica.log
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 3, 3)
    assert answered.followed.lag == 2
    answered.ask()
    # A new leader may know less of the high watermark than its follower.
    answered.answer(high_watermark=2, log_start_offset=0)
    assert (log.log_start_offset, log.high_watermark) == (1, 3)


def test_an_answer_from_before_a_new_role_does_not_count() -> None:
    answered = Answered()
    answered.replicas.elect(LEADER, [LEADER, FOLLOWER])
    assert answered.answer(records=leader_batch(0, b"a")) == 0
    assert answered.replica.log.log_end_offset == 0


def test_an_answer_for_an_offset_that_was_passed_does_not_count() -> None:
    answered = Answered()
    answered.answer(records=leader_batch(0, b"a"))
    assert answered.answer(records=leader_batch(0, b"b")) == 0
    assert answered.replica.values() == [b"a"]


def test_a_damaged_answer_costs_a_pause_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    answered = Answered()
    damaged = bytearray(leader_batch(0, b"a"))
    damaged[-1] ^= 1
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert answered.answer(records=bytes(damaged)) == 0
            assert answered.condition() is Condition.PAUSED
            assert not answered.ask()
            answered.now_ms += 2_000
            assert answered.ask()
    assert len(caplog.records) == 1
    assert "cannot take what broker 1 sent" in caplog.records[0].getMessage()
    answered.answer(records=leader_batch(0, b"a"))
    assert answered.followed.failure_count == 0


def test_pauses_grow_to_the_longest() -> None:
    assert [pause_ms(count, 1_600) for count in (1, 2, 3, 4, 5, 6, 1_000)] == [
        100,
        200,
        400,
        800,
        1_600,
        1_600,
        1_600,
    ]


def test_a_full_disk_is_tried_again_and_a_broken_one_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answered = Answered()
    disk = answered.replica.disk
    disk.capacity_bytes = disk.used_bytes
    records = leader_batch(0, b"a" * 1_000)
    with caplog.at_level(logging.WARNING):
        assert answered.answer(records=records) == 0
        assert answered.condition() is Condition.PAUSED
        disk.capacity_bytes = None
        answered.now_ms += 2_000
        assert answered.ask()
        assert answered.answer(records=records) == len(records)
    assert [each.levelname for each in caplog.records] == ["ERROR", "WARNING"]
    assert not answered.replica.partition.write_failures.directories

    disk.faults = [Fault({"write", "truncate"})]
    answered.ask()
    assert answered.answer(records=leader_batch(1, b"b" * 1_000)) == 0
    assert answered.replica.log.failure is not None
    assert answered.condition() is Condition.FAILED
    answered.now_ms += 1_000_000
    assert not answered.ask()
    assert answered.replica.plan.failed_count == 1


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, 9_999])
def test_an_error_that_should_not_be_is_told_once(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    answered = Answered()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            answered.answer(error_code=int(code))
            answered.now_ms += 2_000
            assert answered.ask()
    assert [each.getMessage() for each in caplog.records] == [
        "topic-0 is not replicated, broker 1 refuses it: UNKNOWN_SERVER_ERROR"
    ]


def test_a_leader_that_says_nothing_new_about_a_divergence_is_not_asked_at_full_speed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answered = Answered()
    answered.answer(records=leader_batch(0, b"a"))
    answered.ask()
    with caplog.at_level(logging.WARNING):
        answered.answer(diverging_epoch=EpochEndOffset(epoch=0, end_offset=1))
    assert answered.condition() is Condition.PAUSED
    assert "broker 1 ended epoch 0 at 1" in caplog.text


def test_a_cut_below_the_high_watermark_is_told(caplog: pytest.LogCaptureFixture) -> None:
    answered = Answered()
    answered.answer(records=leader_batch(0, b"a") + leader_batch(1, b"b"), high_watermark=2)
    answered.ask()
    with caplog.at_level(logging.WARNING):
        answered.answer(diverging_epoch=EpochEndOffset(epoch=0, end_offset=1))
    assert "is cut from 2 to 1, below its high watermark 2" in caplog.text
    assert answered.replica.answers.truncated == [(answered.replica.log, 1)]
    assert (answered.replica.log.log_end_offset, answered.replica.log.high_watermark) == (1, 1)
