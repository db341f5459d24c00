"""Asking a leader where its logs start and end, for followers whose logs do not overlap. Sans-io.

A fetch that is out of range says nothing about what is in range. So the follower asks for it, with
the epoch that it knows: an answer from another leader than the one it follows would be misleading.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.replication.following.partition import FollowedPartition
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

#: In place of a timestamp: the end of the log, for a replica that of all records.
LATEST: Final = -1
#: The start of the log.
EARLIEST: Final = -2


class LeaderOffset(NamedTuple):
    """An offset of the leader's log, or why there is none."""

    error_code: int
    offset: int


#: What is assumed of a partition that the leader leaves out of its answer.
NO_OFFSET: Final = LeaderOffset(ErrorCode.UNKNOWN_SERVER_ERROR, -1)


def offsets_request(
    wanted: Iterable[FollowedPartition], which: int, node_id: int
) -> ListOffsetsRequest:
    """Ask for the `EARLIEST` or `LATEST` offset of each partition."""
    topics: dict[str, ListOffsetsTopic] = {}
    for followed in wanted:
        name, number = followed.partition.topic_partition
        topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
            ListOffsetsPartition(
                partition_index=number,
                current_leader_epoch=followed.leader_epoch,
                timestamp=which,
            )
        )
    return ListOffsetsRequest(replica_id=node_id, topics=list(topics.values()))


def read_offsets(response: ListOffsetsResponse) -> dict[TopicPartition, LeaderOffset]:
    return {
        TopicPartition(topic.name, each.partition_index): LeaderOffset(each.error_code, each.offset)
        for topic in response.topics
        for each in topic.partitions
    }
