"""`Admin` and `AsyncAdmin` used alone, on real clusters."""

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headwater import Admin, AsyncAdmin, NewTopic, Producer, TopicPartition, errors
from headwater.base.errors import KafkaError
from headwater.client.admin import (
    AdminOperations,
    CommittedOffset,
    ConfigChange,
    ConfigResource,
    OffsetTime,
    ResourceType,
    require_all,
)
from headwater.testing.broker_process import free_port
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import Cluster
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin, cluster: Cluster) -> str:
    """A topic of two partitions, with five records in the first."""
    name = cluster.new_name()
    require_all(admin.create_topics([NewTopic(name, partition_count=2)]))
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        futures = [producer.send(name, b"%d" % number, partition=0) for number in range(5)]
    assert [future.result().offset for future in futures] == list(range(5))
    return name


def operation_names() -> list[str]:
    members = inspect.getmembers(AdminOperations, inspect.iscoroutinefunction)
    return [name for name, _ in members if not name.startswith("_")]


@pytest.mark.parametrize("name", operation_names())
def test_every_operation_is_there_for_threads(name: str) -> None:
    waiting, original = getattr(Admin, name), getattr(AsyncAdmin, name)
    assert not inspect.iscoroutinefunction(inspect.unwrap(waiting, stop=lambda f: f is waiting))
    assert inspect.signature(waiting) == inspect.signature(original)
    assert waiting.__doc__ == original.__doc__


def test_topics_come_grow_and_go(admin: Admin, cluster: Cluster) -> None:
    name = cluster.new_name()
    created = require_all(admin.create_topics([NewTopic(name, partition_count=2)]))[name]
    assert created.partition_count == 2
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics([NewTopic(name)])
    require_all(admin.create_partitions({name: 3}))
    # Apache Kafka's broker hears of changes a moment after its controller has made them.
    eventually(lambda: len(require_all(admin.describe_topics([name]))[name].partitions) == 3)
    assert name in {topic.name for topic in admin.list_topics()}
    require_all(admin.delete_topics([name]))
    eventually(lambda: isinstance(admin.describe_topics([name])[name], KafkaError))
    gone = admin.describe_topics([name])[name]
    assert isinstance(gone, errors.UnknownTopicOrPartitionError)
    assert str(gone) == f"There is no topic {name!r}."


def test_settings_are_changed_and_told(admin: Admin, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    require_all(admin.alter_configs({resource: [ConfigChange("retention.ms", "1234")]}))
    entries = require_all(admin.describe_configs([resource], names=["retention.ms"]))[resource]
    assert [(entry.name, entry.value) for entry in entries] == [("retention.ms", "1234")]
    assert resource in admin.list_config_resources([ResourceType.TOPIC])
    with pytest.raises(errors.InvalidConfigError):
        admin.alter_configs({resource: [ConfigChange("retention.ms", "soon")]})


def test_offsets_are_found_and_records_deleted(admin: Admin, topic: str) -> None:
    first = TopicPartition(topic, 0)
    found = require_all(admin.list_offsets({first: OffsetTime.LATEST}))
    assert found[first].offset == 5
    assert require_all(admin.delete_records({first: 3})) == {first: 3}
    found = require_all(admin.list_offsets({first: OffsetTime.EARLIEST}))
    assert found[first].offset == 3
    with pytest.raises(errors.OffsetOutOfRangeError):
        admin.delete_records({first: 99})


def test_the_cluster_tells_of_itself(admin: Admin, cluster: Cluster) -> None:
    description = admin.describe_cluster()
    assert [node.broker_id for node in description.brokers] == [cluster.broker_id]
    assert admin.describe_features().finalized["group.version"] == 1
    assert admin.api_versions()[18].lowest == 0


def test_replicas_move_between_directories(admin: Admin, cluster: Cluster, topic: str) -> None:
    first = TopicPartition(topic, 0)
    described = require_all(admin.describe_log_dirs([cluster.broker_id], [first]))
    directories = described[cluster.broker_id]
    assert len(directories) == 2
    [here] = [directory.path for directory in directories if first in directory.replicas]
    [other] = [directory.path for directory in directories if directory.path != here]
    require_all(admin.alter_replica_log_dirs(cluster.broker_id, {first: other}))
    with pytest.raises(errors.LogDirNotFoundError):
        admin.alter_replica_log_dirs(cluster.broker_id, {first: "/nowhere"})


def test_groups_and_their_offsets(admin: Admin, cluster: Cluster, topic: str) -> None:
    group, first = cluster.new_name("group"), TopicPartition(topic, 0)
    require_all(admin.alter_group_offsets(group, {first: CommittedOffset(4)}))
    assert group in {listing.group_id for listing in admin.list_groups()}
    assert require_all(admin.describe_groups([group]))[group].state == "Empty"
    committed = require_all(admin.list_group_offsets([group]))[group]
    assert committed[first].offset == 4
    with pytest.raises(errors.UnknownMemberIdError):
        admin.remove_members(group, member_ids=["nobody"])
    require_all(admin.delete_group_offsets(group, [first]))
    assert require_all(admin.list_group_offsets([group]))[group] == {}
    admin.alter_group_offsets(group, {first: CommittedOffset(4)})
    require_all(admin.delete_groups([group]))
    assert isinstance(admin.describe_groups([group])[group], errors.GroupIdNotFoundError)


def test_producers_are_fenced_and_transactions_told(
    admin: Admin, cluster: Cluster, topic: str
) -> None:
    name, first = cluster.new_name("transactional"), TopicPartition(topic, 0)
    before = require_all(admin.fence_producers([name]))[name]
    after = require_all(admin.fence_producers([name]))[name]
    assert (after.producer_id, after.producer_epoch) > (before.producer_id, before.producer_epoch)
    assert name in {listing.transactional_id for listing in admin.list_transactions()}
    described = require_all(admin.describe_transactions([name]))[name]
    assert (described.state, described.producer_epoch) == ("Empty", after.producer_epoch)
    unknown = admin.describe_transactions(["nobody's"])["nobody's"]
    assert isinstance(unknown, errors.TransactionalIdNotFoundError)
    [producer] = require_all(admin.describe_producers([first]))[first]
    assert (producer.producer_epoch, producer.last_sequence) == (0, 4)
    assert admin.find_hanging([first], now_ms=0) == []


def test_many_threads_share_one_admin(admin: Admin, cluster: Cluster) -> None:
    names = [cluster.new_name() for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: require_all(admin.create_topics([NewTopic(name)])), names))
    # Kafka's brokers hear of new topics a moment after whoever made them.
    eventually(lambda: set(names) <= {topic.name for topic in admin.list_topics()})
    require_all(admin.delete_topics(names))


@run_async
async def test_on_asyncio_it_needs_no_thread(cluster: Cluster) -> None:
    config = {"bootstrap.servers": cluster.bootstrap}
    async with AsyncAdmin(config, client_id="test") as admin:
        description = await admin.describe_cluster()
    assert len(description.brokers) == 1


def test_after_the_end_it_says_so(cluster: Cluster) -> None:
    admin = Admin({"bootstrap.servers": cluster.bootstrap})
    admin.close()
    admin.close()
    with pytest.raises(errors.ClientClosedError):
        admin.list_topics()


def test_a_cluster_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(errors.BrokerNotAvailableError, match="Cannot connect to"):
        Admin(bootstrap_servers=f"127.0.0.1:{free_port()}")


def test_an_unknown_setting_is_told_before_anything_is_tried() -> None:
    with pytest.raises(KafkaError, match="did you mean bootstrap_servers"):
        Admin(bootstrap_server="127.0.0.1:1")  # type: ignore[call-arg]
