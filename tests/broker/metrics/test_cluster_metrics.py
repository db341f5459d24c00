"""What a cluster's brokers show while one of them is away, read by Prometheus' own parser."""

from pathlib import Path

from headwater import AsyncAdmin, TopicPartition
from headwater.broker.metrics.controller_metrics import controller_metrics
from headwater.broker.metrics.replication_metrics import replication_metrics
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.handler_broker import BASE_TIMESTAMP
from tests.support.metric_figures import figure, read

SHRINKING = {"replica.lag.time.max.ms": "500"}


def figures_of(
    cluster: BrokerCluster, broker_id: int
) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    context = cluster.context(broker_id)
    return read([*replication_metrics(context), *controller_metrics(context)])


def value(cluster: BrokerCluster, broker_id: int, name: str) -> float:
    return figure(figures_of(cluster, broker_id), f"headwater_{name}")


def total(cluster: BrokerCluster, name: str) -> float:
    return sum(value(cluster, broker_id, name) for broker_id in cluster.servers)


def test_replicas_leaders_and_who_is_away(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        await cluster.create_topic("alone", [[3]])
        await cluster.until_in_sync("orders")
        assert [value(cluster, each, "partitions") for each in (1, 2, 3)] == [3, 3, 4]
        assert [value(cluster, each, "leaders") for each in (1, 2, 3)] == [1, 1, 2]
        assert total(cluster, "under_replicated_partitions") == 0
        # A partition cannot lose its only replica, and more than it has cannot be wanted of it.
        assert [value(cluster, each, "at_min_isr_partitions") for each in (1, 2, 3)] == [0, 0, 1]
        assert total(cluster, "under_min_isr_partitions") == 0
        assert total(cluster, "active_controller_count") == 1
        assert total(cluster, "global_partitions") == 4
        await cluster.stop(3)
        await cluster.until(
            lambda: total(cluster, "offline_partitions") == 1 and total(cluster, "leaders") == 3
        )
        await cluster.until(lambda: total(cluster, "under_replicated_partitions") == 3)
        assert total(cluster, "at_min_isr_partitions") == 3
        assert total(cluster, "under_min_isr_partitions") == 0
        assert total(cluster, "active_controller_count") == 1
        assert total(cluster, "active_brokers") == 2
        # Two of the four are led by another than their first replica, or by nobody.
        assert total(cluster, "preferred_replica_imbalance_count") == 2
        assert total(cluster, "offline_replicas") == 0
        epochs = {value(cluster, each, "controller_epoch") for each in cluster.servers}
        assert len(epochs) == 1

    run_cluster_scenario(tmp_path, scenario)


def test_bytes_and_changes_of_the_isr_are_counted_where_they_happen(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2]])
        await cluster.until_in_sync("orders")
        batch = encode_batch([Record(0, BASE_TIMESTAMP, b"k", b"v" * 100)])
        leader = cluster.context(1).partitions.get("orders", 0)
        leader.append(bytearray(batch), acks=1, now_ms=BASE_TIMESTAMP)
        await cluster.until(
            lambda: cluster.context(2).partitions.get("orders", 0).high_watermark == 1
        )
        assert value(cluster, 2, "replication_bytes_in_total") == len(batch)
        assert value(cluster, 1, "replication_bytes_out_total") == len(batch)
        assert value(cluster, 1, "replication_bytes_in_total") == 0
        assert (leader.bytes_in, leader.bytes_out) == (len(batch), 0), "these are the clients'"
        assert total(cluster, "replica_max_lag") == 0
        # A follower that does not fetch any more, and begins again.
        await cluster.context(2).replication.fetchers.close()
        leader.append(bytearray(batch), acks=1, now_ms=BASE_TIMESTAMP)
        await cluster.until(lambda: cluster.partition("orders").isr == (1,))
        await cluster.until(lambda: value(cluster, 1, "isr_shrinks_total") == 1)
        assert value(cluster, 1, "under_replicated_partitions") == 1
        assert value(cluster, 2, "under_replicated_partitions") == 0, "the leader counts"
        await cluster.stop(2)
        await cluster.start(2)
        await cluster.until_in_sync("orders")
        await cluster.until(lambda: value(cluster, 1, "isr_expands_total") >= 1)
        assert total(cluster, "isr_updates_failed_total") == 0
        assert total(cluster, "failed_replica_partitions") == 0
        assert total(cluster, "dead_replica_fetchers") == 0

    run_cluster_scenario(tmp_path, scenario, SHRINKING)


def test_elections_are_counted_by_the_controller(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        controller_id = cluster.controller_id
        victim, other = cluster.others(controller_id)
        await cluster.create_topic("orders", [[victim, other]])
        await cluster.until_in_sync("orders")
        before = value(cluster, controller_id, "leader_elections_total")
        await cluster.stop(victim)
        await cluster.until(lambda: cluster.leader_of("orders") == other)
        assert value(cluster, controller_id, "leader_elections_total") > before
        assert value(cluster, controller_id, "leader_election_seconds_total") > 0
        assert value(cluster, other, "leader_elections_total") == 0
        assert total(cluster, "unclean_leader_elections_total") == 0

    run_cluster_scenario(tmp_path, scenario)


def test_a_partition_that_moves_does_not_count_as_lacking_replicas(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        # Broker 2 is known, for it holds something, and not there.
        await cluster.create_topic("held", [[2]])
        await cluster.create_topic("orders", [[1]])
        await cluster.stop(2)
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 1]})
        await cluster.until(lambda: total(cluster, "reassigning_partitions") == 1)
        assert total(cluster, "under_replicated_partitions") == 0

    run_cluster_scenario(tmp_path, scenario)
