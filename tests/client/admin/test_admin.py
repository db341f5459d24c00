"""Every admin operation against real brokers."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import (
    AdminOperations,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetTime,
    Outcomes,
    ResourceType,
    require_all,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownTopicError
from headwater.client.producer.async_producer import AsyncProducer
from headwater.net.peer_channel import UnsupportedVersionError
from headwater.wire.api_keys import ApiKey
from tests.support.brokers.clusters import Cluster
from tests.support.kafka.node import require_confluent_kafka

#: Not so old that it would be deleted for its age.
BASE_MS = int(time.time() * 1000) - 60_000

Scenario = Callable[[AdminOperations], Awaitable[None]]


def run(cluster: Cluster, scenario: Scenario) -> None:
    async def connected() -> None:
        async with ClusterConnection(cluster.bootstrap) as connection:
            await scenario(AdminOperations(connection))

    asyncio.run(connected())


async def create(admin: AdminOperations, topic: NewTopic) -> str:
    """Create a topic and wait until every broker has heard of it."""
    require_all(await admin.create_topics([topic]))
    async with asyncio.timeout(20):
        while isinstance(
            (await admin.describe_topics([topic.name]))[topic.name], UnknownTopicError
        ):
            await asyncio.sleep(0.01)
    return topic.name


async def produce(cluster: Cluster, topic: str, *timestamps_ms: int, partition: int = 0) -> None:
    """A record in a batch of its own for each timestamp."""
    async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for timestamp_ms in timestamps_ms:
            await producer.send_and_wait(
                topic, b"value", partition=partition, timestamp_ms=timestamp_ms
            )


def code_of(outcomes: Outcomes[str, object], name: str) -> ErrorCode:
    error = outcomes[name]
    assert isinstance(error, KafkaError)
    return error.code


def test_topics_are_created_listed_described_and_deleted(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        names = [cluster.new_name("made") for _ in range(3)]
        counted = NewTopic(names[0], 3, 1, configs={"retention.ms": "12345"})
        assigned = NewTopic(names[1], assignments={0: [cluster.broker_id], 1: [cluster.broker_id]})
        outcomes = require_all(await admin.create_topics([counted, assigned, NewTopic(names[2])]))
        assert [outcome.partition_count for outcome in outcomes.values()] == [3, 2, 1]
        assert {outcome.replication_factor for outcome in outcomes.values()} == {1}
        for topic in (counted, assigned):
            await wait_for(admin, topic.name)
        described = require_all(await admin.describe_topics(names[:2]))
        assert described[names[0]].topic_id == outcomes[names[0]].topic_id
        assert [p.partition for p in described[names[0]].partitions] == [0, 1, 2]
        for partition in described[names[1]].partitions:
            assert partition.leader_id == cluster.broker_id
            assert partition.replicas == partition.isr == (cluster.broker_id,)
        listed = {topic.name: topic for topic in await admin.list_topics()}
        assert len(listed[names[0]].partitions) == 3
        require_all(await admin.delete_topics(names))
        gone = await admin.delete_topics(names[:1], raise_errors=False)
        assert isinstance(gone[names[0]], UnknownTopicError)

    async def wait_for(admin: AdminOperations, name: str) -> None:
        async with asyncio.timeout(20):
            while isinstance((await admin.describe_topics([name]))[name], KafkaError):
                await asyncio.sleep(0.01)

    run(cluster, scenario)


def test_topics_that_cannot_be_created(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        existing = await create(admin, NewTopic(cluster.new_name()))
        good = cluster.new_name()
        too_many, misconfigured = cluster.new_name(), cluster.new_name()
        topics = [
            NewTopic(existing),
            NewTopic("bad name"),
            NewTopic(too_many, replication_factor=7),
            NewTopic(misconfigured, configs={"retention.ms": "soon"}),
            NewTopic(good),
        ]
        outcomes = await admin.create_topics(topics, validate_only=True, raise_errors=False)
        assert code_of(dict(outcomes), existing) is ErrorCode.TOPIC_ALREADY_EXISTS
        assert code_of(dict(outcomes), "bad name") is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert code_of(dict(outcomes), too_many) is ErrorCode.INVALID_REPLICATION_FACTOR
        assert code_of(dict(outcomes), misconfigured) is ErrorCode.INVALID_CONFIG
        assert not isinstance(outcomes[good], KafkaError)
        # It was only asked whether it would work.
        absent = await admin.describe_topics([good])
        assert str(absent[good]) == f"There is no topic {good!r}."

    run(cluster, scenario)


def test_partitions_are_added_and_never_removed(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        name = await create(admin, NewTopic(cluster.new_name(), 1, 1))
        require_all(await admin.create_partitions({name: 2}))
        require_all(
            await admin.create_partitions({name: 3}, assignments={name: [[cluster.broker_id]]})
        )
        fewer = await admin.create_partitions({name: 1, "absent": 2}, raise_errors=False)
        assert code_of(dict(fewer), name) is ErrorCode.INVALID_PARTITIONS
        assert isinstance(fewer["absent"], UnknownTopicError)
        async with asyncio.timeout(20):
            while len(require_all(await admin.describe_topics([name]))[name].partitions) != 3:
                await asyncio.sleep(0.01)

    run(cluster, scenario)


def test_settings_are_described_and_changed(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        name = await create(
            admin, NewTopic(cluster.new_name(), configs={"cleanup.policy": "compact"})
        )
        topic = ConfigResource(ResourceType.TOPIC, name)

        async def entries() -> dict[str, ConfigEntry]:
            [found] = require_all(await admin.describe_configs([topic])).values()
            return {entry.name: entry for entry in found}

        before = await entries()
        assert before["cleanup.policy"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        assert before["segment.ms"].source is ConfigSource.DEFAULT_CONFIG
        assert before["cleanup.policy"].synonyms[-1].name == "log.cleanup.policy"
        changes = [
            ConfigChange("retention.ms", "777"),
            ConfigChange("cleanup.policy", "delete", ConfigOperation.APPEND),
        ]
        require_all(await admin.alter_configs({topic: changes}, validate_only=True))
        assert (await entries())["cleanup.policy"].value == "compact"
        require_all(await admin.alter_configs({topic: changes}))
        async with asyncio.timeout(20):
            while (await entries())["retention.ms"].value != "777":
                await asyncio.sleep(0.01)
        assert (await entries())["cleanup.policy"].value == "compact,delete"
        require_all(
            await admin.alter_configs(
                {topic: [ConfigChange("retention.ms", None, ConfigOperation.DELETE)]}
            )
        )
        async with asyncio.timeout(20):
            while (await entries())["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG:
                await asyncio.sleep(0.01)
        [named] = require_all(
            await admin.describe_configs([topic], names=["segment.ms"], with_documentation=True)
        ).values()
        assert [entry.name for entry in named] == ["segment.ms"]
        assert named[0].documentation
        absent = ConfigResource(ResourceType.TOPIC, "absent")
        outcomes = await admin.alter_configs(
            {topic: [ConfigChange("retention.ms", "soon")], absent: changes}, raise_errors=False
        )
        assert code_of({"topic": outcomes[topic]}, "topic") is ErrorCode.INVALID_CONFIG
        assert str(outcomes[absent]) == "There is no topic 'absent'."

    run(cluster, scenario)


def test_settings_of_brokers_and_of_their_loggers(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        broker = ConfigResource(ResourceType.BROKER, str(cluster.broker_id))
        everyone = ConfigResource(ResourceType.BROKER, "")
        loggers = ConfigResource(ResourceType.BROKER_LOGGER, str(cluster.broker_id))
        name = "log.cleaner.threads"
        require_all(
            await admin.alter_configs(
                {everyone: [ConfigChange(name, "2")], broker: [ConfigChange(name, "1")]}
            )
        )

        async def value(resource: ConfigResource) -> tuple[str | None, ConfigSource] | None:
            [entries] = require_all(await admin.describe_configs([resource])).values()
            found = [entry for entry in entries if entry.name == name]
            return (found[0].value, found[0].source) if found else None

        async with asyncio.timeout(20):
            while await value(everyone) != ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG):
                await asyncio.sleep(0.01)
            while await value(broker) != ("1", ConfigSource.DYNAMIC_BROKER_CONFIG):
                await asyncio.sleep(0.01)
        outcomes = await admin.describe_configs([broker, everyone, loggers])
        assert len(require_all(outcomes)) == 3
        assert require_all(outcomes)[loggers]
        delete = ConfigChange(name, None, ConfigOperation.DELETE)
        require_all(await admin.alter_configs({everyone: [delete], broker: [delete]}))

    run(cluster, scenario)


def test_offsets_by_time(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        name = await create(admin, NewTopic(cluster.new_name(), 2, 1))
        first, second = TopicPartition(name, 0), TopicPartition(name, 1)
        base_ms = BASE_MS
        await produce(cluster, name, base_ms, base_ms + 50, base_ms + 20)
        expected = {
            OffsetTime.EARLIEST: 0,
            OffsetTime.LATEST: 3,
            OffsetTime.MAX_TIMESTAMP: 1,
            base_ms + 1: 1,
            base_ms + 51: -1,
        }
        for moment, offset in expected.items():
            listed = require_all(await admin.list_offsets({first: moment, second: moment}))
            assert listed[first].offset == offset, moment
            empty = 0 if moment in (OffsetTime.EARLIEST, OffsetTime.LATEST) else -1
            assert listed[second].offset == empty, moment
        listed = require_all(await admin.list_offsets({first: OffsetTime.MAX_TIMESTAMP}))
        assert listed[first].timestamp_ms == base_ms + 50

    run(cluster, scenario)


def test_records_are_deleted(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        name = await create(admin, NewTopic(cluster.new_name(), 2, 1))
        first, second = TopicPartition(name, 0), TopicPartition(name, 1)
        await produce(cluster, name, BASE_MS, BASE_MS, BASE_MS)
        outcomes = await admin.delete_records({first: 2, second: 5}, raise_errors=False)
        assert outcomes[first] == 2
        error = outcomes[second]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert require_all(await admin.delete_records({first: -1})) == {first: 3}
        listed = require_all(await admin.list_offsets({first: OffsetTime.EARLIEST}))
        assert listed[first].offset == 3

    run(cluster, scenario)


def test_the_cluster_and_its_versions(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        description = await admin.describe_cluster()
        assert [broker.broker_id for broker in description.brokers] == [cluster.broker_id]
        assert str(description.brokers[0].address) == cluster.bootstrap
        assert description.cluster_id
        versions = await admin.api_versions(cluster.broker_id)
        assert versions[ApiKey.FETCH].highest >= 12
        assert versions == await admin.api_versions()

    run(cluster, scenario)


def test_log_directories_and_moving_between_them(cluster: Cluster) -> None:
    async def scenario(admin: AdminOperations) -> None:
        name = await create(admin, NewTopic(cluster.new_name(), 1, 1))
        key = TopicPartition(name, 0)
        await produce(cluster, name, BASE_MS, BASE_MS, BASE_MS)

        async def current_directories() -> tuple[list[str], list[str]]:
            """Where the replica is, and where it is not, or not yet."""
            [found] = require_all(await admin.describe_log_dirs([cluster.broker_id])).values()
            assert all(each.error_code == 0 for each in found)
            assert all(each.total_bytes > each.usable_bytes > 0 for each in found)
            current = [
                each.path
                for each in found
                if key in each.replicas and not each.replicas[key].is_future
            ]
            return current, [each.path for each in found if each.path not in current]

        _, [target] = await current_directories()
        require_all(await admin.alter_replica_log_dirs(cluster.broker_id, {key: target}))
        async with asyncio.timeout(20):
            while (await current_directories())[0] != [target]:
                await asyncio.sleep(0.02)
        await produce(cluster, name, BASE_MS)
        listed = require_all(await admin.list_offsets({key: OffsetTime.LATEST}))
        assert listed[key].offset == 4
        refused = await admin.alter_replica_log_dirs(
            cluster.broker_id, {key: "/no/such/place"}, raise_errors=False
        )
        assert code_of({"key": refused[key]}, "key") is ErrorCode.LOG_DIR_NOT_FOUND
        [partial] = require_all(await admin.describe_log_dirs(partitions=[key])).values()
        assert {replica for each in partial for replica in each.replicas} == {key}

    run(cluster, scenario)


def test_producers_where_the_broker_can_tell(cluster: Cluster) -> None:
    confluent = require_confluent_kafka()

    async def scenario(admin: AdminOperations) -> None:
        name = await create(admin, NewTopic(cluster.new_name(), 1, 1))
        key = TopicPartition(name, 0)
        if ApiKey.DESCRIBE_PRODUCERS not in await admin.api_versions():
            [refused] = (await admin.describe_producers([key])).values()
            assert isinstance(refused, UnsupportedVersionError)
            return
        assert require_all(await admin.describe_producers([key])) == {key: []}
        theirs = confluent.Producer(
            {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True}
        )
        for number in range(3):
            theirs.produce(name, b"%d" % number)
        assert theirs.flush(30) == 0
        [producers] = require_all(await admin.describe_producers([key])).values()
        assert [producer.last_sequence for producer in producers] == [2]

    run(cluster, scenario)
