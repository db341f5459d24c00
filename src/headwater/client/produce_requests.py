"""Produce requests: one attempt to write batches to the broker that leads their partitions.

From version 13 on the request names topics by id, which the metadata of an older broker do not
have: then an older version is asked for.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.errors import refusal
from headwater.client.kafka_errors import UnknownServerError
from headwater.client.record_batches import RecordBatch
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headwater.wire.records import Compression

VERSION_WITHOUT_IDS_MAX: Final = 12
ACKS_NONE: Final = 0
ACKS_ALL: Final = -1
NO_OFFSET: Final = -1


class Written(NamedTuple):
    """Where a batch begins in its partition; `NO_OFFSET` if no answer was asked for."""

    base_offset: int


AttemptOutcome: TypeAlias = tuple[RecordBatch, Written | KafkaError]


class ProduceRequests:
    """Sends batches with the same settings, each at most once per call."""

    def __init__(
        self,
        connection: ClusterConnection,
        *,
        acks: int,
        timeout_s: float,
        compression: Compression,
        compression_level: int | None,
    ) -> None:
        self._connection = connection
        self._acks = acks
        self._timeout_s = timeout_s
        self._compression = compression
        self._compression_level = compression_level

    async def attempt(self, leader_id: int, batches: Sequence[RecordBatch]) -> list[AttemptOutcome]:
        """One request with batches of different partitions, and what became of each."""
        try:
            request, version = await self._request(leader_id, batches)
            if self._acks == ACKS_NONE:
                await self._connection.tell(request, leader_id, version=version)
                return [(batch, Written(NO_OFFSET)) for batch in batches]
            response = await self._connection.ask(
                request, ProduceResponse, leader_id, version=version, timeout_s=self._timeout_s
            )
        except KafkaError as error:
            return [(batch, error) for batch in batches]
        return outcomes_of(batches, request, response)

    async def _request(
        self, leader_id: int, batches: Sequence[RecordBatch]
    ) -> tuple[ProduceRequest, int | None]:
        topics: dict[str, TopicProduceData] = {}
        all_have_ids = True
        for batch in batches:
            name, partition = batch.topic_partition
            topic = topics.get(name)
            if topic is None:
                known = self._connection.metadata.existing_topic(name)
                all_have_ids = all_have_ids and known.has_id
                topic = topics[name] = TopicProduceData(name=name, topic_id=known.topic_id)
            encoded = batch.encode(self._compression, self._compression_level)
            topic.partition_data.append(PartitionProduceData(index=partition, records=encoded))
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=int(self._timeout_s * 1000),
            topic_data=list(topics.values()),
        )
        if all_have_ids:
            return request, None
        version = await self._connection.highest_version(
            ApiKey.PRODUCE, leader_id, VERSION_WITHOUT_IDS_MAX
        )
        return request, version


def outcomes_of(
    batches: Sequence[RecordBatch], request: ProduceRequest, response: ProduceResponse
) -> list[AttemptOutcome]:
    """What an answer says about each batch."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    answers: dict[TopicPartition, PartitionProduceResponse] = {}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partition_responses:
            answers[TopicPartition(name, partition.index)] = partition
    return [(batch, _outcome(batch, answers.get(batch.topic_partition))) for batch in batches]


def _outcome(batch: RecordBatch, answer: PartitionProduceResponse | None) -> Written | KafkaError:
    if answer is None:
        return UnknownServerError(f"The broker's answer left out {batch.topic_partition}.")
    if not answer.error_code:
        return Written(answer.base_offset)
    # What is said about a single record is more precise.
    about_records = [error.batch_index_error_message for error in answer.record_errors]
    message = next(filter(None, about_records), answer.error_message)
    return refusal(answer.error_code, message, str(batch.topic_partition))
