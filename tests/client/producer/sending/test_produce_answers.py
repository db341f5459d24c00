import uuid

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.sending.answers import Outcome, outcomes_of
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


def outcome(*partitions: PartitionProduceResponse, by_id: bool = True) -> Outcome:
    """What an answer says about a batch for partition 1 of topic orders."""
    batch = ProduceBatch(TopicPartition("orders", 1), 0.0)
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
    answer = PartitionProduceResponse(index=1, base_offset=42, log_append_time_ms=5)
    found = outcome(PartitionProduceResponse(index=0), answer, by_id=by_id)
    assert found == Outcome(None, 42, 5)


def test_a_record_at_fault_is_told() -> None:
    found = outcome(
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
    assert found.error is not None
    assert found.error.code is ErrorCode.INVALID_RECORD
    assert str(found.error) == "Compacted topics need keys."
    assert {index: str(error) for index, error in found.record_errors.items()} == {
        0: "One or more records have been rejected.",
        3: "Compacted topics need keys.",
    }


def test_an_error_without_a_sentence_names_the_partition() -> None:
    found = outcome(PartitionProduceResponse(index=1, error_code=6))
    assert found.error is not None
    assert str(found.error) == f"orders-1: {ErrorCode.NOT_LEADER_OR_FOLLOWER.message}"
    assert found.error.retriable


def test_a_partition_without_an_answer_has_failed() -> None:
    found = outcome(PartitionProduceResponse(index=0))
    assert found.error is not None
    assert str(found.error) == "The broker's answer left out orders-1."
