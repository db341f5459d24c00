"""Requests of some kilobytes that name one thing thousands of times, each worth a large answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from headwater.testing.broker_process import wait_until
from headwater.wire.api_keys import ApiKey, response_class
from headwater.wire.codec import decode
from headwater.wire.frames import read_response_header
from headwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from headwater.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headwater.wire.messages.sync_group import SyncGroupRequest
from headwater.wire.schema import Message
from tests.support.brokers.hostile_broker import MEBIBYTE, TOPIC, attacked_broker
from tests.support.other_clients.raw import RawConnection

#: How often each name comes. With the metadata below, that would be half a gigabyte of answer.
REPEATED = 1_000
METADATA = bytes(MEBIBYTE // 2)
COMMITTED_METADATA = "m" * 4_000
#: What one answer may have, framing and all.
ANSWER_BYTES_MAX = 2 * len(METADATA)
GROUP, MEMBER_GROUP, TRANSACTIONAL_ID = "classic", "members", "writer"


def test_who_names_a_thing_again_and_again_is_told_once(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with (
        attacked_broker(tmp_path, settings=settings) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        _make_state(connection)
        groups = [GROUP] * REPEATED
        named = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0] * REPEATED)
        everything = [
            OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
            for topics in [[named], None] * 40
        ]
        once = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0] * REPEATED)
        partitions = [TopicRequest(name=TOPIC, partition_indexes=[0] * REPEATED)] * 3
        ids = [TRANSACTIONAL_ID] * REPEATED
        members = [MEMBER_GROUP] * REPEATED

        [group] = _told(connection, DescribeGroupsRequest(groups=groups), 5).groups
        assert [each.member_metadata for each in group.members] == [METADATA]
        described = _told(connection, ConsumerGroupDescribeRequest(group_ids=members), 0)
        assert [len(group.members) for group in described.groups] == [1]
        fetched = _told(connection, OffsetFetchRequest(groups=everything), 8)
        assert _metadata(fetched.groups[0].topics) == [COMMITTED_METADATA]
        assert len(fetched.groups) == 1
        fetched = _told(connection, OffsetFetchRequest(group_id=GROUP, topics=[once] * 10), 7)
        assert _metadata(fetched.topics) == [COMMITTED_METADATA]
        found = _told(connection, DescribeProducersRequest(topics=partitions), 0)
        assert [len(topic.partitions) for topic in found.topics] == [1]
        states = _told(connection, DescribeTransactionsRequest(transactional_ids=ids), 0)
        assert [each.error_code for each in states.transaction_states] == [0]


def _make_state(connection: RawConnection) -> None:
    """A group with much metadata and an offset, one of the newer protocol, a transactional id."""

    def is_answered(message: Message, version: int) -> bool:
        return bool(connection.ask(message, version).error_code == 0)

    for key, key_type in ((GROUP, 0), (MEMBER_GROUP, 0), (TRANSACTIONAL_ID, 1)):
        find = FindCoordinatorRequest(key=key, key_type=key_type)
        wait_until(partial(is_answered, find, 2), "there is a coordinator")
    commit = OffsetCommitRequest(
        group_id=GROUP,
        topics=[
            OffsetCommitRequestTopic(
                name=TOPIC,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0,
                        committed_offset=0,
                        committed_metadata=COMMITTED_METADATA,
                    )
                ],
            )
        ],
    )

    def is_committed() -> bool:
        [topic] = connection.ask(commit, 8).topics
        return bool(topic.partitions[0].error_code == 0)

    wait_until(is_committed, "the offset is committed")
    join = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
    )
    joined = connection.ask(join, 3)
    # Metadata is told of a group that is stable: who leads it says who gets what.
    sync = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[],
    )
    assert connection.ask(sync, 3).error_code == 0
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=MEMBER_GROUP,
        member_id="anna",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    wait_until(lambda: is_answered(heartbeat, 1), "the other member has joined")
    producer = InitProducerIdRequest(
        transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=9_000
    )
    wait_until(lambda: is_answered(producer, 2), "the id has a producer")


def _told(connection: RawConnection, message: Message, version: int) -> Any:
    """The answer, which is no larger than one may be."""
    connection.send(message, version)
    frame = connection.receive_frame()
    assert len(frame) < ANSWER_BYTES_MAX, type(message).__name__
    _, position = read_response_header(frame, message.API_KEY, version)
    answer, _ = decode(response_class(ApiKey(message.API_KEY)), frame, version, position)
    return answer


def _metadata(topics: Sequence[Any]) -> list[str]:
    """Of all committed offsets, in their order."""
    return [each.metadata for topic in topics for each in topic.partitions]
