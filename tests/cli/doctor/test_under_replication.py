"""Why replicas are out of sync: each cause is brought about on three brokers, and recognised."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from headwater.cli.doctor.examination import examine_cluster
from headwater.cli.doctor.findings import Finding, Verdict
from headwater.cli.doctor.metrics_check import Reading
from headwater.cli.doctor.replica_progress import ReplicaSizes
from headwater.cli.doctor.under_replication import LateReplicas
from headwater.cli.metrics.page import MetricsPage
from headwater.client.admin import AdminOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo
from headwater.replication.following.log import append_fetched
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.partition_read import read_for_follower
from headwater.sim.campaigns.logs import batch_of
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

SETTINGS = {"replica.lag.time.max.ms": "1000", "min.insync.replicas": "1"}
#: A follower that copies one batch with each fetch takes its time.
SMALL_FETCHES = {3: {"replica.fetch.max.bytes": "1", "replica.fetch.response.max.bytes": "1"}}
NOTE, PROBLEM = Verdict.NOTE, Verdict.PROBLEM
_MANY = 2_000
_NOW_MS = 1_700_000_000_000


def _partition(cluster: BrokerCluster, broker_id: int, topic: str = "orders") -> Partition:
    return cluster.context(broker_id).partitions.get(topic, 0)


def _write(cluster: BrokerCluster, count: int, topic: str = "orders") -> None:
    """Batches that the leader has at once, and followers when they have fetched them."""
    for _ in range(count):
        _partition(cluster, 1, topic).append(batch_of(bytes(100)), acks=1, now_ms=_NOW_MS)


async def _write_for_all(cluster: BrokerCluster, topic: str = "orders") -> None:
    """Much, which all in sync have: who comes with less is behind."""
    _write(cluster, _MANY, topic)
    leading = _partition(cluster, 1, topic)
    await cluster.until(lambda: leading.high_watermark == leading.log_end_offset)


def _copy_one_batch(cluster: BrokerCluster, broker_id: int) -> None:
    """What a follower's fetcher does, which stands still."""
    own, leading = _partition(cluster, broker_id), _partition(cluster, 1)
    read = read_for_follower(leading.log, own.log_end_offset, 1, min_one_batch=True)
    region = read.log_read.region
    assert region is not None
    append_fetched(own.log, region.read(), leading.leader_epoch, _NOW_MS)


async def _sizes(admin: AdminOperations) -> ReplicaSizes:
    return ReplicaSizes.of_directories(await admin.describe_log_dirs())


async def _late(
    cluster: BrokerCluster, admin: AdminOperations, connection: ClusterConnection
) -> LateReplicas:
    await connection.refresh([])
    return LateReplicas(await admin.list_topics(), list(cluster.servers))


def _told(findings: Sequence[Finding], verdict: Verdict) -> str:
    return " ".join(each.sentence for each in findings if each.verdict is verdict)


def test_a_broker_that_is_down_has_all_the_partitions_that_lack_a_replica(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3], [2, 1, 3]])
        await cluster.stop(3)
        await cluster.until(
            lambda: all(3 not in cluster.partition("orders", each).isr for each in (0, 1))
        )
        found = [each async for each in examine_cluster(cluster.bootstrap, [], 10.0)]
        [told] = [each for each in found if each.subject == "replication"]
        assert told.verdict is PROBLEM
        assert told.sentence.startswith(
            "Broker 3 is down: the 2 partitions that lack a replica are its own, so nothing else "
            "is wrong (1 led by broker 1, 1 led by broker 2). Start it"
        )

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_a_follower_that_is_stuck_or_too_slow(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        cluster.context(3).replication.fetchers.removed(_partition(cluster, 3))
        _write(cluster, 5)
        await cluster.until(lambda: cluster.partition("orders").isr == (1, 2))
        async with ClusterConnection(cluster.bootstrap, timeout_s=10.0) as connection:
            admin = AdminOperations(connection)
            late = await _late(cluster, admin, connection)
            before = await _sizes(admin)
            stuck = list(late.diagnose(before, await _sizes(admin), 2.0))
            assert "only broker 3 is behind, with 1 of its 1 replica: " in _told(stuck, NOTE)
            assert _told(stuck, PROBLEM).startswith("Broker 3 is stuck: its replicas of orders-0 ")
            _copy_one_batch(cluster, 3)
            _write(cluster, 2)
            slow = list(late.diagnose(before, await _sizes(admin), 2.0))
            assert _told(slow, PROBLEM).startswith("Broker 3 is too slow: ")
            assert "num.replica.fetchers=2" in _told(slow, PROBLEM)

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_a_broker_that_has_come_back(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        for topic in ("orders", "events"):
            await cluster.create_topic(topic, [[1, 2, 3]])
        await cluster.stop(3)
        await cluster.until(lambda: 3 not in cluster.partition("events").isr)
        await cluster.until(lambda: 3 not in cluster.partition("orders").isr)
        for topic in ("orders", "events"):
            await _write_for_all(cluster, topic)
        await cluster.start(3)
        found = await _while_it_copies(cluster)
        assert "Broker 3 was away and catches up with all that it follows: " in _told(found, NOTE)
        assert _told(found, PROBLEM) == ""

    run_cluster_scenario(tmp_path, scenario, SETTINGS, settings_of=SMALL_FETCHES)


def test_replicas_that_are_new(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        for topic in ("orders", "events"):
            await cluster.create_topic(topic, [[1, 2, 3]])
        await cluster.stop(3)
        await cluster.until(lambda: 3 not in cluster.partition("orders").isr)
        await cluster.until(lambda: 3 not in cluster.partition("events").isr)
        await _write_for_all(cluster)
        # As after a raised factor: of one topic it has nothing, of the other all.
        shutil.rmtree(tmp_path / "broker-3" / "orders-0")
        await cluster.start(3)
        await cluster.until_in_sync("events")
        found = await _while_it_copies(cluster)
        assert "Broker 3 has new replicas, or was given more, and copies orders-0: " in (
            _told(found, NOTE)
        )
        assert _told(found, PROBLEM) == ""

    run_cluster_scenario(tmp_path, scenario, SETTINGS, settings_of=SMALL_FETCHES)


async def _while_it_copies(cluster: BrokerCluster) -> list[Finding]:
    """What is found while broker 3 gets nearer, and before it has all."""
    async with ClusterConnection(cluster.bootstrap, timeout_s=10.0) as connection:
        admin = AdminOperations(connection)
        late = await _late(cluster, admin, connection)
        before = await _sizes(admin)
        start = _partition(cluster, 3).log_end_offset
        await cluster.until(lambda: _partition(cluster, 3).log_end_offset > start)
        return list(late.diagnose(before, await _sizes(admin), 2.0))


def _topic(*partitions: tuple[tuple[int, ...], tuple[int, ...]]) -> TopicInfo:
    """A topic whose partitions have these replicas and ISRs; the first in sync leads."""
    infos = (
        PartitionInfo(number, isr[0], 0, replicas, isr)
        for number, (replicas, isr) in enumerate(partitions)
    )
    return TopicInfo("orders", uuid.UUID(int=1), False, tuple(infos))


def test_the_whole_cluster_is_told_from_one_broker() -> None:
    topic = _topic(((1, 2, 3), (1,)), ((2, 3, 1), (2,)), ((3, 1, 2), (3,)))
    late = LateReplicas([topic], [1, 2, 3])
    first, *each = late.diagnose(ReplicaSizes({}), ReplicaSizes({}), 2.0)
    assert "it is the whole cluster" in first.sentence
    assert len(each) == 3
    healthy = LateReplicas([_topic(((1, 2), (1, 2)))], [1, 2])
    assert list(healthy.diagnose(ReplicaSizes({}), ReplicaSizes({}), 2.0)) == []


def test_the_figure_that_stands_out_is_named() -> None:
    def reading(broker_id: int, disk: float, loop: float, offline: int = 0) -> Reading:
        text = (
            f'headwater_build_info{{node_id="{broker_id}"}} 1\n'
            f"headwater_request_handler_avg_idle_percent {disk}\n"
            f"headwater_network_processor_avg_idle_percent {loop}\n"
            f"headwater_offline_replicas {offline}\n"
        )
        return Reading(MetricsPage(text), 0.0, 0.0)

    late = LateReplicas([_topic(((1, 2, 3), (1, 2)))], [1, 2, 3])

    def told(*readings: Reading) -> str:
        nothing = ReplicaSizes({})
        return _told(list(late.diagnose(nothing, nothing, 2.0, readings)), PROBLEM)

    slow_disk = told(reading(1, 0.9, 0.9), reading(2, 0.8, 0.9), reading(3, 0.05, 0.9))
    assert "The disk threads of broker 3 idle 5% of the time, those of others 80%" in slow_disk
    assert "event loop" not in slow_disk
    assert "The event loop of broker 3" in told(reading(1, 0.9, 0.9), reading(3, 0.9, 0.1))
    everybody = told(reading(1, 0.1, 0.9), reading(3, 0.1, 0.9))
    assert "disk threads" not in everybody
    assert "has 4 replicas on a disk that is offline" in told(reading(3, 0.9, 0.9, 4))
