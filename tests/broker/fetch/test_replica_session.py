"""A follower's session looks at few partitions, and tells and learns the same as one of all."""

from __future__ import annotations

import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.loop_timer import LoopTimer
from headwater.broker.fetch.replica_session import ReplicaSession
from headwater.broker.fetch.session import FetchSession
from headwater.cluster.image.image import BrokerInfo, PartitionImage
from headwater.replication.fetch import (
    Fetched,
    FetchedPartition,
    FetchLimits,
    FetchTarget,
    note_follower,
    read_partitions,
)
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.replication.partition.options import AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, batch_of, open_log
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.sim.virtual_loop import VirtualLoop
from tests.support.models.led_partition import FakeController, HeldThreads
from tests.support.tiers import rounds

TOPIC_ID = uuid.UUID(int=5)
COUNT = 4
LAG_MAX_MS = 10_000
LIMITS = FetchLimits(1_000_000, replica_id=1, replica_epoch=11)


class _Leader:
    """Some partitions with two followers, of which one fetches in a session."""

    def __init__(self, loop: VirtualLoop, *, is_watched: bool) -> None:
        self.clock = ManualClock()
        self.controller = FakeController()
        self.parked = ParkedRequests(LoopTimer(loop))
        environment = PartitionEnvironment(
            0,
            self.parked,
            self.clock,
            HeldThreads().run,
            self.controller,
            BackgroundTasks(),
            brokers={each: BrokerInfo(each, (), None, 10 + each) for each in (0, 1, 2)},
        )
        self.partitions: dict[int, Partition] = {}
        for number in range(COUNT):
            log = open_log(FaultyDisk(number, directories=["/data"]), DIRECTORY)
            self.partitions[number] = Partition(
                TopicPartition("orders", number),
                TOPIC_ID,
                log,
                PartitionImage((0, 1, 2), (0, 1, 2), 0, 0, 0),
                options=PartitionOptions(1, AcksAllFlush.OFF, LAG_MAX_MS),
                environment=environment,
            )
        self._is_watched = is_watched
        self.session: FetchSession | None = None
        self.looked_at = 0

    def get(self, topic: str, partition: int) -> Partition:
        if partition not in self.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "It is gone.")
        return self.partitions[partition]

    def topic_name(self, topic_id: uuid.UUID) -> str:
        return "orders"

    def fetch(self, targets: list[FetchTarget], forgotten: list[int]) -> list[FetchedPartition]:
        """One request of the follower; returns what it is told."""
        if self.session is None:
            self.session = self._begin(targets)
        else:
            self.session.update(targets, [(TOPIC_ID, number) for number in forgotten])
        session = self.session
        clock = None
        if isinstance(session, ReplicaSession):
            session.begin_fetch(self.clock.monotonic_ms())
            clock = session.clock
        wanted = session.targets()
        self.looked_at = len(wanted)
        note_follower(self, wanted, LIMITS, clock)
        fetched: Fetched = read_partitions(self, session.targets(), LIMITS)
        if isinstance(session, ReplicaSession):
            session.watch(fetched.partitions)
        return session.take_note(fetched.partitions)

    def _begin(self, targets: list[FetchTarget]) -> FetchSession:
        if self._is_watched:
            return ReplicaSession(
                7, targets, by_id=True, now_ms=0, replica_id=1, watches=self.parked.watches
            )
        return FetchSession(7, targets, by_id=True, now_ms=0, replica_id=1)

    def other_follower_fetches(self, number: int) -> None:
        partition = self.partitions.get(number)
        if partition is not None and partition.leadership is not None:
            partition.leadership.follower_fetched(2, 12, partition.log_end_offset, 0)

    def change(self, number: int, kind: str) -> None:
        partition = self.partitions.get(number)
        if partition is None:
            return
        image = PartitionImage(
            partition.replicas,
            partition.isr,
            partition.leader,
            partition.leader_epoch,
            partition.partition_epoch + 1,
        )
        if kind == "append":
            if partition.is_leader:
                partition.append(bytearray(batch_of(b"value")), acks=1, now_ms=NOW_MS)
        elif kind == "delete records":
            if partition.is_leader:
                partition.delete_records(-1)
        elif kind == "leave isr":
            partition.apply(image._replace(isr=(0, 2)))
        elif kind == "new epoch":
            partition.apply(image._replace(leader=0, leader_epoch=image.leader_epoch + 1))
        elif kind == "new leader":
            partition.apply(image._replace(leader=2, leader_epoch=image.leader_epoch + 1))
        else:
            del self.partitions[number]
            partition.remove()
            self.parked.on_removed(partition)

    def agree(self) -> None:
        proposals = self.controller.proposals
        proposals[:] = [each for each in proposals if each[0].is_waiting_for(each[1])]
        while proposals:
            self.controller.accept()

    def is_keeping_up(self) -> list[bool | None]:
        """What the leader thinks of the follower, a while from now."""
        answers: list[bool | None] = []
        for partition in self.partitions.values():
            remote = None if partition.leadership is None else partition.leadership.remote(1)
            if remote is None:
                answers.append(None)
            else:
                later_ms = self.clock.monotonic_ms() + 3_000
                answers.append(remote.is_caught_up(partition.log_end_offset, later_ms, LAG_MAX_MS))
        return answers


class _Follower:
    """Names a partition when its position is another than the one it told last."""

    def __init__(self) -> None:
        self.offsets = dict.fromkeys(range(COUNT), 0)
        self.starts = dict.fromkeys(range(COUNT), 0)
        self.epochs = dict.fromkeys(range(COUNT), 0)
        self._told: dict[int, tuple[int, int, int]] = {}
        self._left: set[int] = set()

    def request(self) -> tuple[list[FetchTarget], list[int]]:
        targets = []
        for number in range(COUNT):
            state = (self.offsets[number], self.starts[number], self.epochs[number])
            if number not in self._left and self._told.get(number) != state:
                self._told[number] = state
                targets.append(
                    FetchTarget(
                        *("orders", TOPIC_ID, number, state[0], 1_000_000),
                        current_leader_epoch=state[2],
                        log_start_offset=state[1],
                    )
                )
        forgotten = [number for number in sorted(self._left) if number in self._told]
        for number in forgotten:
            del self._told[number]
        return targets, forgotten

    def leave(self, number: int) -> None:
        """Fetch it no more; or again, if that had been."""
        self._left ^= {number}

    def take(self, news: list[FetchedPartition], takes: bool) -> None:
        for each in news:
            number = each.target.partition
            if each.read is not None and each.partition is not None and takes:
                self.offsets[number] = each.partition.log_end_offset
                self.starts[number] = each.read.log_start_offset


def _told(news: list[FetchedPartition]) -> dict[int, object]:
    return {
        each.target.partition: (
            each.size_bytes,
            None if each.error is None else each.error.code,
            None if each.read is None else (each.read.high_watermark, each.read.log_start_offset),
        )
        for each in news
    }


_kinds = st.sampled_from(
    ["append"] * 4
    + ["fetch"] * 6
    + ["slow fetch", "other", "other", "delete records", "leave isr", "agree", "time", "leave"]
    + ["new epoch", "new leader", "remove"]
)


@settings(max_examples=rounds(150, 3_000), deadline=None)
@given(st.lists(st.tuples(_kinds, st.integers(0, COUNT - 1)), max_size=60))
def test_it_tells_and_learns_what_a_session_does_that_looks_at_everything(
    steps: list[tuple[str, int]],
) -> None:
    loop = VirtualLoop()
    both = [_Leader(loop, is_watched=True), _Leader(loop, is_watched=False)]
    followers = [_Follower(), _Follower()]
    for kind, number in steps:
        if kind in ("fetch", "slow fetch"):
            told = []
            for leader, follower in zip(both, followers, strict=True):
                for each, partition in leader.partitions.items():
                    follower.epochs[each] = partition.leader_epoch
                news = leader.fetch(*follower.request())
                follower.take(news, takes=kind == "fetch")
                told.append(_told(news))
            assert told[0] == told[1]
        for leader, follower in zip(both, followers, strict=True):
            if kind == "other":
                leader.other_follower_fetches(number)
            elif kind == "agree":
                leader.agree()
            elif kind == "time":
                leader.clock.advance(4_000)
            elif kind == "leave":
                follower.leave(number)
            elif kind not in ("fetch", "slow fetch"):
                leader.change(number, kind)
        watched, plain = both
        assert watched.controller.wanted == plain.controller.wanted
        assert [each.high_watermark for each in watched.partitions.values()] == [
            each.high_watermark for each in plain.partitions.values()
        ]
        assert watched.is_keeping_up() == plain.is_keeping_up()
    loop.close()


def test_quiet_partitions_are_not_looked_at() -> None:
    loop = VirtualLoop()
    leader, follower = _Leader(loop, is_watched=True), _Follower()
    for _ in range(3):
        follower.take(leader.fetch(*follower.request()), takes=True)
    leader.fetch(*follower.request())
    assert leader.looked_at == 0
    leader.change(2, "append")
    follower.take(leader.fetch(*follower.request()), takes=True)
    assert leader.looked_at == 1
    assert follower.offsets == {0: 0, 1: 0, 2: 1, 3: 0}
    loop.close()


def test_log_starts_that_retention_moves_are_noticed_after_a_while() -> None:
    loop = VirtualLoop()
    leader, follower = _Leader(loop, is_watched=True), _Follower()
    leader.change(0, "append")
    for _ in range(3):
        follower.take(leader.fetch(*follower.request()), takes=True)
        leader.other_follower_fetches(0)
    partition = leader.partitions[0]
    assert partition.high_watermark == 1
    partition.log.log_start_offset = 1  # As retention does it.
    assert leader.fetch(*follower.request()) == []
    leader.clock.advance(5_000)
    [news] = leader.fetch(*follower.request())
    assert news.read is not None and news.read.log_start_offset == 1
    loop.close()


def test_a_session_that_is_over_watches_nothing() -> None:
    loop = VirtualLoop()
    leader, follower = _Leader(loop, is_watched=True), _Follower()
    leader.fetch(*follower.request())
    assert len(leader.parked.watches) == COUNT
    assert leader.session is not None
    leader.session.close()
    assert len(leader.parked.watches) == 0
    loop.close()
