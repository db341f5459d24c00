"""Replicas that are being added: a raised factor, and moves that wait, as the doctor tells them."""

from __future__ import annotations

import uuid
from pathlib import Path

from headwater.base.ids import TopicPartition
from headwater.cli.doctor.examination import examine_cluster
from headwater.cli.doctor.findings import Finding, Verdict
from headwater.cli.doctor.moving_replicas import MovingReplicas
from headwater.cli.doctor.replica_progress import ReplicaSizes
from headwater.client.admin import AdminOperations, PartitionReassignment
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo
from headwater.sim.campaigns.logs import batch_of
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

SETTINGS = {"replica.lag.time.max.ms": "1000", "min.insync.replicas": "1"}
NAME = TopicPartition("orders", 0)
NOTE, PROBLEM = Verdict.NOTE, Verdict.PROBLEM
_COUNT = 200
_NOW_MS = 1_700_000_000_000


async def _raise_factor(cluster: BrokerCluster, throttle_bytes: int) -> None:
    """From two replicas to three, of a partition that is longer than a throttled fetch."""
    await cluster.create_topic("orders", [[1, 2]])
    leading = cluster.context(1).partitions.get("orders", 0)
    for _ in range(_COUNT):
        leading.append(batch_of(bytes(100)), acks=1, now_ms=_NOW_MS)
    # Who has what is committed is in sync, so there must be something.
    await cluster.until(lambda: leading.high_watermark == leading.log_end_offset)
    async with ClusterConnection(cluster.bootstrap, timeout_s=10.0) as connection:
        await AdminOperations(connection).alter_partition_reassignments(
            {NAME: [1, 2, 3]}, throttle_bytes=throttle_bytes
        )
    # Whichever broker is asked.
    brokers = [cluster.context(each) for each in cluster.servers]
    await cluster.until(
        lambda: all(each.image.topics["orders"].partitions[0].is_moving for each in brokers)
    )


async def _found(cluster: BrokerCluster) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    async for each in examine_cluster(cluster.bootstrap, [], 10.0):
        found.setdefault(each.subject, []).append(each)
    return found


def test_a_raised_factor_lacks_nothing_while_its_new_replica_copies(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await _raise_factor(cluster, 100)
        found = await _found(cluster)
        [told] = found["moves"]
        assert told.verdict is NOTE
        assert told.sentence.startswith("Broker 3 gets new replicas, of orders-0: ")
        assert "its throttle is 100 bytes/s" in told.sentence
        assert "replication" not in found
        [partitions] = found["partitions"]
        assert partitions.verdict is Verdict.GOOD

    fetches = {3: {"replica.fetch.max.bytes": "1", "replica.fetch.response.max.bytes": "1"}}
    run_cluster_scenario(tmp_path, scenario, SETTINGS, settings_of=fetches)


def test_a_move_to_a_broker_that_is_gone(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await _raise_factor(cluster, 100)
        await cluster.stop(3)
        await cluster.until(lambda: 3 not in cluster.image.brokers)
        [told] = (await _found(cluster))["moves"]
        assert told.verdict is PROBLEM
        assert told.sentence.startswith("Broker 3 is to get orders-0, and is not there: ")
        assert "`headwater reassign cancel`" in told.sentence

    fetches = {3: {"replica.fetch.max.bytes": "1", "replica.fetch.response.max.bytes": "1"}}
    run_cluster_scenario(tmp_path, scenario, SETTINGS, settings_of=fetches)


def _told(before: tuple[int, int], after: tuple[int, int], throttle_bytes: int = 0) -> Finding:
    """Of sizes at the leader, broker 1, and at the new replica, broker 3, two seconds apart."""
    partition = PartitionInfo(0, 1, 0, (1, 2, 3), (1, 2))
    topic = TopicInfo("orders", uuid.UUID(int=1), False, (partition,))
    moves = {NAME: PartitionReassignment((1, 2, 3), (3,), (), throttle_bytes)}
    first, second = (ReplicaSizes({1: {NAME: led}, 3: {NAME: own}}) for led, own in (before, after))
    [finding] = MovingReplicas(moves, [topic], [1, 2, 3]).diagnose(first, second, 2.0)
    return finding


def test_one_that_gets_nearer_is_no_trouble() -> None:
    told = _told((1_000, 0), (1_000, 200))
    assert told.verdict is NOTE
    assert "800 bytes are left, about 8 s." in told.sentence
    assert "in sync in a moment" in _told((1_000, 0), (1_000, 1_000)).sentence


def test_one_that_stands_still_is_and_so_is_one_that_comes_no_nearer() -> None:
    still = _told((1_000, 10), (1_000, 10))
    assert still.verdict is PROBLEM
    assert "1 replica did not grow within 2.0 s, with 990 bytes left" in still.sentence
    far = _told((1_000, 10), (2_000, 20))
    assert far.verdict is PROBLEM
    assert "comes no nearer" in far.sentence
    assert _told((1_000, 10), (1_000, 10), throttle_bytes=5).verdict is NOTE


def test_what_was_cancelled_and_what_is_in_sync_is_not_waited_for() -> None:
    partition = PartitionInfo(0, 1, 0, (1, 2, 3), (1, 2))
    in_sync = PartitionInfo(1, 1, 0, (1, 2, 3), (1, 2, 3))
    topic = TopicInfo("orders", uuid.UUID(int=1), False, (partition, in_sync))
    moves = {
        NAME: PartitionReassignment((1, 2, 3), (3,), (3,)),
        TopicPartition("orders", 1): PartitionReassignment((1, 2, 3), (3,), (2,)),
    }
    moving = MovingReplicas(moves, [topic], [1, 2, 3])
    assert not moving.may_grow
    assert list(moving.diagnose(ReplicaSizes({}), ReplicaSizes({}), 2.0)) == []
