"""What each error of a coordinator or a leader does to a transactional producer."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.kafka_errors import error_for
from headwater.client.producer.sending.verdicts import Verdict
from headwater.client.producer.transactions.states import State
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.init_producer_id import (
    InitProducerIdRequest,
)
from tests.support.fakes.manager_conversation import (
    GROUP,
    PLACE,
    Batch,
    transactional,
)

RETRIED = [
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REQUEST_TIMED_OUT,
]
FATAL = [
    (ErrorCode.PRODUCER_FENCED, ErrorCode.PRODUCER_FENCED),
    (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED),
    (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
    (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
]


@pytest.mark.parametrize("code", RETRIED)
def test_errors_that_pass(code: ErrorCode) -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    conversation.manager.acknowledged(batch, 0)
    completion = conversation.manager.operations.commit()
    for _ in range(3):
        before_s = conversation.now_s
        conversation.answer(code)
        assert not conversation.manager.asks(conversation.now_s)
        assert conversation.manager.wake_at_s(conversation.now_s) != before_s
    conversation.next_ask().on_failure(PeerUnavailableError("gone"), conversation.now_s)
    conversation.answer()
    assert completion.result() is None
    assert conversation.manager.state is State.READY
    assert conversation.coordinator.commit_count == 1


@pytest.mark.parametrize(("code", "expected"), FATAL)
def test_errors_that_end_the_producer(code: ErrorCode, expected: ErrorCode) -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    conversation.manager.acknowledged(batch, 0)
    completion = conversation.manager.operations.commit()
    conversation.answer(code)
    error = completion.error
    assert isinstance(error, KafkaError)
    assert error.code is expected
    assert conversation.manager.fatal_error is error
    assert not conversation.manager.asks(conversation.now_s + 100)
    assert [each.code for each in conversation.aborted_with] == [expected]
    assert not conversation.manager.may_drain(PLACE)
    for operation in (
        conversation.manager.operations.begin,
        conversation.manager.operations.abort,
        lambda: conversation.manager.check_may_send(PLACE),
    ):
        with pytest.raises(KafkaError, match="not usable any more") as caught:
            operation()
        assert caught.value.code is expected


@pytest.mark.parametrize("code", [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_commit_that_has_to_be_aborted(code: ErrorCode) -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    conversation.manager.acknowledged(batch, 0)
    completion = conversation.manager.operations.commit()
    conversation.answer(code)
    assert isinstance(completion.error, KafkaError)
    with pytest.raises(KafkaError, match="has to be aborted"):
        conversation.manager.operations.commit()
    aborted = conversation.manager.operations.abort()
    ask = conversation.answer()
    assert isinstance(ask.request, EndTxnRequest)
    assert not ask.request.committed
    assert aborted.result() is None
    assert conversation.manager.state is State.READY


@pytest.mark.parametrize("is_version_2", [True, False])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ],
)
def test_a_failed_batch_dooms_its_transaction(code: ErrorCode, is_version_2: bool) -> None:
    conversation = transactional(is_version_2=is_version_2)
    conversation.begin()
    conversation.write(batch := Batch())
    epoch = conversation.manager.identity.epoch
    verdict = conversation.manager.failed(batch, error_for(code), conversation.now_s)
    assert verdict is Verdict.FAIL
    assert conversation.manager.state is State.ABORTABLE_ERROR
    assert not conversation.manager.asks(conversation.now_s)
    assert [each.code for each in conversation.aborted_with] == [code]
    completion = conversation.manager.operations.abort()
    assert isinstance(conversation.answer().request, EndTxnRequest)
    if not is_version_2:
        # The second version's answer brings a new epoch, in the first one the producer asks.
        ask = conversation.answer()
        assert isinstance(ask.request, InitProducerIdRequest)
        assert ask.request.producer_epoch == epoch
    assert completion.result() is None
    assert conversation.manager.identity.epoch == epoch + 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNSUPPORTED_VERSION,
    ],
)
def test_a_failed_batch_that_ends_the_producer(code: ErrorCode) -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    assert conversation.manager.failed(batch, error_for(code), 0.0) is Verdict.FAIL
    assert conversation.manager.state is State.FATAL_ERROR
    assert not conversation.manager.asks(1.0)


def test_a_repeated_batch_was_written() -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    error = error_for(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert conversation.manager.failed(batch, error, 0.0) is Verdict.ACKNOWLEDGED
    assert conversation.manager.state is State.IN_TRANSACTION


def test_a_batch_whose_time_is_over_dooms_its_transaction() -> None:
    conversation = transactional()
    conversation.begin()
    conversation.manager.given_up(Batch(), error_for(ErrorCode.REQUEST_TIMED_OUT), 0.0)
    assert conversation.manager.state is State.ABORTABLE_ERROR


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    ],
)
@pytest.mark.parametrize("is_version_2", [True, False])
def test_offsets_that_are_refused(code: ErrorCode, is_version_2: bool) -> None:
    conversation = transactional(is_version_2=is_version_2)
    conversation.begin()
    completion = conversation.manager.operations.send_offsets({PLACE: OffsetAndMetadata(5)}, GROUP)
    if not is_version_2:
        conversation.answer()
    conversation.answer(code)
    error = completion.error
    assert isinstance(error, KafkaError)
    assert error.code is code
    aborted = conversation.manager.operations.abort()
    conversation.answer()
    if not is_version_2:
        conversation.answer()
    assert aborted.result() is None
    assert conversation.coordinator.committed_offsets == {}
