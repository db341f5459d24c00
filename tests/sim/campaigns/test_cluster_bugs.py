"""Each promise of a cluster has a bug that breaks it: the campaign must find every one of them.

A checker that finds nothing may be right or may be blind; these tell which.
"""

from collections.abc import Awaitable, Callable
from types import MethodType

import pytest

from headwater.cluster.brokers import failures
from headwater.cluster.image.image import PartitionImage
from headwater.cluster.partitions import elections
from headwater.replication import fetch
from headwater.replication.following import plan as follower_plan
from headwater.replication.following.fetchers import ReplicaFetchers
from headwater.replication.leading.leadership import Leadership
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.partition_read import PartitionRead, read_for_follower
from headwater.replication.waiting import delayed_fetch
from headwater.sim.broker_host import BrokerHost
from headwater.sim.campaigns.cluster import ClusterCampaign
from headwater.sim.campaigns.cluster_trouble import ClusterTrouble, Event
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import ProducerEntry
from headwater.storage.truncation import truncate_to

Plant = Callable[[pytest.MonkeyPatch], None]

#: A bug that this many seeds do not find would stay hidden; each shows in one of a dozen or more.
SEEDS_MAX = 200

#: A producer whose acknowledged batches are gone cannot go on either.
LOST = (
    "nothing acknowledged is lost|never replaced|high watermark never goes back|what was read|"
    "a batch can be written"
)
DIFFERENT = "replicas do not differ|all replicas get in sync|" + LOST


def acknowledge_before_the_isr_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "is_acknowledged", lambda *_arguments, **_named: True)


def truncate_to_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kafka did before there were leader epochs."""

    def begin_at_high_watermark(log: PartitionLog, now_ms: int) -> None:
        if log.log_end_offset > log.high_watermark:
            truncate_to(log, log.high_watermark, now_ms)

    monkeypatch.setattr(follower_plan, "begin_following", begin_at_high_watermark)
    skip_the_epoch_check(monkeypatch)
    have_often(monkeypatch, ClusterTrouble.kill_all)


def skip_the_epoch_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders do not look at which history a follower has."""
    monkeypatch.setattr("headwater.replication.fetch.find_divergence", lambda *_arguments: None)


def elect_in_the_same_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def led_by(partition: PartitionImage, leader: int, isr: tuple[int, ...]) -> PartitionImage:
        return partition._replace(leader=leader, isr=isr)

    for module in (elections, failures):
        monkeypatch.setattr(module, "led_by", led_by)


def trust_whoever_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogDirectories, "may_lack_records", lambda _self, _boot_id: False)
    have_often(monkeypatch, ClusterTrouble.lose_power)


def be_alone_without_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "fsyncs_when_alone", False)
    have_often(monkeypatch, ClusterTrouble.leave_alone)


def commit_what_the_leader_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(self: Leadership) -> None:
        log = self._partition.log
        if log.log_end_offset > log.high_watermark:
            log.raise_high_watermark(log.log_end_offset)
            self._environment.events.on_high_watermark(self._partition)

    monkeypatch.setattr(Leadership, "advance_high_watermark", advance)


def show_all_that_a_follower_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower serves consumers up to its log's end, committed or not."""
    read_partition = fetch.read_partition

    def read_to_the_end(
        partition: Partition,
        target: fetch.FetchTarget,
        max_bytes: int,
        limits: fetch.FetchLimits,
        *,
        min_one_batch: bool,
    ) -> PartitionRead:
        if partition.is_leader:
            return read_partition(partition, target, max_bytes, limits, min_one_batch=min_one_batch)
        log = partition.log
        read = read_for_follower(log, target.fetch_offset, max_bytes, min_one_batch=min_one_batch)
        return read._replace(high_watermark=log.log_end_offset)

    for module in (fetch, delayed_fetch):
        monkeypatch.setattr(module, "read_partition", read_to_the_end)

    def parting(self: ClusterTrouble) -> list[tuple[Event, int]]:
        """What has followers part: one is ahead of another that leads next."""
        return [(self.kill, 1), (self.cut_off_from_one, 1), (self.cut_off_from_brokers, 1)]

    monkeypatch.setattr(ClusterTrouble, "events", parting)


def follow_nobody_new(monkeypatch: pytest.MonkeyPatch) -> None:
    role_changed = ReplicaFetchers.role_changed

    def ignore_later_epochs(self: ReplicaFetchers, partition: Partition) -> None:
        if partition.leader_epoch == 0:
            role_changed(self, partition)

    monkeypatch.setattr(ReplicaFetchers, "role_changed", ignore_later_epochs)


def store_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerEntry, "find_duplicate", lambda _self, _header: None)
    monkeypatch.setattr(ProducerEntry, "continues_with", lambda _self, _sequence: True)


def lose_power_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bug, but more than the durability promise covers."""

    monkeypatch.setattr(ClusterTrouble, "may_lose_power", lambda _self, _host: True)
    have_often(monkeypatch, ClusterTrouble.lose_power)


def have_often(
    monkeypatch: pytest.MonkeyPatch,
    event: Callable[[ClusterTrouble, BrokerHost], Awaitable[None]],
) -> None:
    """More of what makes a bug show: of what happens by itself, few seeds have it."""
    events = ClusterTrouble.events

    def mostly_this(self: ClusterTrouble) -> list[tuple[Event, int]]:
        return [*events(self), (MethodType(event, self), 100)]

    monkeypatch.setattr(ClusterTrouble, "events", mostly_this)


@pytest.mark.parametrize(
    ("plant", "broken", "first_seed"),
    [
        (acknowledge_before_the_isr_has_it, LOST, 0),
        (truncate_to_the_high_watermark, DIFFERENT, 1),
        (skip_the_epoch_check, DIFFERENT, 0),
        (elect_in_the_same_epoch, "an epoch has one leader|" + DIFFERENT, 1),
        (trust_whoever_comes_back, DIFFERENT, 3),
        (be_alone_without_sync, LOST, 1),
        (commit_what_the_leader_has, DIFFERENT, 0),
        (show_all_that_a_follower_has, LOST, 22),
        (follow_nobody_new, "in a healed world", 0),
        (store_repetitions, "stored once", 0),
        (lose_power_anywhere, LOST, 3),
    ],
)
def test_a_planted_bug_is_found(
    plant: Plant, broken: str, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first seed is one that used to find it, to save time."""
    plant(monkeypatch)
    monkeypatch.setattr("headwater.sim.campaigns.cluster.HEALED_TIME_MAX_S", 20.0)
    with pytest.raises(AssertionError, match=broken) as found:
        for seed in range(first_seed, first_seed + SEEDS_MAX):
            ClusterCampaign(seed).run()
    assert str(found.value).startswith("seed ")
