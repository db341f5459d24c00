"""Groups as the administrative calls of the clients show and change them.

Each client has calls of its own here, so there is a test for each instead of a contract for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headwater.base.errors import ErrorCode
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import TIMEOUT_S, Message, require_package
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import Membership
from tests.support.other_clients.groups.polling import PolledMember, wait_shared
from tests.support.other_clients.groups.raw import commit, committed, describe
from tests.support.other_clients.raw import RawConnection

MakeTopic = Callable[..., str]
Join = Callable[..., PolledMember]


@pytest.fixture
def topic(make_topic: MakeTopic, confluent: ConfluentClient) -> str:
    made = make_topic(2)
    confluent.produce(made, [Message(b"%d" % n, partition=n % 2) for n in range(10)])
    return made


@pytest.fixture
def active_group(join: Join, topic: str, group: str) -> str:
    """A group with one member, which has committed an offset."""
    member = join(ConfluentMember, Membership(group, (topic,), instance_id="static"))
    wait_shared([member], [(topic, 0), (topic, 1)])
    member.call(lambda each: each.commit({(topic, 1): 3}))
    return group


@pytest.fixture
def empty_group(connection: RawConnection, topic: str, group: str) -> str:
    """A group that has nothing but a committed offset."""
    name = f"{group}-empty"
    assert commit(connection, name, topic, 4) == 0
    return name


def test_confluent_kafka(
    broker: BrokerUnderTest,
    connection: RawConnection,
    topic: str,
    active_group: str,
    empty_group: str,
) -> None:
    confluent = require_package("confluent_kafka", "confluent-kafka")
    module = require_package("confluent_kafka.admin", "confluent-kafka")
    admin = module.AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    def settle(futures: dict[Any, Any]) -> Any:
        [future] = futures.values()
        return future.result(TIMEOUT_S)

    states = confluent.ConsumerGroupState
    for state, group in ((states.STABLE, active_group), (states.EMPTY, empty_group)):
        listed = admin.list_consumer_groups(states={state}).result(TIMEOUT_S)
        assert listed.errors == []
        found = {each.group_id: each for each in listed.valid}
        assert found[group].state == state
        assert not {active_group, empty_group} - {group} & found.keys()
    described = settle(admin.describe_consumer_groups([active_group]))
    assert (described.state, described.partition_assignor) == (states.STABLE, "range")
    [member] = described.members
    assert (member.group_instance_id, member.client_id) == ("static", "rdkafka")
    assert member.host.strip("/") == "127.0.0.1"
    assigned = {(each.topic, each.partition) for each in member.assignment.topic_partitions}
    assert assigned == {(topic, 0), (topic, 1)}

    request = confluent.ConsumerGroupTopicPartitions(active_group)
    offsets = settle(admin.list_consumer_group_offsets([request])).topic_partitions
    assert [(each.topic, each.partition, each.offset) for each in offsets] == [(topic, 1, 3)]
    position = confluent.TopicPartition(topic, 0, 2)
    change = confluent.ConsumerGroupTopicPartitions(empty_group, [position])
    settle(admin.alter_consumer_group_offsets([change]))
    assert committed(connection, empty_group, topic) == (2, 0)
    with pytest.raises(confluent.KafkaException) as refusal:
        settle(admin.delete_consumer_groups([active_group]))
    assert refusal.value.args[0].code() == ErrorCode.NON_EMPTY_GROUP
    settle(admin.delete_consumer_groups([empty_group]))
    assert committed(connection, empty_group, topic) == (-1, 0)


def test_kafka_python(
    broker: BrokerUnderTest,
    connection: RawConnection,
    topic: str,
    active_group: str,
    empty_group: str,
) -> None:
    kafka = require_package("kafka", "kafka-python")
    module = require_package("kafka.admin", "kafka-python")
    errors = require_package("kafka.errors", "kafka-python")
    admin = module.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        listed = {each["group_id"]: each for each in admin.list_groups()}
        assert listed[active_group]["group_state"] == "Stable"
        assert listed[active_group]["group_type"] == "classic"
        assert listed[empty_group]["group_state"] == "Empty"
        stable = admin.list_groups(states_filter=["Stable"], types_filter=["classic"])
        assert active_group in {each["group_id"] for each in stable}
        assert empty_group not in {each["group_id"] for each in stable}
        described = admin.describe_groups([active_group, empty_group])
        assert described[active_group]["group_state"] == "Stable"
        assert described[active_group]["protocol_data"] == "range"
        [member] = described[active_group]["members"]
        assert member["group_instance_id"] == "static"
        assert described[empty_group]["members"] == []

        offsets = admin.list_group_offsets([active_group, empty_group])
        first, second = (kafka.TopicPartition(topic, number) for number in range(2))
        assert {at: each.offset for at, each in offsets[active_group].items()} == {second: 3}
        assert {at: each.offset for at, each in offsets[empty_group].items()} == {first: 4}
        admin.alter_group_offsets(empty_group, {second: kafka.OffsetAndMetadata(1, "note", -1)})
        offsets = admin.list_group_offsets({empty_group: [second]})
        assert offsets[empty_group][second][:2] == (1, "note")
        [outcome] = admin.delete_group_offsets(active_group, [second]).values()
        assert outcome is errors.for_code(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        [outcome] = admin.delete_group_offsets(empty_group, [second]).values()
        assert outcome is errors.NoError
        assert committed(connection, empty_group, topic, 1) == (-1, 0)
        assert committed(connection, empty_group, topic, 0) == (4, 0)
        assert dict(admin.delete_groups([empty_group]))[empty_group] == "OK"
        assert committed(connection, empty_group, topic, 0) == (-1, 0)
        removed = module.MemberToRemove(group_instance_id="static")
        [outcome] = admin.remove_group_members(active_group, [removed]).values()
        assert outcome is errors.NoError
    finally:
        admin.close()


def test_aiokafka(
    broker: BrokerUnderTest,
    connection: RawConnection,
    topic: str,
    active_group: str,
    empty_group: str,
) -> None:
    aiokafka = require_package("aiokafka", "aiokafka")
    module = require_package("aiokafka.admin", "aiokafka")

    async def run() -> None:
        admin = module.AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            listed = {each[0]: each[1] for each in await admin.list_consumer_groups()}
            assert listed[active_group] == "consumer"
            assert empty_group in listed
            [described] = await admin.describe_consumer_groups([active_group])
            assert described.groups[0][1:4] == (active_group, "Stable", "consumer")
            offsets = await admin.list_consumer_group_offsets(active_group)
            assert {at: each.offset for at, each in offsets.items()} == {
                aiokafka.TopicPartition(topic, 1): 3
            }
        finally:
            await admin.close()

    asyncio.run(run())
    assert describe(connection, empty_group).group_state == "Empty"
