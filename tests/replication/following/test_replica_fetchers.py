"""Following leaders, on virtual time: what is fetched when, and what survives which failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import ErrorCode
from headwater.replication.following.fetchers import NEWCOMERS_WAIT_MS, ReplicaFetchers
from headwater.replication.following.options import FetcherOptions
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.logs import append, read_records
from headwater.sim.clock import SimulatedClock
from headwater.sim.virtual_loop import VirtualLoop
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import apply_retention, delete_records_before
from tests.support.fakes.leader import NODE_ID, FakeLeader, follower_of, image_of

OPTIONS = FetcherOptions()

Scenario = Callable[["Following"], Coroutine[None, None, None]]


class Following:
    """One follower and the leader that it follows."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.leader = FakeLeader()
        self.options = OPTIONS
        self.truncated: list[tuple[str, int]] = []
        self.fetchers = ReplicaFetchers(
            node_id=NODE_ID,
            broker_epoch=lambda: 5,
            connect=self.leader.connect,
            options=lambda: self.options,
            clock=SimulatedClock(self.loop),
            tasks=BackgroundTasks(),
            on_truncated=self._note_truncation,
        )

    async def _note_truncation(self, log: PartitionLog, end_offset: int) -> None:
        self.truncated.append((str(log.partition), end_offset))

    def follow(self, number: int) -> Partition:
        partition = follower_of(1, number)
        self.fetchers.role_changed(partition)
        return partition

    async def until(self, condition: Callable[[], bool], limit_s: float = 60.0) -> float:
        """Wait for it; returns how long that took."""
        start_s = self.loop.time()
        while not condition():
            assert self.loop.time() < start_s + limit_s, "it does not come"
            await asyncio.sleep(0.001)
        return self.loop.time() - start_s


def run(scenario: Scenario) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        following = Following()
        try:
            await scenario(following)
        finally:
            await following.fetchers.close()
        assert [each for each in asyncio.all_tasks() if each is not asyncio.current_task()] == []

    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())
        assert loop.unhandled == []
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _ends_at(partition: Partition, end_offset: int) -> bool:
    return partition.log_end_offset == end_offset


def values(partition: Partition) -> list[bytes | None]:
    return [record.value for record in read_records(partition.log, 0)]


def test_a_follower_copies_its_leader_and_tells_how_far_it_is() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a", b"b")
        partition = following.follow(0)
        await following.until(lambda: partition.log_end_offset == 2)
        await following.until(lambda: len(leader.asked_for(0)) == 2)
        took_s = following.loop.time()
        leader.write(0, b"c")
        await following.until(lambda: partition.log_end_offset == 3)
        assert following.loop.time() - took_s < 0.01
        assert values(partition) == [b"a", b"b", b"c"]
        assert partition.high_watermark == 3
        first, second = leader.asked_for(0)[:2]
        assert (first.fetch_offset, first.last_fetched_epoch, first.current_leader_epoch) == (
            0,
            -1,
            0,
        )
        assert (second.fetch_offset, second.last_fetched_epoch) == (2, 0)
        request = leader.fetches[0][1]
        assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (
            NODE_ID,
            5,
        )
        assert following.fetchers.bytes_in == partition.log.size_bytes
        assert partition.replication_bytes_in == partition.log.size_bytes
        assert following.fetchers.max_lag() == 0

    run(scenario)


def test_idle_partitions_are_not_named_again() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        for number in range(20):
            leader.write(number, b"a")
            following.follow(number)
        await asyncio.sleep(3)
        leader.fetches.clear()
        leader.write(3, b"b")
        await asyncio.sleep(3)
        assert len(leader.asked_for(3)) == 1
        assert (
            sum(len(topic.partitions) for _, each in leader.fetches for topic in each.topics) == 1
        )
        assert len(leader.fetches) <= 3 / (OPTIONS.max_wait_ms / 1000) + 2

    run(scenario)


def test_a_newcomer_does_not_wait_for_a_fetch_that_waits() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a")
        following.follow(0)
        await asyncio.sleep(2.1)  # Now a fetch waits at the leader.
        leader.write(1, b"b")
        await asyncio.sleep(0.01)
        newcomer = following.follow(1)
        took_s = await following.until(lambda: newcomer.log_end_offset == 1)
        assert took_s < 0.01
        await asyncio.sleep(NEWCOMERS_WAIT_MS / 1000)
        other = following.follow(2)
        leader.write(2, b"c")
        assert await following.until(lambda: other.log_end_offset == 1) < 0.05
        # Half a second later all are in one session, and the other connection is at rest.
        await asyncio.sleep(1)
        leader.fetches.clear()
        await asyncio.sleep(3)
        assert len(leader.fetches) <= 3 / (OPTIONS.max_wait_ms / 1000) + 1
        assert leader.connection_count == 2
        leader.write(2, b"d")
        leader.write(1, b"d")
        await following.until(lambda: newcomer.log_end_offset == other.log_end_offset == 2)

    run(scenario)


def test_a_leader_that_is_away_is_tried_again_after_growing_pauses() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.is_reachable = False
        leader.write(0, b"a")
        partition = following.follow(0)
        await asyncio.sleep(1.0)
        assert leader.connection_count in range(4, 7)
        before = leader.connection_count
        await asyncio.sleep(20)
        assert leader.connection_count - before in range(18, 22)
        leader.is_reachable = True
        took_s = await following.until(lambda: partition.log_end_offset == 1)
        assert took_s <= OPTIONS.backoff_ms / 1000 + 0.1

    run(scenario)


def test_a_new_role_ends_the_pause(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.is_reachable = False
        leader.write(0, b"a")
        partition = following.follow(0)
        await asyncio.sleep(30)
        leader.is_reachable = True
        partition.apply(image_of(1, 1))
        following.fetchers.role_changed(partition)
        assert await following.until(lambda: partition.log_end_offset == 1) < 0.01

    with caplog.at_level(logging.WARNING):
        run(scenario)
    assert [record.getMessage() for record in caplog.records] == [
        "Broker 1 cannot be followed: Nobody is there"
    ]


def test_a_lost_connection_costs_a_new_session() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        partitions = []
        for number in range(3):
            leader.write(number, b"a")
            partitions.append(following.follow(number))
        await following.until(lambda: all(each.log_end_offset == 1 for each in partitions))
        leader.hang_up()
        leader.fetches.clear()
        leader.write(1, b"b")
        await following.until(lambda: partitions[1].log_end_offset == 2)
        again = leader.fetches[0][1]
        assert (again.session_id, again.session_epoch) == (0, 0)
        assert [len(topic.partitions) for topic in again.topics] == [3]

    run(scenario)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_a_partition_that_is_refused_pauses_and_the_others_go_on(code: ErrorCode) -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a")
        leader.write(1, b"a")
        leader.errors[0] = code
        refused, other = following.follow(0), following.follow(1)
        for count in range(2, 6):
            leader.write(1, b"b")
            await following.until(partial(_ends_at, other, count))
        await asyncio.sleep(10)
        assert len(leader.asked_for(0)) in range(10, 17)
        assert refused.log_end_offset == 0
        del leader.errors[0]
        assert await following.until(lambda: refused.log_end_offset == 1) < 1.1
        assert following.fetchers.failed_partitions == 0

    run(scenario)


def test_a_fenced_follower_waits_for_the_controllers_word() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a")
        leader.errors[0] = ErrorCode.FENCED_LEADER_EPOCH
        partition = following.follow(0)
        await asyncio.sleep(30)
        assert len(leader.asked_for(0)) == 1
        del leader.errors[0]
        partition.apply(image_of(1, 1))
        following.fetchers.role_changed(partition)
        assert await following.until(lambda: partition.log_end_offset == 1) < 0.05

    run(scenario)


def test_a_partition_that_is_led_here_now_is_not_touched_any_more() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a")
        leader.write(1, b"a")
        partition, other = following.follow(0), following.follow(1)
        await following.until(lambda: partition.log_end_offset == other.log_end_offset == 1)
        await asyncio.sleep(0.1)
        partition.apply(image_of(NODE_ID, 1))
        following.fetchers.role_changed(partition)
        leader.write(0, b"b")  # What the old leader still says does not count.
        leader.write(1, b"b")
        await following.until(lambda: other.log_end_offset == 2)
        await asyncio.sleep(5)
        assert partition.log_end_offset == 1
        assert following.fetchers.followed_count == 1

    run(scenario)


def test_the_connection_to_a_leader_of_nothing_is_closed() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a")
        partition = following.follow(0)
        await following.until(lambda: partition.log_end_offset == 1)
        following.fetchers.removed(partition)
        await asyncio.sleep(0.1)
        assert all(channel.is_closed for channel in leader.channels)
        fetch_count = len(leader.fetches)
        await asyncio.sleep(10)
        assert len(leader.fetches) == fetch_count

    run(scenario)


def test_a_follower_that_was_away_too_long_starts_over_at_the_leaders_start() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        for number in range(10):
            leader.write(0, b"%d" % number)
        partition = following.follow(0)
        await following.until(lambda: partition.log_end_offset == 10)
        following.fetchers.removed(partition)
        for number in range(10, 20):
            leader.write(0, b"%d" % number)
        log = leader.logs[0]
        log.roll(0)
        delete_records_before(log, 20)
        apply_retention(log, 0)
        leader.write(0, b"new")
        following.fetchers.role_changed(partition)
        await following.until(lambda: partition.log_end_offset == 21)
        assert (partition.log_start_offset, partition.high_watermark) == (20, 21)
        assert [record.value for record in read_records(partition.log, 20)] == [b"new"]
        assert following.truncated == [("topic-0", 20)]

    run(scenario)


def test_a_follower_that_has_more_than_its_leader_cuts_it_off() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a")
        partition = following.follow(0)
        await following.until(lambda: partition.log_end_offset == 1)
        following.fetchers.removed(partition)
        append(partition.log, b"never replicated")
        assert partition.log_end_offset == 2
        following.fetchers.role_changed(partition)
        await following.until(lambda: partition.log_end_offset == 1)
        assert following.truncated == [("topic-0", 1)]

    run(scenario)


def test_a_mistake_of_ours_costs_one_partition(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        leader.write(0, b"a")
        leader.write(1, b"a")
        broken, other = follower_of(1, 0), follower_of(1, 1)

        def fail(*_arguments: object, **_options: object) -> int:
            raise ZeroDivisionError

        monkeypatch.setattr(broken.log, "append_as_follower", fail)
        following.fetchers.role_changed(broken)
        following.fetchers.role_changed(other)
        await following.until(lambda: other.log_end_offset == 1)
        await asyncio.sleep(5)
        assert following.fetchers.failed_partitions == 1
        assert following.fetchers.dead_count == 0
        assert len(leader.asked_for(0)) == 1

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert [record.getMessage() for record in caplog.records] == [
        "topic-0 is not replicated any more"
    ]


def test_partitions_are_shared_among_as_many_connections_as_is_set() -> None:
    async def scenario(following: Following) -> None:
        leader = following.leader
        partitions = []
        for number in range(6):
            leader.write(number, b"a")
            partitions.append(following.follow(number))
        await asyncio.sleep(2)
        assert len([each for each in leader.channels if not each.is_closed]) <= 2
        following.options = OPTIONS._replace(fetcher_count=3)
        following.fetchers.settings_changed()
        for number in range(6):
            leader.write(number, b"b")
        await following.until(lambda: all(each.log_end_offset == 2 for each in partitions))
        await asyncio.sleep(2)
        leader.fetches.clear()
        await asyncio.sleep(10)
        rate = len(leader.fetches) / (10 / (OPTIONS.max_wait_ms / 1000))
        assert 2.5 < rate < 3.5
        assert following.fetchers.followed_count == 6

    run(scenario)
