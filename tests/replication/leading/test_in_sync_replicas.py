"""Who is in sync: followers that fall behind leave, those that catch up join, both by agreement."""

from __future__ import annotations

import errno

import pytest

from headwater.base.errors import ErrorCode
from headwater.replication.leading.isr_state import IsrProposal, IsrState
from headwater.replication.leading.remote_replica import RemoteReplica
from headwater.replication.partition.options import AcksAllFlush
from headwater.storage.errors import LogStorageError
from tests.support.async_tests import run_async
from tests.support.models.led_partition import LAG_MAX_MS, LedPartition, settled


def test_a_follower_that_fetches_the_end_has_caught_up() -> None:
    replica = RemoteReplica(1)
    replica.fetched(10, 0, 5, leader_end_offset=10, now_ms=1_000)
    assert replica.caught_up_ms == 1_000
    replica.fetched(10, 0, 5, leader_end_offset=20, now_ms=2_000)
    # At the fetch before it had all that there was then; so much is known only now.
    assert replica.caught_up_ms == 1_000
    replica.fetched(20, 0, 5, leader_end_offset=30, now_ms=3_000)
    assert replica.caught_up_ms == 2_000
    replica.fetched(25, 0, 5, leader_end_offset=40, now_ms=4_000)
    assert replica.caught_up_ms == 2_000
    assert replica.is_caught_up(40, now_ms=32_000, lag_max_ms=30_000)
    assert not replica.is_caught_up(40, now_ms=32_001, lag_max_ms=30_000)
    assert replica.is_caught_up(25, now_ms=1e9, lag_max_ms=30_000)


def test_while_a_change_is_under_way_the_larger_set_counts() -> None:
    state = IsrState()
    state.commit((0, 1), 9)
    state.propose(IsrProposal(4, 9, (0, 1, 2), (-1, -1, -1)))
    assert state.isr == (0, 1) and state.maximal == {0, 1, 2} and not state.is_alone
    state.withdraw()
    assert state.maximal == {0, 1} and state.proposal is None and state.partition_epoch == 9
    state.propose(IsrProposal(4, 9, (0,), (-1,)))
    assert state.isr == (0, 1) and state.maximal == {0, 1} and state.is_alone
    state.withdraw()
    assert not state.is_alone
    state.commit((0,), 10)
    assert state.maximal == {0} and state.is_alone and state.partition_epoch == 10


def test_a_follower_that_stops_fetching_leaves() -> None:
    world = LedPartition()
    world.append(1)
    world.fetch_all(1, 2)
    world.append(1)
    world.clock.advance(LAG_MAX_MS)
    world.fetch_all(1)
    world.leadership.check_isr()
    assert world.controller.wanted == []
    world.clock.advance(1)
    world.leadership.check_isr()
    assert world.controller.wanted == [(0, 1)]
    # Until the controller agrees the follower counts, for it may still be elected.
    assert list(world.partition.isr) == [0, 1, 2]
    assert world.high_watermark == 1
    world.events.take()
    world.controller.accept()
    assert list(world.partition.isr) == [0, 1]
    assert world.high_watermark == 2
    assert world.events.take() == ["high watermark 2", "in sync [0, 1]"]
    assert world.controller.changes == [((0, 1, 2), (0, 1))]


def test_a_follower_of_an_idle_partition_stays() -> None:
    world = LedPartition()
    world.append(1)
    world.fetch_all(1, 2)
    world.clock.advance(LAG_MAX_MS * 10)
    world.leadership.check_isr()
    assert world.controller.wanted == []


def test_a_follower_that_never_catches_up_leaves_although_it_fetches() -> None:
    world = LedPartition(followers=(1,))
    world.append(1)
    for offset in range(40):
        world.append(10)
        world.fetch(1, offset)
        world.clock.advance(1_000)
    world.leadership.check_isr()
    assert world.controller.wanted == [(0,)]


def test_a_follower_one_fetch_behind_a_steady_stream_stays() -> None:
    world = LedPartition(followers=(1,))
    for _ in range(100):
        end_offset = world.append(3)
        world.append(2)
        world.fetch(1, end_offset)
        world.clock.advance(1_000)
    world.leadership.check_isr()
    assert world.controller.wanted == []


def test_a_follower_joins_when_it_has_reached_the_high_watermark() -> None:
    world = LedPartition(isr=(0, 1))
    world.append(5)
    world.fetch(1, 5)
    world.fetch(2, 4)
    assert world.controller.wanted == []
    world.fetch(2, 5)
    assert world.controller.wanted == [(0, 1, 2)]
    [(_, proposal)] = world.controller.proposals
    assert proposal == IsrProposal(4, 9, (0, 1, 2), (100, 101, 102))
    # From the proposal on the high watermark waits for it, and min.insync.replicas does not count
    # it: either way of the controller's answer is safe.
    world.append(1)
    world.fetch(1, 6)
    assert world.high_watermark == 5
    assert list(world.partition.isr) == [0, 1]
    world.controller.accept()
    assert list(world.partition.isr) == [0, 1, 2]
    assert world.partition.partition_epoch == 10
    assert world.controller.changes == [((0, 1), (0, 1, 2))]


def test_a_follower_joins_only_with_all_that_was_there_when_the_leader_began() -> None:
    world = LedPartition(followers=(1, 2))
    world.append(5)
    world.apply(leader=1, leader_epoch=5, isr=(0, 1))
    world.apply(leader=0, leader_epoch=6, isr=(0, 1))
    assert world.high_watermark == 0
    world.fetch(2, 3)  # Past the high watermark, but not past what this leader must have.
    assert world.controller.wanted == []
    world.fetch(2, 5)
    assert world.controller.wanted == [(0, 1, 2)]


def test_a_follower_whose_life_the_cluster_does_not_know_does_not_join() -> None:
    world = LedPartition(isr=(0, 1))
    world.restart_broker(2, 300)
    world.fetch(2, 0)
    assert world.controller.wanted == []
    world.leadership.follower_fetched(2, 300, 0, 0)
    assert world.controller.wanted == [(0, 1, 2)]


def test_one_proposal_at_a_time() -> None:
    world = LedPartition(isr=(0,))
    world.fetch(1, 0)
    world.fetch(2, 0)
    assert world.controller.wanted == [(0, 1)]
    world.controller.accept()
    world.fetch(2, 0)
    assert world.controller.wanted == [(0, 1, 2)]


def test_a_newer_image_ends_a_proposal_and_an_image_of_the_same_state_does_not() -> None:
    world = LedPartition(isr=(0, 1))
    world.fetch(2, 0)
    [(owner, proposal)] = world.controller.proposals
    world.apply(partition_epoch=9)
    world.append(1)
    world.fetch(1, 1)
    assert owner.is_waiting_for(proposal)
    assert world.high_watermark == 0  # The third may be in the ISR by now.
    world.apply(partition_epoch=8, isr=(0,))
    assert list(world.partition.isr) == [0, 1]
    world.apply(partition_epoch=10, isr=(0, 1))
    assert not owner.is_waiting_for(proposal)
    assert world.high_watermark == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_after_an_outdated_proposal_the_careful_set_holds_until_an_image_comes(
    code: ErrorCode,
) -> None:
    world = LedPartition(isr=(0, 1))
    world.fetch(2, 0)
    assert world.controller.refuse(code) is False
    world.append(1)
    world.fetch(1, 1)
    assert world.high_watermark == 0
    # Should that image never come: the question is asked again.
    world.leadership.check_isr()
    assert world.controller.wanted == [(0, 1, 2)]
    world.apply(isr=(0, 1))
    assert world.high_watermark == 1


def test_what_the_controller_could_not_do_now_is_asked_again() -> None:
    world = LedPartition(isr=(0, 1))
    world.fetch(2, 0)
    assert world.controller.refuse(ErrorCode.NOT_CONTROLLER) is True
    assert world.leadership.in_sync.state.proposal is not None


def test_a_late_answer_of_an_earlier_epoch_changes_nothing() -> None:
    world = LedPartition(isr=(0, 1))
    world.fetch(2, 0)
    [(owner, proposal)] = world.controller.proposals
    world.apply(leader=1, leader_epoch=5)
    assert not owner.is_waiting_for(proposal)
    assert world.partition.leadership is None
    world.apply(leader=0, leader_epoch=6)
    assert not owner.is_waiting_for(proposal)


def test_a_leader_goes_on_at_once_without_followers_that_are_gone() -> None:
    world = LedPartition()
    world.append(2)
    world.environment.brokers = {each: world.environment.brokers[each] for each in (0, 1)}
    world.leadership.brokers_changed()
    assert world.controller.wanted == [(0, 1)]
    world.controller.accept()
    assert world.high_watermark == 0
    world.environment.brokers = {0: world.environment.brokers[0]}
    world.leadership.brokers_changed()
    assert world.controller.wanted == [(0,)]
    world.controller.accept()
    assert world.high_watermark == 2


@run_async
async def test_what_was_acknowledged_is_durable_before_a_leader_proposes_to_be_alone() -> None:
    world = LedPartition(followers=(1,), acks_all_flush=AcksAllFlush.AUTO)
    world.append(3)
    world.fetch_all(1)
    assert world.partition.is_acknowledged(3, durably=False)  # The follower has it too.
    assert world.partition.log.flushed_offset == 0
    world.threads.is_holding = True
    world.environment.brokers = {0: world.environment.brokers[0]}
    world.leadership.brokers_changed()
    assert world.controller.wanted == []
    world.threads.release()
    await settled(lambda: world.controller.wanted == [(0,)])
    assert world.partition.log.flushed_offset == 3
    # The controller may have agreed already: nothing is acknowledged any more that is not on disk,
    # even if the follower turns out to be alive.
    world.threads.is_holding = True
    world.append(1)
    world.fetch_all(1)
    assert world.high_watermark == 4
    assert not world.partition.is_acknowledged(4, durably=False)
    world.threads.release()
    await settled(lambda: world.partition.is_acknowledged(4, durably=False))
    world.controller.accept()
    assert list(world.partition.isr) == [0]
    await world.partition.close()


@run_async
async def test_a_new_leader_does_not_know_what_was_acknowledged_and_makes_all_durable() -> None:
    world = LedPartition(followers=(1,), acks_all_flush=AcksAllFlush.AUTO)
    world.append(3)
    world.apply(leader=1, leader_epoch=5)
    assert world.high_watermark == 0  # Though the other one may have acknowledged all of it.
    world.threads.is_holding = True
    world.environment.brokers = {0: world.environment.brokers[0]}
    world.apply(leader=0, leader_epoch=6)
    assert world.controller.wanted == []
    world.threads.release()
    await settled(lambda: world.controller.wanted == [(0,)])
    assert world.partition.log.flushed_offset == 3
    await world.partition.close()


@run_async
async def test_a_leader_that_the_controller_leaves_alone_syncs_what_others_had() -> None:
    world = LedPartition(followers=(1,), acks_all_flush=AcksAllFlush.AUTO)
    world.append(3)
    world.threads.is_holding = True
    world.apply(isr=(0,))
    assert world.high_watermark == 3
    assert not world.partition.is_acknowledged(3, durably=False)
    world.threads.release()
    await settled(lambda: world.partition.is_acknowledged(3, durably=False))
    await world.partition.close()


@run_async
async def test_without_the_flush_a_lone_leader_waits_for_no_disk() -> None:
    world = LedPartition(followers=(1,), acks_all_flush=AcksAllFlush.OFF)
    world.append(3)
    world.apply(isr=(0,))
    assert world.partition.is_acknowledged(3, durably=False)
    assert world.partition.log.flushed_offset == 0


def test_a_leader_whose_log_fails_resigns() -> None:
    world = LedPartition()
    world.append(2)
    world.partition.log.fail(OSError(errno.EIO, "the disk is gone"))
    with pytest.raises(LogStorageError):
        world.append(1)
    assert world.controller.wanted == [(1, 2)]
    # If there is nobody, it asks again after a while.
    world.controller.refuse(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    world.leadership.check_isr()
    assert world.controller.wanted == []
    world.clock.advance(10_000)
    world.leadership.check_isr()
    assert world.controller.wanted == [(1, 2)]
    world.controller.refuse(ErrorCode.NEW_LEADER_ELECTED)
    world.apply(leader=1, leader_epoch=5, isr=(1, 2))
    assert not world.partition.is_leader


def test_a_follower_whose_log_fails_asks_to_leave() -> None:
    world = LedPartition()
    world.apply(leader=1, leader_epoch=5)
    world.partition.storage_failed(LogStorageError("There is no room just now."))
    assert world.controller.wanted == []
    failure = world.partition.log.fail(OSError(errno.EIO, "the disk is gone"))
    world.partition.storage_failed(failure)
    assert world.controller.wanted == [(1, 2)]
    [(owner, proposal)] = world.controller.proposals
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 10)
    # Another state: the question is put anew, or is none any more.
    world.apply(leader=2, leader_epoch=6, isr=(0, 2))
    assert not owner.is_waiting_for(proposal)
    assert world.controller.wanted == [(1, 2), (2,)]
    world.controller.proposals.clear()
    world.apply(leader=2, leader_epoch=6, isr=(2,))
    assert world.controller.wanted == []


def test_a_broker_with_a_failed_log_that_is_elected_resigns_at_once() -> None:
    world = LedPartition()
    world.apply(leader=1, leader_epoch=5)
    world.partition.log.fail(OSError(errno.EIO, "the disk is gone"))
    world.apply(leader=0, leader_epoch=6)
    assert world.controller.wanted == [(1, 2)]
