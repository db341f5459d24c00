"""Committed offsets as simulated clients ask for them and write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.histories.group_history import GroupHistory, Offsets
from headwater.sim.histories.history import PropertyViolated
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
    OffsetFetchResponse,
)

_GROUPS_SINCE = 8


async def fetch_committed(
    link: BrokerLink, groups: GroupHistory, group_id: str, partitions: Sequence[TopicPartition]
) -> Offsets:
    """Where the group is, once no transaction can change it any more; 0 where nothing was."""
    version = link.random.choice((9, 8, 7))
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    single = [
        OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic.items()
    ]
    grouped = [
        OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic.items()
    ]
    request = OffsetFetchRequest(
        group_id=group_id,
        topics=single,
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=grouped)],
        require_stable=True,
    )
    known = groups.known(group_id)
    answer = await link.insist(request, OffsetFetchResponse, _errors, version=version)
    for code in _errors(answer):
        if code != ErrorCode.NONE:
            error = ErrorCode.from_wire(code)
            raise PropertyViolated(f"committed offsets can be read, and not {error.name}")
    topics = answer.groups[0].topics if version >= _GROUPS_SINCE else answer.topics
    found = {
        TopicPartition(topic.name, each.partition_index): max(each.committed_offset, 0)
        for topic in topics
        for each in topic.partitions
    }
    if sorted(found) != sorted(partitions):
        raise PropertyViolated(f"an answer is about what was asked: {sorted(found)} came")
    groups.observe(group_id, known, found)
    return found


def _errors(answer: OffsetFetchResponse) -> list[int]:
    codes = [answer.error_code]
    for group in answer.groups:
        codes.append(group.error_code)
        codes += [each.error_code for topic in group.topics for each in topic.partitions]
    return codes + [each.error_code for topic in answer.topics for each in topic.partitions]


def commit_request(
    group_id: str,
    generation: int,
    member_id: str,
    instance_id: str | None,
    offsets: Mapping[TopicPartition, int],
) -> OffsetCommitRequest:
    """What a member of the group sends to commit offsets."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, number), offset in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=list(topics.values()),
    )
