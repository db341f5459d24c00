import uuid

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.produce_requests import Written, outcomes_of
from headwater.client.record_batches import RecordBatch
from headwater.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TOPIC_ID = uuid.UUID(int=7)
REQUEST = ProduceRequest(topic_data=[TopicProduceData(name="orders", topic_id=TOPIC_ID)])


def outcome(*partitions: PartitionProduceResponse, by_id: bool = True) -> Written | KafkaError:
    """What an answer says about a batch for partition 1 of topic orders."""
    batch = RecordBatch(TopicPartition("orders", 1), 0.0)
    topic = TopicProduceResponse(
        name="" if by_id else "orders",
        topic_id=TOPIC_ID if by_id else uuid.UUID(int=0),
        partition_responses=list(partitions),
    )
    [(found, result)] = outcomes_of([batch], REQUEST, ProduceResponse(responses=[topic]))
    assert found is batch
    return result


@pytest.mark.parametrize("by_id", [True, False])
def test_an_answer_names_topics_by_id_or_by_name(by_id: bool) -> None:
    answer = PartitionProduceResponse(index=1, base_offset=42)
    assert outcome(PartitionProduceResponse(index=0), answer, by_id=by_id) == Written(42)


def test_a_record_at_fault_is_told() -> None:
    result = outcome(
        PartitionProduceResponse(
            index=1,
            error_code=87,
            error_message="One or more records have been rejected",
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=None),
                BatchIndexAndErrorMessage(
                    batch_index=3, batch_index_error_message="Compacted topics need keys"
                ),
            ],
        )
    )
    assert isinstance(result, KafkaError)
    assert (result.code, str(result)) == (ErrorCode.INVALID_RECORD, "Compacted topics need keys.")


def test_an_error_without_a_sentence_names_the_partition() -> None:
    result = outcome(PartitionProduceResponse(index=1, error_code=6))
    assert isinstance(result, KafkaError)
    assert str(result) == f"orders-1: {ErrorCode.NOT_LEADER_OR_FOLLOWER.message}"
    assert result.retriable


def test_a_partition_without_an_answer_has_failed() -> None:
    result = outcome(PartitionProduceResponse(index=0))
    assert isinstance(result, KafkaError)
    assert str(result) == "The broker's answer left out orders-1."
