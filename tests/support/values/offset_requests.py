"""Requests about committed offsets, as handlers get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker

#: Few partitions, so that a broker starts quickly.
COORDINATOR_SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
}

Partition = tuple[str, int]

_TOPIC_IDS_SINCE = 10


async def commit_codes(
    broker: HandlerBroker,
    group_id: str,
    offsets: Mapping[Partition, int],
    *,
    version: int,
    metadata: str | None = None,
    generation: int = -1,
    member_id: str = "",
) -> dict[Partition, int]:
    """Commit offsets, and return the error code of each partition."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, number), offset in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
        if version >= _TOPIC_IDS_SINCE:
            topic.topic_id = broker.context.image.topics[name].topic_id
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=number, committed_offset=offset, committed_metadata=metadata
            )
        )
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=list(topics.values()),
        generation_id_or_member_epoch=generation,
        member_id=member_id,
    )
    response = await broker.ask(request, OffsetCommitResponse, version=version)
    return {
        (name, each.partition_index): each.error_code
        for name, topic in zip(topics, response.topics, strict=True)
        for each in topic.partitions
    }


async def committed_offsets(
    broker: HandlerBroker, group_id: str, *, version: int = 9
) -> dict[Partition, int]:
    """All that a group has committed."""
    if version < 8:
        request = OffsetFetchRequest(group_id=group_id, topics=None)
        single = await broker.ask(request, OffsetFetchResponse, version=version)
        assert single.error_code == 0
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in single.topics
            for each in topic.partitions
        }
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    request = OffsetFetchRequest(groups=[group])
    [answer] = (await broker.ask(request, OffsetFetchResponse, version=version)).groups
    assert answer.error_code == 0
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in answer.topics
        for each in topic.partitions
    }


async def fetch_groups(
    broker: HandlerBroker,
    wanted: Mapping[str, Sequence[Partition]],
    *,
    require_stable: bool = False,
) -> OffsetFetchResponse:
    """Named partitions of several groups, in the last version with topics by name."""
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group_id,
                topics=[
                    OffsetFetchRequestTopics(name=name, partition_indexes=[number])
                    for name, number in partitions
                ],
            )
            for group_id, partitions in wanted.items()
        ],
        require_stable=require_stable,
    )
    return await broker.ask(request, OffsetFetchResponse, version=9)
