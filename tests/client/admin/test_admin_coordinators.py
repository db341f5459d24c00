"""Groups and transactions as an administrator sees them, on real brokers with real members."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import AdminOperations, CommittedOffset, NewTopic, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import DeadlineError, UnknownGroupError
from headwater.client.kafka_errors import UnknownTopicOrPartitionError
from tests.support.brokers.clusters import Cluster
from tests.support.kafka.node import require_confluent_kafka
from tests.support.other_clients.group_members import group_member

Scenario = Callable[[AdminOperations], Awaitable[None]]


def run(cluster: Cluster, scenario: Scenario, timeout_s: float = 30.0) -> None:
    async def connected() -> None:
        async with ClusterConnection(cluster.bootstrap, timeout_s=timeout_s) as connection:
            await scenario(AdminOperations(connection))

    asyncio.run(connected())


def new_topic(cluster: Cluster) -> str:
    name = cluster.new_name()

    async def create(admin: AdminOperations) -> None:
        require_all(await admin.create_topics([NewTopic(name, 2)]))
        async with asyncio.timeout(20):
            while isinstance((await admin.describe_topics([name]))[name], KafkaError):
                await asyncio.sleep(0.01)

    run(cluster, create)
    return name


def test_the_life_of_a_groups_offsets(cluster: Cluster) -> None:
    topic, group = new_topic(cluster), cluster.new_name("group")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def scenario(admin: AdminOperations) -> None:
        assert require_all(await admin.list_group_offsets([group])) == {group: {}}
        unknown = await admin.describe_groups([group])
        assert isinstance(unknown[group], UnknownGroupError)
        wanted = {first: CommittedOffset(7, -1, "here"), second: CommittedOffset(0)}
        require_all(await admin.alter_group_offsets(group, wanted))
        committed = require_all(await admin.list_group_offsets([group]))[group]
        assert committed == wanted
        named = await admin.list_group_offsets([group], partitions=[second])
        assert require_all(named)[group] == {second: CommittedOffset(0)}
        absent = TopicPartition("absent", 0)
        with pytest.raises(UnknownTopicOrPartitionError, match="absent-0"):
            await admin.alter_group_offsets(group, {absent: CommittedOffset(1)})
        require_all(await admin.delete_group_offsets(group, [first]))
        assert require_all(await admin.list_group_offsets([group]))[group].keys() == {second}
        [listed] = [it for it in await admin.list_groups() if it.group_id == group]
        assert (listed.kind.lower(), listed.state) == ("classic", "Empty")
        require_all(await admin.delete_groups([group]))
        assert require_all(await admin.list_group_offsets([group])) == {group: {}}

    run(cluster, scenario)


def test_members_are_removed(cluster: Cluster) -> None:
    topic, group = new_topic(cluster), cluster.new_name("group")

    async def scenario(admin: AdminOperations) -> None:
        described = require_all(await admin.describe_groups([group]))[group]
        [member] = described.members
        assert member.subscribed_topics == (topic,)
        assert len(member.assignment) == 2
        outcomes = await admin.remove_members(
            group, group_instance_ids=["static", "nobody"], raise_errors=False
        )
        assert outcomes["static"] is None
        error = outcomes["nobody"]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.UNKNOWN_MEMBER_ID

    with group_member(cluster.bootstrap, group, topic, group_instance_id="static"):
        run(cluster, scenario)


def test_offsets_in_an_open_transaction_are_awaited_if_they_shall_be_stable(
    cluster: Cluster,
) -> None:
    confluent = require_confluent_kafka()
    topic, group = new_topic(cluster), cluster.new_name("group")
    key = TopicPartition(topic, 0)

    async def commit_before(admin: AdminOperations) -> None:
        require_all(await admin.alter_group_offsets(group, {key: CommittedOffset(3)}))

    producer = confluent.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": cluster.new_name("transactional"),
        }
    )
    run(cluster, commit_before)
    producer.init_transactions(30)
    producer.begin_transaction()
    with group_member(cluster.bootstrap, group, topic) as consumer:
        place = confluent.TopicPartition(topic, 0, 5)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), 30)

    async def while_open(admin: AdminOperations) -> None:
        committed = require_all(await admin.list_group_offsets([group]))
        assert committed[group][key].offset == 3
        stable = await admin.list_group_offsets([group], require_stable=True)
        error = stable[group]
        assert isinstance(error, DeadlineError)
        assert "A transaction on these offsets is not finished yet." in str(error)

    async def when_committed(admin: AdminOperations) -> None:
        committed = require_all(await admin.list_group_offsets([group], require_stable=True))
        assert committed[group][key].offset == 5

    run(cluster, while_open, timeout_s=1.0)
    producer.commit_transaction(30)
    run(cluster, when_committed)
