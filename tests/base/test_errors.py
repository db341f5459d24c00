import pickle

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from headwater.base.errors import ErrorCode, KafkaError


class _Corrupt(KafkaError):
    code = ErrorCode.CORRUPT_MESSAGE


def test_the_table_is_kafkas() -> None:
    ours = {(row.value, row.name.lower(), row.retriable) for row in ErrorCode}
    theirs = {(int(row.value), row.name, row.retriable) for row in KioErrorCode}
    # What Kafka 4.4 has added, none of which is worth trying again.
    theirs |= {
        (134, "group_deletion_failed", False),
        (135, "streams_topology_description_update_failed", False),
        (136, "controller_id_not_registered", False),
    }
    assert ours == theirs
    assert min(ErrorCode) == -1
    assert max(ErrorCode) == 136


@pytest.mark.parametrize("row", ErrorCode)
def test_every_row_has_a_sentence_of_its_own(row: ErrorCode) -> None:
    assert row.message[0].isupper()
    assert row.message.endswith(".")
    assert [other for other in ErrorCode if other.message == row.message] == [row]


def test_a_code_from_the_wire_finds_its_row_and_an_unknown_one_is_a_server_error() -> None:
    assert ErrorCode.from_wire(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.from_wire(0) is ErrorCode.NONE
    assert ErrorCode.from_wire(31_000) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_error_carries_its_code_and_detail() -> None:
    error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "It took 31 s.")
    assert (error.code, error.detail, str(error)) == (7, "It took 31 s.", "It took 31 s.")
    assert error.retriable


def test_without_detail_the_table_speaks() -> None:
    assert str(KafkaError(ErrorCode.NOT_CONTROLLER)) == ErrorCode.NOT_CONTROLLER.message
    assert str(_Corrupt()) == ErrorCode.CORRUPT_MESSAGE.message


def test_a_subclass_fixes_the_code() -> None:
    error = _Corrupt("The batch is cut short.")
    assert error.code is ErrorCode.CORRUPT_MESSAGE
    assert str(error) == "The batch is cut short."


@pytest.mark.parametrize(
    "error", [KafkaError(ErrorCode.INVALID_CONFIG, "Bad."), _Corrupt("Cut short."), _Corrupt()]
)
def test_errors_cross_process_boundaries(error: KafkaError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, str(copy)) == (type(error), error.code, str(error))


def test_a_detail_that_quotes_too_much_is_cut() -> None:
    error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "x" * 100_000)
    assert len(str(error)) < 1100
    assert str(error).endswith("x...")
