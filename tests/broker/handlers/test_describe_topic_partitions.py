"""DescribeTopicPartitions: a limited number of partitions at a time, and a cursor to go on from."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode
from headwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.tiers import rounds

Shape = list[tuple[str | None, list[int]]]


async def ask(
    broker: HandlerBroker, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return await broker.ask(request, DescribeTopicPartitionsResponse)


def shape(answer: DescribeTopicPartitionsResponse) -> Shape:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]


def next_place(answer: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = answer.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def create(broker: HandlerBroker) -> None:
    await broker.create_topic("c")
    await broker.create_topic("a", partitions=3)
    await broker.create_topic("b", partitions=2)


def test_all_topics_come_sorted_with_their_partitions(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await create(broker)
        await broker.create_topic("__consumer_offsets")
        answer = await ask(broker)
        assert shape(answer) == [
            ("__consumer_offsets", [0]),
            ("a", [0, 1, 2]),
            ("b", [0, 1]),
            ("c", [0]),
        ]
        assert next_place(answer) is None
        assert [topic.is_internal for topic in answer.topics] == [True, False, False, False]
        topic = answer.topics[1]
        assert topic.topic_id == broker.context.image.topics["a"].topic_id
        assert topic.topic_authorized_operations == 3576
        partition = topic.partitions[2]
        assert (partition.leader_id, partition.leader_epoch) == (0, 0)
        assert (partition.replica_nodes, partition.isr_nodes) == ([0], [0])
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
        assert partition.offline_replicas == []

    run_with_broker(tmp_path, scenario)


def test_named_topics_and_what_is_wrong_with_names(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await create(broker)
        answer = await ask(broker, "c", "missing", "a", "no name", "a")
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("a", ErrorCode.NONE),
            ("c", ErrorCode.NONE),
            ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("no name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        assert next_place(answer) is None

    run_with_broker(tmp_path, scenario)


def test_the_limit_cuts_and_the_cursor_goes_on(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await create(broker)
        cut = await ask(broker, limit=2)
        assert (shape(cut), next_place(cut)) == ([("a", [0, 1])], ("a", 2))
        rest = await ask(broker, limit=2, cursor=("a", 2))
        assert (shape(rest), next_place(rest)) == ([("a", [2]), ("b", [0])], ("b", 1))
        exact = await ask(broker, limit=3)
        assert (shape(exact), next_place(exact)) == ([("a", [0, 1, 2])], ("b", 0))
        least = await ask(broker, limit=0)
        assert (shape(least), next_place(least)) == ([("a", [0])], ("a", 1))

    run_with_broker(tmp_path, scenario)


def test_the_broker_has_a_limit_of_its_own(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await create(broker)
        answer = await ask(broker)
        assert (shape(answer), next_place(answer)) == ([("a", [0, 1, 2]), ("b", [0])], ("b", 1))

    run_with_broker(tmp_path, scenario, {"max.request.partition.size.limit": "4"})


def test_cursors_that_point_nowhere(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await create(broker)
        # Behind the last partition, or at a topic that is gone: go on with what follows.
        assert shape(await ask(broker, "a", "b", cursor=("a", 9))) == [("a", []), ("b", [0, 1])]
        assert shape(await ask(broker, cursor=("aa", 1))) == [("b", [0, 1]), ("c", [0])]
        assert shape(await ask(broker, cursor=("z", 0))) == []
        for cursor in (("a", -1), ("aa", 1), ("z", 0)):
            answer = await ask(broker, "a", "b", cursor=cursor)
            assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST] * 2

    run_with_broker(tmp_path, scenario)


@settings(max_examples=rounds(5, 50), deadline=None)
@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5), limit=st.integers(1, 7))
def test_any_limit_leads_to_all_partitions(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for number, size in enumerate(sizes):
            await broker.create_topic(f"topic-{number}", partitions=size)
        found: list[tuple[str | None, int]] = []
        cursor: tuple[str, int] | None = None
        for _ in range(sum(sizes) + 1):
            answer = await ask(broker, limit=limit, cursor=cursor)
            page = [(name, number) for name, numbers in shape(answer) for number in numbers]
            assert len(page) <= limit
            found += page
            cursor = next_place(answer)
            if cursor is None:
                break
            assert len(page) == limit
        assert found == [(f"topic-{n}", p) for n, size in enumerate(sizes) for p in range(size)]

    run_with_broker(tmp_path_factory.mktemp("broker"), scenario)
