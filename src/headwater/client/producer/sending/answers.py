"""Produce requests and their answers: which batches go into one, and what it says about each.

From version 13 on the request names topics by id, which the metadata of an older broker do not
have: then an older version is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.errors import refusal
from headwater.client.producer.batches.batch import NO_OFFSET, ProduceBatch
from headwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headwater.wire.records import NO_TIMESTAMP

VERSION_WITHOUT_IDS_MAX: Final = 12


class Outcome(NamedTuple):
    """What a broker says about a batch."""

    error: KafkaError | None
    base_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP
    record_errors: Mapping[int, KafkaError] = {}


def topic_data(
    batches: Sequence[ProduceBatch], metadata: ClusterMetadata
) -> tuple[list[TopicProduceData], bool]:
    """The encoded batches as a request has them, and whether all their topics have ids."""
    topics: dict[str, TopicProduceData] = {}
    have_ids = True
    for batch in batches:
        name, partition = batch.topic_partition
        topic = topics.get(name)
        if topic is None:
            known = metadata.existing_topic(name)
            have_ids = have_ids and known.has_id
            topic = topics[name] = TopicProduceData(name=name, topic_id=known.topic_id)
        records = None if batch.data is None else batch.data.buffers
        topic.partition_data.append(PartitionProduceData(index=partition, records=records))
    return list(topics.values()), have_ids


def outcomes_of(
    batches: Sequence[ProduceBatch], request: ProduceRequest, response: ProduceResponse
) -> list[tuple[ProduceBatch, Outcome]]:
    """What an answer says about each batch of its request."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    answers: dict[TopicPartition, PartitionProduceResponse] = {}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partition_responses:
            answers[TopicPartition(name, partition.index)] = partition
    return [(batch, _outcome(batch, answers.get(batch.topic_partition))) for batch in batches]


def _outcome(batch: ProduceBatch, answer: PartitionProduceResponse | None) -> Outcome:
    if answer is None:
        return Outcome(
            refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"The broker's answer left out {batch.topic_partition}.",
                "",
            )
        )
    if not answer.error_code:
        return Outcome(None, answer.base_offset, answer.log_append_time_ms)
    subject = str(batch.topic_partition)
    record_errors = {
        each.batch_index: refusal(
            answer.error_code, each.batch_index_error_message or answer.error_message, subject
        )
        for each in answer.record_errors
    }
    # What is said about a single record is more precise.
    about_records = (each.batch_index_error_message for each in answer.record_errors)
    message = next(filter(None, about_records), answer.error_message)
    return Outcome(
        refusal(answer.error_code, message, subject),
        base_offset=answer.base_offset,
        log_append_time_ms=answer.log_append_time_ms,
        record_errors=record_errors,
    )
