"""Requests about offsets to one leader, for many of its partitions, and their answers.

Sans-io: ListOffsets finds an offset by time, OffsetForLeaderEpoch tells where a leader's log of an
epoch ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.fetch.isolation import IsolationLevel
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headwater.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


class FoundOffset(NamedTuple):
    """What a leader answered for one partition."""

    topic_partition: TopicPartition
    error_code: int
    offset: int
    leader_epoch: int


class PositionQuestion:
    """A question about the positions of several partitions, while it is under way."""

    def __init__(self, states: Iterable[PartitionState]) -> None:
        self._asked = [(state, _question_of(state)) for state in states]
        for state, _ in self._asked:
            state.is_under_way = True

    def abandoned(self) -> Iterator[PartitionState]:
        """No answer came."""
        for state, _ in self._asked:
            state.is_under_way = False
            yield state

    def outcomes(
        self, found: Iterable[FoundOffset]
    ) -> Iterator[tuple[PartitionState, FoundOffset | None]]:
        """What came of each partition, None if nothing did.

        Who wants something else by now is left out: it is asked about that next.
        """
        by_partition = {outcome.topic_partition: outcome for outcome in found}
        for state, question in self._asked:
            state.is_under_way = False
            if question == _question_of(state):
                yield state, by_partition.get(state.topic_partition)


def _question_of(state: PartitionState) -> tuple[object, ...]:
    return state.step, state.reset, state.offset


def list_offsets_request(
    states: Iterable[PartitionState],
    timestamps: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel,
    timeout_ms: int,
) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=state.topic_partition.partition,
                        current_leader_epoch=state.current_leader_epoch,
                        timestamp=timestamps[state.topic_partition],
                    )
                    for state in group
                ],
            )
            for topic, group in _by_topic(states)
        ],
        timeout_ms=timeout_ms,
    )


def listed_offsets(response: ListOffsetsResponse) -> Iterator[FoundOffset]:
    for topic in response.topics:
        for found in topic.partitions:
            topic_partition = TopicPartition(topic.name, found.partition_index)
            yield FoundOffset(topic_partition, found.error_code, found.offset, found.leader_epoch)


def epoch_end_request(states: Iterable[PartitionState]) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=state.topic_partition.partition,
                        current_leader_epoch=state.current_leader_epoch,
                        leader_epoch=state.offset_epoch,
                    )
                    for state in group
                ],
            )
            for topic, group in _by_topic(states)
        ],
    )


def epoch_ends(response: OffsetForLeaderEpochResponse) -> Iterator[FoundOffset]:
    for topic in response.topics:
        for found in topic.partitions:
            topic_partition = TopicPartition(topic.topic, found.partition)
            yield FoundOffset(
                topic_partition, found.error_code, found.end_offset, found.leader_epoch
            )


def _by_topic(states: Iterable[PartitionState]) -> Iterator[tuple[str, list[PartitionState]]]:
    ordered = sorted(states, key=lambda state: state.topic_partition)
    for topic, group in groupby(ordered, key=lambda state: state.topic_partition.topic):
        yield topic, list(group)
