"""Admin operations on the offsets that groups have committed: list, change and delete them."""

from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.coordinator_requests import AskCoordinator, ask_coordinators
from headwater.client.admin.outcomes import Operations, Outcomes, raised_or_returned, require_all
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.connection.retry import may_retry
from headwater.client.errors import group_refusal, refusal
from headwater.client.given_items import (
    given_mapping,
    given_number,
    given_partition,
    given_partitions,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

#: After these versions topics go by their ids, but offsets may outlive their topics.
_FETCH_VERSION_BY_NAME: Final = 9
_COMMIT_VERSION_BY_NAME: Final = 9
_NO_OFFSET: Final = -1
#: Not a member's commit: allowed while the group has no members.
_NO_GENERATION: Final = -1
_EXAMPLE: Final = "{TopicPartition('orders', 0): 42}"

_PartitionOutcomes: TypeAlias = Outcomes[str, Outcomes[TopicPartition, None]]
_AskForPartitions: TypeAlias = AskCoordinator[Outcomes[TopicPartition, None]]


class CommittedOffset(NamedTuple):
    """Where a group goes on in a partition; the leader epoch is -1 where nobody told it."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class GroupOffsetOperations(Operations):
    """See `AdminOperations`."""

    async def list_group_offsets(
        self,
        group_ids: Collection[str],
        *,
        partitions: Collection[TopicPartition] | None = None,
        require_stable: bool = False,
    ) -> Outcomes[str, dict[TopicPartition, CommittedOffset]]:
        """What groups have committed, in all partitions unless named; a group may not exist.

        With `require_stable` this waits for transactions that are about to change the offsets.
        """

        async def ask(
            broker_id: int, owned: list[str]
        ) -> Outcomes[str, dict[TopicPartition, CommittedOffset]]:
            request = OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(group_id=group_id, topics=_fetched_topics(partitions))
                    for group_id in owned
                ],
                require_stable=require_stable,
            )
            version = await self.connection.highest_version(
                ApiKey.OFFSET_FETCH, broker_id, _FETCH_VERSION_BY_NAME
            )
            response = await self.connection.ask(
                request, OffsetFetchResponse, broker_id, version=version
            )
            return {group.group_id: _committed(group) for group in response.groups}

        return await ask_coordinators(
            self.connection, CoordinatorKind.GROUP, group_ids, ask, "Looking up committed offsets"
        )

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset | int],
        *,
        raise_errors: bool = True,
    ) -> Outcomes[TopicPartition, None]:
        """Commit offsets for a group that has no members; it comes into being by this."""
        wanted = {
            given_partition(partition): _given_offset(offset)
            for partition, offset in given_mapping(offsets, _EXAMPLE).items()
        }

        async def ask(broker_id: int, owned: list[str]) -> _PartitionOutcomes:
            request = OffsetCommitRequest(
                group_id=group_id,
                generation_id_or_member_epoch=_NO_GENERATION,
                topics=[
                    OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[_commit(tp.partition, wanted[tp]) for tp in some],
                    )
                    for topic, some in groupby(sorted(wanted), key=lambda tp: tp.topic)
                ],
            )
            version = await self.connection.highest_version(
                ApiKey.OFFSET_COMMIT, broker_id, _COMMIT_VERSION_BY_NAME
            )
            response = await self.connection.ask(
                request, OffsetCommitResponse, broker_id, version=version
            )
            outcomes: Outcomes[TopicPartition, None] = {}
            for topic in response.topics:
                for result in topic.partitions:
                    key = TopicPartition(topic.name, result.partition_index)
                    outcomes[key] = _refusal(group_id, key, result.error_code)
            return {group_id: _unless_passing(outcomes)}

        outcomes = await self._ask_coordinator(group_id, ask, "Changing committed offsets")
        return raised_or_returned(outcomes, raise_errors)

    async def delete_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        *,
        raise_errors: bool = True,
    ) -> Outcomes[TopicPartition, None]:
        """Forget what a group has committed in partitions that none of its members reads."""
        wanted = sorted(given_partitions(partitions))

        async def ask(broker_id: int, owned: list[str]) -> _PartitionOutcomes:
            request = OffsetDeleteRequest(
                group_id=group_id,
                topics=[
                    OffsetDeleteRequestTopic(
                        name=topic,
                        partitions=[
                            OffsetDeleteRequestPartition(partition_index=tp.partition)
                            for tp in some
                        ],
                    )
                    for topic, some in groupby(wanted, key=lambda tp: tp.topic)
                ],
            )
            response = await self.connection.ask(request, OffsetDeleteResponse, broker_id)
            if response.error_code:
                return {group_id: group_refusal(response.error_code, None, group_id)}
            outcomes: Outcomes[TopicPartition, None] = {}
            for topic in response.topics:
                for result in topic.partitions:
                    key = TopicPartition(topic.name, result.partition_index)
                    outcomes[key] = _refusal(group_id, key, result.error_code)
            return {group_id: _unless_passing(outcomes)}

        outcomes = await self._ask_coordinator(group_id, ask, "Deleting committed offsets")
        return raised_or_returned(outcomes, raise_errors)

    async def _ask_coordinator(
        self, group_id: str, ask: _AskForPartitions, what: str
    ) -> Outcomes[TopicPartition, None]:
        """The outcomes of one group; raises what concerns the group as a whole."""
        answered = await ask_coordinators(
            self.connection, CoordinatorKind.GROUP, [group_id], ask, what
        )
        return require_all(answered)[group_id]


def _fetched_topics(
    partitions: Collection[TopicPartition] | None,
) -> list[OffsetFetchRequestTopics] | None:
    if partitions is None:
        return None
    return [
        OffsetFetchRequestTopics(name=topic, partition_indexes=[tp.partition for tp in some])
        for topic, some in groupby(sorted(given_partitions(partitions)), key=lambda tp: tp.topic)
    ]


def _committed(
    group: OffsetFetchResponseGroup,
) -> dict[TopicPartition, CommittedOffset] | KafkaError:
    """The offsets of a group; an error about one partition is one about the group."""
    if group.error_code:
        return group_refusal(group.error_code, None, group.group_id)
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in group.topics:
        for found in topic.partitions:
            key = TopicPartition(topic.name, found.partition_index)
            if found.error_code:
                return refusal(found.error_code, None, f"Group {group.group_id!r}, {key}")
            if found.committed_offset != _NO_OFFSET:
                offsets[key] = CommittedOffset(
                    found.committed_offset, found.committed_leader_epoch, found.metadata or ""
                )
    return offsets


def _given_offset(given: CommittedOffset | int) -> CommittedOffset:
    if isinstance(given, CommittedOffset):
        return given
    return CommittedOffset(given_number(given, "The offset"))


def _commit(partition: int, committed: CommittedOffset) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
    )


def _refusal(group_id: str, key: TopicPartition, error_code: int) -> KafkaError | None:
    return refusal(error_code, None, f"Group {group_id!r}, {key}") if error_code else None


def _unless_passing(
    outcomes: Outcomes[TopicPartition, None],
) -> Outcomes[TopicPartition, None] | KafkaError:
    """The outcomes, or an error of one of them that may pass: then all is asked again."""
    for outcome in outcomes.values():
        if isinstance(outcome, KafkaError) and may_retry(outcome):
            return outcome
    return outcomes
