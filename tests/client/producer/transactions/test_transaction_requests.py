"""What a producer asks coordinators, when, and in which version of the protocol."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.kafka_errors import error_for
from headwater.client.producer.idempotence.identity import (
    EPOCH_MAX,
    ProducerIdentity,
)
from headwater.client.producer.sending.verdicts import Verdict
from headwater.client.producer.transactions.coordinator_errors import TransactionAbortedError
from headwater.client.producer.transactions.states import State
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.support.fakes.manager_conversation import (
    GROUP,
    PLACE,
    Batch,
    Conversation,
    transactional,
)


def test_a_coordinator_that_moved_is_looked_for_again() -> None:
    conversation = transactional()
    conversation.manager.operations.initialize()
    ask = conversation.next_ask()
    target = ask.target
    assert target is not None
    assert not isinstance(target, int)
    conversation.coordinators.learn(target, 3)
    refusal = conversation.coordinator.refusal(ask.request, ErrorCode.NOT_COORDINATOR)
    ask.on_answer(refusal, 0.0)
    assert conversation.coordinators.get(target) is None


def test_an_identity_that_is_not_granted_may_be_asked_for_again() -> None:
    conversation = transactional()
    refused = conversation.manager.operations.initialize()
    conversation.answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert isinstance(refused.error, KafkaError)
    granted = conversation.manager.operations.initialize()
    conversation.answer()
    assert granted.result() is None


def test_a_plain_producer_asks_again_when_there_is_something_to_send() -> None:
    conversation = Conversation()
    conversation.answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert not conversation.manager.asks(0.0)
    assert [error.code for error in conversation.aborted_with] == [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    ]
    assert not conversation.manager.may_drain(PLACE)
    ask = conversation.answer()
    assert isinstance(ask.request, InitProducerIdRequest)
    assert ask.request.transactional_id is None
    assert ask.target is None
    assert conversation.manager.may_drain(PLACE)


def test_a_plain_producer_gets_a_new_id_after_its_last_epoch() -> None:
    conversation = Conversation()
    ask = conversation.next_ask()
    ask.on_answer(InitProducerIdResponse(producer_id=7, producer_epoch=EPOCH_MAX), 0.0)
    first, refused, behind = Batch(), Batch(), Batch()
    conversation.manager.sequence(first)
    conversation.manager.acknowledged(first, 0)
    conversation.manager.sequence(refused)
    conversation.manager.sequence(behind)
    error = error_for(ErrorCode.INVALID_RECORD)
    assert conversation.manager.failed(refused, error, 0.0) is Verdict.FAIL
    assert not conversation.manager.may_resend(behind)
    ask = conversation.next_ask()
    ask.on_answer(InitProducerIdResponse(producer_id=8, producer_epoch=0), 0.0)
    assert (behind.identity, behind.base_sequence) == (ProducerIdentity(8, 0), 0)
    assert conversation.manager.may_resend(behind)


def test_an_empty_transaction_asks_nothing() -> None:
    conversation = transactional()
    conversation.begin()
    completion = conversation.manager.operations.commit()
    assert not conversation.manager.asks(0.0)
    assert completion.result() is None
    assert conversation.manager.state is State.READY


def test_the_end_waits_for_the_records() -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(Batch())
    conversation.manager.is_flushed = lambda: False
    completion = conversation.manager.operations.commit()
    assert conversation.manager.is_completing
    assert not conversation.manager.asks(0.0)
    conversation.manager.is_flushed = lambda: True
    conversation.answer()
    assert completion.result() is None


def test_an_abort_whose_end_is_refused_as_abortable_is_fatal() -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    conversation.manager.acknowledged(batch, 0)
    completion = conversation.manager.operations.abort()
    conversation.answer(ErrorCode.TRANSACTION_ABORTABLE)
    assert completion.error is conversation.manager.fatal_error is not None


def test_a_plain_producer_has_no_transactions() -> None:
    operations = Conversation().manager.operations
    for operation in (operations.initialize, operations.begin, operations.commit):
        with pytest.raises(KafkaError, match=r"without a transactional\.id") as caught:
            operation()
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_the_versions_of_requests_tell_the_version_of_the_protocol() -> None:
    first, second = transactional(is_version_2=False), transactional()
    for conversation in (first, second):
        conversation.begin()
        conversation.write(batch := Batch())
        conversation.manager.acknowledged(batch, 0)
        conversation.manager.operations.commit()
    assert (first.manager.produce_version_max, second.manager.produce_version_max) == (11, None)
    first_ask, second_ask = first.next_ask(), second.next_ask()
    assert (first_ask.version_max, second_ask.version_max) == (4, None)
    second_ask.on_answer(EndTxnResponse(producer_id=9, producer_epoch=0), 0.0)
    assert second.manager.identity == ProducerIdentity(9, 0)


def test_offsets_name_their_topics_which_later_versions_cannot() -> None:
    conversation = transactional()
    conversation.begin()
    conversation.manager.operations.send_offsets({PLACE: OffsetAndMetadata(5)}, GROUP)
    ask = conversation.next_ask()
    assert isinstance(ask.request, TxnOffsetCommitRequest)
    assert ask.request.topics[0].name == PLACE.topic
    assert ask.version_max == 5


def test_the_first_version_announces_partitions_before_it_writes() -> None:
    conversation = transactional(is_version_2=False)
    conversation.begin()
    other = TopicPartition("orders", 1)
    for place in (PLACE, other):
        conversation.manager.note_partition(place)
        assert not conversation.manager.may_drain(place)
    request = conversation.answer().request
    assert isinstance(request, AddPartitionsToTxnRequest)
    [topic] = request.v3_and_below_topics
    assert (topic.name, topic.partitions) == ("orders", [0, 1])
    assert conversation.manager.may_drain(PLACE)
    assert conversation.manager.may_drain(other)
    assert not conversation.manager.may_drain(TopicPartition("orders", 2))


def test_what_the_coordinator_may_have_added_is_clarified_before_the_abort() -> None:
    conversation = transactional(is_version_2=False)
    conversation.begin()
    conversation.manager.note_partition(PLACE)
    conversation.next_ask().on_failure(PeerUnavailableError("gone"), 0.0)
    offsets = conversation.manager.operations.send_offsets({PLACE: OffsetAndMetadata(5)}, GROUP)
    aborted = conversation.manager.operations.abort()
    assert isinstance(offsets.error, TransactionAbortedError)
    assert isinstance(conversation.answer().request, AddPartitionsToTxnRequest)
    assert isinstance(conversation.answer().request, EndTxnRequest)
    assert aborted.result() is None
    # The same with a group.
    conversation.manager.operations.begin()
    conversation.manager.operations.send_offsets({PLACE: OffsetAndMetadata(6)}, GROUP)
    conversation.next_ask().on_failure(PeerUnavailableError("gone"), 0.0)
    aborted = conversation.manager.operations.abort()
    assert isinstance(conversation.answer().request, AddOffsetsToTxnRequest)
    assert isinstance(conversation.answer().request, EndTxnRequest)
    assert aborted.result() is None
    assert conversation.coordinator.committed_offsets == {}


def test_late_answers_about_old_numbers_mean_nothing() -> None:
    conversation = Conversation()
    conversation.answer()
    manager = conversation.manager
    first, refused, behind = Batch(), Batch(), Batch()
    manager.sequence(first)
    manager.acknowledged(first, 0)
    manager.sequence(refused)
    manager.sequence(behind)
    manager.failed(refused, error_for(ErrorCode.INVALID_RECORD), 0.0)
    assert behind.identity.epoch == 1
    late = error_for(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert manager.failed(behind, late, 0.0) is Verdict.RETRY
    assert manager.may_resend(behind)
    # Once it was sent with its new number, it means something.
    assert manager.failed(behind, late, 0.0) is Verdict.FAIL
