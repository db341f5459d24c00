"""Admin operations on topics: create, delete, list, describe, and add partitions."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.client.admin.config_values import ConfigValue, config_text
from headwater.client.admin.outcomes import Operations, Outcomes, raised_or_returned, settle
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo
from headwater.client.errors import topic_refusal
from headwater.client.given_items import (
    given_items,
    given_mapping,
    given_names,
    given_number,
    given_topic,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from headwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headwater.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)

BROKER_DEFAULT = -1
_CONFIGS: Final = "{'retention.ms': 3600000}"
#: As many partitions as a broker describes in one answer unless it is told to do more.
PARTITIONS_PER_ANSWER = 2000


class NewTopic(NamedTuple):
    """A topic to create: counts, or the brokers of each partition, the preferred leader first."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, ConfigValue] = {}


class CreatedTopic(NamedTuple):
    """What became of a new topic; counts are -1 where the broker does not tell them."""

    name: str
    topic_id: uuid.UUID
    partition_count: int
    replication_factor: int


class TopicOperations(Operations):
    """See `AdminOperations`."""

    async def create_topics(
        self,
        topics: Collection[NewTopic],
        *,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> Outcomes[str, CreatedTopic]:
        """Create topics, or with `validate_only` say whether that would work."""
        by_name = {topic.name: _creatable(topic) for topic in given_items(topics, NewTopic)}

        async def attempt(pending: list[str]) -> Outcomes[str, CreatedTopic]:
            request = CreateTopicsRequest(
                topics=[by_name[name] for name in pending],
                timeout_ms=self._timeout_ms(),
                validate_only=validate_only,
            )
            response = await self.connection.ask_controller(request, CreateTopicsResponse)
            return {
                result.name: topic_refusal(result.error_code, result.error_message, result.name)
                if result.error_code
                else CreatedTopic(
                    result.name, result.topic_id, result.num_partitions, result.replication_factor
                )
                for result in response.topics
            }

        outcomes = await settle(self.connection, list(by_name), attempt, "Creating topics")
        return raised_or_returned(outcomes, raise_errors)

    async def delete_topics(
        self, names: Collection[str], *, raise_errors: bool = True
    ) -> Outcomes[str, None]:
        async def attempt(pending: list[str]) -> Outcomes[str, None]:
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in pending],
                topic_names=pending,
                timeout_ms=self._timeout_ms(),
            )
            response = await self.connection.ask_controller(request, DeleteTopicsResponse)
            return {
                result.name or "": topic_refusal(
                    result.error_code, result.error_message, result.name or ""
                )
                if result.error_code
                else None
                for result in response.responses
            }

        outcomes = await settle(self.connection, given_names(names), attempt, "Deleting topics")
        return raised_or_returned(outcomes, raise_errors)

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> Outcomes[str, None]:
        """Let topics grow to these counts; `assignments` hold the brokers of the new partitions."""
        chosen = assignments or {}
        wanted = {
            given_topic(name): given_number(count, f"The number of partitions of {name!r}")
            for name, count in given_mapping(counts, "{'orders': 6}").items()
        }

        async def attempt(pending: list[str]) -> Outcomes[str, None]:
            request = CreatePartitionsRequest(
                topics=[
                    CreatePartitionsTopic(
                        name=name,
                        count=wanted[name],
                        assignments=[
                            CreatePartitionsAssignment(broker_ids=list(brokers))
                            for brokers in chosen[name]
                        ]
                        if name in chosen
                        else None,
                    )
                    for name in pending
                ],
                timeout_ms=self._timeout_ms(),
                validate_only=validate_only,
            )
            response = await self.connection.ask_controller(request, CreatePartitionsResponse)
            return {
                result.name: topic_refusal(result.error_code, result.error_message, result.name)
                if result.error_code
                else None
                for result in response.results
            }

        outcomes = await settle(self.connection, list(wanted), attempt, "Adding partitions")
        return raised_or_returned(outcomes, raise_errors)

    async def list_topics(self) -> list[TopicInfo]:
        """Every topic that the client may see, by name, internal ones too."""

        async def attempt() -> list[TopicInfo]:
            await self.connection.refresh(None)
            return self.connection.metadata.topics()

        return await self.connection.retrying(attempt, "Listing topics")

    async def describe_topics(self, names: Collection[str]) -> Outcomes[str, TopicInfo]:
        """Topics with all their partitions; from a new enough broker with eligible leaders too."""
        channel = await self.connection.channel()
        if ApiKey.DESCRIBE_TOPIC_PARTITIONS in channel.versions:
            attempt = self._describe_in_pages
        else:
            attempt = self._describe_from_metadata
        return await settle(self.connection, given_names(names), attempt, "Describing topics")

    async def _describe_from_metadata(self, names: list[str]) -> Outcomes[str, TopicInfo]:
        await self.connection.refresh(names)
        outcomes: Outcomes[str, TopicInfo] = {}
        for name in names:
            try:
                outcomes[name] = self.connection.metadata.existing_topic(name)
            except KafkaError as error:
                outcomes[name] = error
        return outcomes

    async def _describe_in_pages(self, names: list[str]) -> Outcomes[str, TopicInfo]:
        outcomes: Outcomes[str, TopicInfo] = {}
        cursor: Cursor | None = None
        while True:
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in names],
                response_partition_limit=PARTITIONS_PER_ANSWER,
                cursor=cursor,
            )
            response = await self.connection.ask(request, DescribeTopicPartitionsResponse)
            for topic in response.topics:
                name = topic.name or ""
                outcomes[name] = _joined(outcomes.get(name), _described(topic, name))
            cursor = response.next_cursor
            if cursor is None:
                return outcomes

    def _timeout_ms(self) -> int:
        return int(self.connection.request_timeout_s * 1000)


def _creatable(topic: NewTopic) -> CreatableTopic:
    # Kafka takes either counts or an assignment, which says both.
    assigned = bool(topic.assignments)
    name = given_topic(topic.name)
    counts = {
        what: BROKER_DEFAULT if assigned else given_number(count, f"The {what} of {name!r}")
        for what, count in (
            ("partition_count", topic.partition_count),
            ("replication_factor", topic.replication_factor),
        )
    }
    return CreatableTopic(
        name=name,
        num_partitions=counts["partition_count"],
        replication_factor=counts["replication_factor"],
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.assignments.items()
        ],
        configs=[
            CreatableTopicConfig(name=setting, value=config_text(setting, value))
            for setting, value in given_mapping(topic.configs, _CONFIGS).items()
        ],
    )


def _described(topic: DescribeTopicPartitionsResponseTopic, name: str) -> TopicInfo | KafkaError:
    if topic.error_code:
        return topic_refusal(topic.error_code, None, name)
    partitions = tuple(sorted(map(_partition_info, topic.partitions)))
    return TopicInfo(name, topic.topic_id, topic.is_internal, partitions)


def _partition_info(partition: DescribeTopicPartitionsResponsePartition) -> PartitionInfo:
    return PartitionInfo(
        partition=partition.partition_index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline_replicas=tuple(partition.offline_replicas),
        eligible_leaders=tuple(partition.eligible_leader_replicas or ()),
        last_known_eligible_leaders=tuple(partition.last_known_elr or ()),
    )


def _joined(
    former: TopicInfo | KafkaError | None, page: TopicInfo | KafkaError
) -> TopicInfo | KafkaError:
    """A topic whose partitions came in more than one answer."""
    if isinstance(former, TopicInfo) and isinstance(page, TopicInfo):
        return page._replace(partitions=former.partitions + page.partitions)
    return page
