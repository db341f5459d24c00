"""How admin operations on several things end, against brokers that answer as they are told."""

import inspect
import pickle
import random
from typing import get_args

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import AdminOperations, NewTopic, OffsetTime, require_all
from headwater.client.admin.outcomes import raised_or_returned
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import DeadlineError, SeveralFailedError, UnknownTopicError
from headwater.client.kafka_errors import TopicAlreadyExistsError
from headwater.net.peer_channel import UnsupportedVersionError
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from headwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.async_tests import run_async
from tests.support.fakes.peers.brokers import Call, Disconnect, FakeBrokers


def connection_to(cluster: FakeBrokers, timeout_s: float = 10.0) -> ClusterConnection:
    return ClusterConnection(
        cluster.bootstrap,
        timeout_s=timeout_s,
        policy=RetryPolicy(backoff_ms=1, backoff_max_ms=5),
        generator=random.Random(1),
    )


@run_async
async def test_each_topic_has_its_own_outcome_and_only_what_may_pass_is_repeated() -> None:
    async with FakeBrokers(broker_count=2) as cluster:

        def create(call: Call) -> CreateTopicsResponse:
            """Broker 0 is not the controller any more, but learns that only when it is asked."""
            cluster.controller_id = 1
            codes = {"good": 0, "bad": 36}
            if call.broker_id == 0:
                codes = {"good": 41, "bad": 36}
            return CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name=topic.name, error_code=codes[topic.name])
                    for topic in call.request.topics
                ]
            )

        cluster.script(ApiKey.CREATE_TOPICS, create)
        async with connection_to(cluster) as connection:
            outcomes = await AdminOperations(connection).create_topics(
                [NewTopic("good"), NewTopic("bad")], raise_errors=False
            )
        error = outcomes["bad"]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert not isinstance(outcomes["good"], KafkaError)
        asked = [
            (call.broker_id, [topic.name for topic in call.request.topics])
            for call in cluster.calls
            if call.api_key is ApiKey.CREATE_TOPICS
        ]
        assert asked == [(0, ["good", "bad"]), (1, ["good"])]
        with pytest.raises(KafkaError, match="Topic 'bad'"):
            require_all(outcomes)


@run_async
async def test_what_never_passes_ends_as_a_deadline_for_those_it_concerns() -> None:
    async with FakeBrokers() as cluster:
        cluster.script(
            ApiKey.CREATE_TOPICS,
            lambda call: CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(
                        name=topic.name,
                        error_code=0 if topic.name == "good" else 89,
                        error_message=None if topic.name == "good" else "Too fast",
                    )
                    for topic in call.request.topics
                ]
            ),
        )
        async with connection_to(cluster, timeout_s=1.0) as connection:
            outcomes = await AdminOperations(connection).create_topics(
                [NewTopic("good"), NewTopic("slow")], raise_errors=False
            )
        assert not isinstance(outcomes["good"], KafkaError)
        assert isinstance(outcomes["slow"], DeadlineError)
        expected = "Creating topics did not succeed within 1 s: Too fast."
        assert str(outcomes["slow"]) == expected
        with pytest.raises(DeadlineError) as raised:
            raised_or_returned(outcomes, True)
        assert "This is about slow." in raised.value.__notes__


@run_async
async def test_an_answer_that_leaves_something_out() -> None:
    async with FakeBrokers() as cluster:
        cluster.script(ApiKey.CREATE_TOPICS, lambda call: CreateTopicsResponse())
        async with connection_to(cluster) as connection:
            with pytest.raises(KafkaError, match="left out orders, which was asked for"):
                await AdminOperations(connection).create_topics([NewTopic("orders")])


@run_async
async def test_what_changes_something_raises_all_that_failed() -> None:
    async with FakeBrokers() as cluster:
        codes = {"good": 0, "old": 36, "odd": 17}
        cluster.script(
            ApiKey.CREATE_TOPICS,
            lambda call: CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name=topic.name, error_code=codes[topic.name])
                    for topic in call.request.topics
                ]
            ),
        )
        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            with pytest.raises(TopicAlreadyExistsError, match="Topic 'old'"):
                await admin.create_topics([NewTopic("good"), NewTopic("old")])
            with pytest.raises(SeveralFailedError) as raised:
                await admin.create_topics([NewTopic(name) for name in codes])
    error = raised.value
    assert error.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert str(error).startswith("2 of 3 failed. old: Topic 'old': ")
    assert "odd: Topic 'odd': " in str(error)
    assert list(error.outcomes) == ["good", "old", "odd"]
    assert not isinstance(error.outcomes["good"], KafkaError)
    assert isinstance(error.outcomes["odd"], KafkaError)
    # It may cross to another process.
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.code) == (str(error), error.code)


def test_of_many_failures_the_first_are_told() -> None:
    failures = {f"t{number}": KafkaError("Wrong.") for number in range(50)}
    assert str(SeveralFailedError.of(failures)).endswith("t9: Wrong. and 40 more.")


#: What changes something, and so raises; the rest only asks.
CHANGING = {
    "create_topics",
    "delete_topics",
    "create_partitions",
    "elect_leaders",
    "alter_partition_reassignments",
    "throttle_partition_reassignments",
    "alter_configs",
    "delete_records",
    "cancel_delayed",
    "reschedule_delayed",
    "deliver_delayed_now",
    "alter_replica_log_dirs",
    "delete_groups",
    "remove_members",
    "alter_group_offsets",
    "delete_group_offsets",
    "fence_producers",
    "end_transactions",
    "take_over_transactions",
}
ASKING = {
    "describe_topics",
    "describe_configs",
    "list_offsets",
    "describe_delayed",
    "delayed_stats",
    "describe_log_dirs",
    "describe_groups",
    "list_group_offsets",
    "describe_producers",
    "describe_transactions",
}


def test_every_operation_with_outcomes_either_asks_or_raises() -> None:
    with_outcomes = {
        name
        for name, method in inspect.getmembers(AdminOperations, inspect.isfunction)
        if not name.startswith("_")
        and KafkaError in _parts_of(inspect.get_annotations(method, eval_str=True)["return"])
    }
    assert with_outcomes == CHANGING | ASKING
    for name in with_outcomes:
        parameter = inspect.signature(getattr(AdminOperations, name)).parameters.get("raise_errors")
        assert (parameter is not None and parameter.default) == (name in CHANGING), name


def _parts_of(annotation: object) -> set[object]:
    """The types that a type is made of, one level below its arguments."""
    return {part for argument in get_args(annotation) for part in (argument, *get_args(argument))}


@run_async
async def test_nothing_asked_is_nothing_sent() -> None:
    async with FakeBrokers() as cluster, connection_to(cluster) as connection:
        assert await AdminOperations(connection).create_topics([]) == {}
        assert await AdminOperations(connection).list_offsets({}) == {}
        assert {call.api_key for call in cluster.calls} == {ApiKey.API_VERSIONS, ApiKey.METADATA}


def listed(call: Call, error_code: int = 0) -> ListOffsetsResponse:
    """Offset 10 times the partition for each partition that is asked for."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=error_code,
                        offset=-1 if error_code else 10 * partition.partition_index,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in call.request.topics
        ]
    )


@run_async
async def test_partitions_are_asked_for_at_their_leaders_which_may_move() -> None:
    async with FakeBrokers(broker_count=3) as cluster:
        cluster.topics["orders"] = [0, 1, 2, 0]

        def answer(call: Call) -> ListOffsetsResponse | Disconnect:
            if call.broker_id == 1:
                cluster.topics["orders"][1] = 2
                return listed(call, error_code=6)
            if call.broker_id == 0 and cluster.topics["orders"][0] == 0:
                cluster.topics["orders"][0] = cluster.topics["orders"][3] = 2
                return Disconnect()
            return listed(call)

        cluster.script(ApiKey.LIST_OFFSETS, answer)
        wanted = {TopicPartition("orders", number): OffsetTime.LATEST for number in range(4)}
        async with connection_to(cluster) as connection:
            outcomes = require_all(await AdminOperations(connection).list_offsets(dict(wanted)))
        assert [found.offset for found in outcomes.values()] == [0, 10, 20, 30]
        asked = [
            (call.broker_id, len(call.request.topics[0].partitions))
            for call in cluster.calls
            if call.api_key is ApiKey.LIST_OFFSETS
        ]
        assert sorted(asked[:3]) == [(0, 2), (1, 1), (2, 1)]
        assert asked[3:] == [(2, 3)]


@run_async
async def test_what_does_not_exist_is_told_at_once_beside_what_does() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0]
        cluster.script(ApiKey.LIST_OFFSETS, listed)
        present = TopicPartition("orders", 0)
        missing = [TopicPartition("orders", 1), TopicPartition("absent", 0)]
        async with connection_to(cluster) as connection:
            outcomes = await AdminOperations(connection).list_offsets(
                dict.fromkeys([present, *missing], -1)
            )
        assert not isinstance(outcomes[present], KafkaError)
        assert all(isinstance(outcomes[key], UnknownTopicError) for key in missing)
        assert len(cluster.requests(ApiKey.LIST_OFFSETS)) == 1
        # One look when connecting, one for the leaders, and no waiting for what is not there.
        assert len(cluster.requests(ApiKey.METADATA)) == 2


@run_async
async def test_a_partition_without_a_leader_is_waited_for() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [-1]
        cluster.script(ApiKey.LIST_OFFSETS, listed)
        key = TopicPartition("orders", 0)
        async with connection_to(cluster, timeout_s=1.0) as connection:
            outcomes = await AdminOperations(connection).list_offsets({key: -1})
            assert "orders-0 has no leader." in str(outcomes[key])
            cluster.topics["orders"] = [0]
            assert not isinstance(
                (await AdminOperations(connection).list_offsets({key: -1}))[key], KafkaError
            )


@run_async
async def test_a_topic_with_many_partitions_comes_in_pages() -> None:
    async with FakeBrokers() as cluster:
        pages: dict[int, tuple[list[int], int | None]] = {
            0: ([0, 1], 2),
            2: ([2, 3], 4),
            4: ([4], None),
        }

        def describe(call: Call) -> DescribeTopicPartitionsResponse:
            cursor = call.request.cursor
            numbers, following = pages[0 if cursor is None else cursor.partition_index]
            return DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(
                        name="orders",
                        partitions=[
                            DescribeTopicPartitionsResponsePartition(
                                partition_index=number,
                                replica_nodes=[0],
                                eligible_leader_replicas=[7] if number == 4 else None,
                            )
                            for number in numbers
                        ],
                    )
                ],
                next_cursor=None
                if following is None
                else Cursor(topic_name="orders", partition_index=following),
            )

        cluster.script(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe)
        async with connection_to(cluster) as connection:
            topic = require_all(await AdminOperations(connection).describe_topics(["orders"]))[
                "orders"
            ]
        assert [partition.partition for partition in topic.partitions] == [0, 1, 2, 3, 4]
        assert topic.partitions[4].eligible_leaders == (7,)
        assert topic.partitions[0].eligible_leaders == ()


@run_async
async def test_an_older_broker_describes_from_its_metadata() -> None:
    async with FakeBrokers() as cluster:
        del cluster.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS]
        del cluster.versions[ApiKey.DESCRIBE_CLUSTER]
        del cluster.versions[ApiKey.DESCRIBE_PRODUCERS]
        cluster.topics["orders"] = [0, 0]
        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            outcomes = await admin.describe_topics(["orders", "absent"])
            topic = outcomes["orders"]
            assert not isinstance(topic, KafkaError)
            assert len(topic.partitions) == 2
            assert isinstance(outcomes["absent"], UnknownTopicError)
            assert (await admin.describe_cluster()).cluster_id == "scripted"
            [refused] = (await admin.describe_producers([TopicPartition("orders", 0)])).values()
            assert isinstance(refused, UnsupportedVersionError)
