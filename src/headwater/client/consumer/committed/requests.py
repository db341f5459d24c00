"""Requests for the committed offsets of a group, in all versions, and what their answers say.

The latest versions name topics by their ids, so that an offset of a topic that was deleted and made
again is not taken for one of the new topic. Where an id is not known, an older version is used.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode
from headwater.base.ids import ZERO_TOPIC_ID, TopicPartition
from headwater.client.assignors.consumer_protocol import by_topic
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

#: The last version of either request that names topics.
NAMES_VERSION_MAX: Final = 9

_NOTHING_COMMITTED: Final = -1


class TopicIds(NamedTuple):
    """The ids of a request's topics, as far as they are known, and the names behind them."""

    ids: Mapping[str, uuid.UUID]

    @classmethod
    def of(cls, topics: Iterable[str], metadata: ClusterMetadata) -> TopicIds:
        known = ((name, metadata.topic(name)) for name in topics)
        return cls({name: topic.topic_id if topic else ZERO_TOPIC_ID for name, topic in known})

    @property
    def version_max(self) -> int | None:
        return NAMES_VERSION_MAX if ZERO_TOPIC_ID in self.ids.values() else None

    def name(self, name: str, topic_id: uuid.UUID) -> str | None:
        """Which topic of the request an answer is about."""
        if name:
            return name
        return next((known for known, its_id in self.ids.items() if its_id == topic_id), None)


def commit_request(
    identity: GroupIdentity, offsets: Mapping[TopicPartition, OffsetAndMetadata], topics: TopicIds
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topics.ids[name],
                partitions=[
                    _commit_entry(number, offsets[TopicPartition(name, number)])
                    for number in numbers
                ],
            )
            for name, numbers in by_topic(offsets).items()
        ],
    )


def _commit_entry(number: int, committed: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
    )


def commit_outcomes(
    answer: OffsetCommitResponse, topics: TopicIds
) -> dict[TopicPartition, ErrorCode]:
    """What became of each partition's offset."""
    return {
        TopicPartition(name, partition.partition_index): ErrorCode.from_wire(partition.error_code)
        for topic in answer.topics
        if (name := topics.name(topic.name, topic.topic_id)) is not None
        for partition in topic.partitions
    }


def fetch_request(
    group_id: str, partitions: Iterable[TopicPartition], topics: TopicIds
) -> OffsetFetchRequest:
    """Offsets of transactions that are still open make the coordinator answer with an error."""
    wanted = by_topic(partitions)
    return OffsetFetchRequest(
        # Versions before 8 have one group, the later ones a list.
        group_id=group_id,
        topics=[
            OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
            for name, numbers in wanted.items()
        ],
        groups=[
            OffsetFetchRequestGroup(
                group_id=group_id,
                topics=[
                    OffsetFetchRequestTopics(
                        name=name, topic_id=topics.ids[name], partition_indexes=numbers
                    )
                    for name, numbers in wanted.items()
                ],
            )
        ],
        require_stable=True,
    )


class FetchedOffsets(NamedTuple):
    """An answer: the error of the whole, those of partitions, and what is committed."""

    error_code: ErrorCode
    errors: dict[TopicPartition, ErrorCode]
    offsets: dict[TopicPartition, OffsetAndMetadata | None]


def fetch_outcome(answer: OffsetFetchResponse, topics: TopicIds) -> FetchedOffsets:
    group = answer.groups[0] if answer.groups else None
    outcome = FetchedOffsets(
        ErrorCode.from_wire(answer.error_code if group is None else group.error_code), {}, {}
    )
    for topic_partition, error_code, committed in _fetched(answer, topics):
        if error_code:
            outcome.errors[topic_partition] = ErrorCode.from_wire(error_code)
        elif committed.offset == _NOTHING_COMMITTED:
            outcome.offsets[topic_partition] = None
        else:
            outcome.offsets[topic_partition] = committed
    return outcome


def _fetched(
    answer: OffsetFetchResponse, topics: TopicIds
) -> Iterator[tuple[TopicPartition, int, OffsetAndMetadata]]:
    for old_topic in answer.topics:
        for old in old_topic.partitions:
            yield (
                TopicPartition(old_topic.name, old.partition_index),
                old.error_code,
                OffsetAndMetadata(
                    old.committed_offset, old.metadata or "", old.committed_leader_epoch
                ),
            )
    for group in answer.groups:
        for topic in group.topics:
            name = topics.name(topic.name, topic.topic_id)
            for each in topic.partitions if name is not None else ():
                yield (
                    TopicPartition(name or "", each.partition_index),
                    each.error_code,
                    OffsetAndMetadata(
                        each.committed_offset, each.metadata or "", each.committed_leader_epoch
                    ),
                )
