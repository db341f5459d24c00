"""`elect_leaders`: what comes of elections, on real clusters."""

from pathlib import Path

import pytest

from headwater import Admin, AsyncAdmin, NewTopic, TopicPartition, errors
from headwater.client.admin import ElectionType
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.clusters import Cluster


def test_a_partition_whose_leader_leads(cluster: Cluster) -> None:
    topic = cluster.new_name()
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partition_count=2)])
        assert admin.elect_leaders([second, first, first]) == {first: False, second: False}
        assert admin.elect_leaders([first], election_type=ElectionType.UNCLEAN) == {first: False}
        assert admin.elect_leaders() == {}
        assert admin.elect_leaders([]) == {}
        absent = TopicPartition(topic, 9)
        with pytest.raises(errors.UnknownTopicOrPartitionError):
            admin.elect_leaders([first, absent])
        outcomes = admin.elect_leaders([first, absent], raise_errors=False)
        assert outcomes[first] is False
        assert isinstance(outcomes[absent], errors.UnknownTopicOrPartitionError)


def test_the_preferred_leader_leads_again(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3], [2, 3, 1]])
        first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
        await cluster.stop(1)
        await cluster.until(lambda: cluster.leader_of("orders") == 2)
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            with pytest.raises(errors.PreferredLeaderNotAvailableError):
                await admin.elect_leaders([first])
            await cluster.start(1)
            await cluster.until_in_sync("orders")
            assert await admin.elect_leaders() == {first: True}
            assert cluster.leader_of("orders") == 1
            assert await admin.elect_leaders([first, second]) == {first: False, second: False}

    run_cluster_scenario(tmp_path, scenario)
