import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.storage import errors


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.LogStorageError, ErrorCode.KAFKA_STORAGE_ERROR),
        (errors.OffsetOutOfRangeError, ErrorCode.OFFSET_OUT_OF_RANGE),
        (errors.RecordTooLargeError, ErrorCode.MESSAGE_TOO_LARGE),
        (errors.RecordBatchTooLargeError, ErrorCode.RECORD_LIST_TOO_LARGE),
        (errors.InvalidTimestampError, ErrorCode.INVALID_TIMESTAMP),
        (errors.InconsistentTopicIdError, ErrorCode.INCONSISTENT_TOPIC_ID),
        (errors.OutOfOrderSequenceError, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (errors.InvalidProducerEpochError, ErrorCode.INVALID_PRODUCER_EPOCH),
        (errors.InvalidTxnStateError, ErrorCode.INVALID_TXN_STATE),
        (errors.TransactionCoordinatorFencedError, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_what_a_client_can_hear_carries_kafkas_code(
    kind: type[KafkaError], code: ErrorCode
) -> None:
    error = kind("The reason.")
    assert error.code is code
    assert str(error) == "The reason."


def test_a_corrupt_file_is_no_answer_to_a_client() -> None:
    kinds = (
        errors.CorruptIndexError,
        errors.CorruptSnapshotError,
        errors.CorruptCheckpointError,
        errors.CorruptMetadataError,
    )
    for kind in kinds:
        assert issubclass(kind, errors.CorruptFileError)
        assert not issubclass(kind, KafkaError)
