"""Which batches may begin a transaction in a partition."""

import pytest

from headwater.base.ids import TopicPartition
from headwater.storage.errors import (
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from headwater.storage.producers.entry import AppendedBatch, AppendOrigin
from headwater.storage.producers.state import ProducerStates
from headwater.storage.producers.transaction_verification import TransactionalBatch, check_verified
from headwater.wire.records import (
    ControlType,
    Record,
    encode_batch,
    encode_end_transaction_marker,
    read_batch_header,
)

_PARTITION = TopicPartition("orders", 0)
_ORIGIN = AppendOrigin.CLIENT


def _write(
    states: ProducerStates, batch: TransactionalBatch, *, transactional: bool = True
) -> None:
    data = encode_batch(
        [Record(states.end_offset, 1000, b"k", b"v")],
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=transactional,
    )
    _append(states, data)


def _end(states: ProducerStates, producer_id: int, epoch: int) -> None:
    marker = encode_end_transaction_marker(
        ControlType.ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=0,
        timestamp_ms=1000,
        base_offset=states.end_offset,
    )
    _append(states, marker)


def _append(states: ProducerStates, data: bytes) -> None:
    appended = AppendedBatch.read(read_batch_header(data), data)
    pending = states.prepare([appended], origin=_ORIGIN)
    states.apply(pending)
    for completed in pending.completed:
        states.complete_transaction(completed)


def _batch(sequence: int = 0, epoch: int = 0) -> TransactionalBatch:
    return TransactionalBatch(7, epoch, sequence)


def test_a_batch_that_nobody_verified_begins_no_transaction() -> None:
    states = ProducerStates(_PARTITION)
    with pytest.raises(InvalidTxnStateError):
        check_verified(states, _batch(), None, starts_at_zero=False)


def test_a_verified_batch_begins_one_and_others_follow_unasked() -> None:
    states = ProducerStates(_PARTITION)
    verification = states.verifications.begin(_batch(), 0)
    check_verified(states, _batch(), verification, starts_at_zero=True)
    _write(states, _batch())
    assert states.has_open_transaction(7, 0)
    assert not states.has_open_transaction(7, 1)
    assert len(states.verifications) == 0
    check_verified(states, _batch(1), None, starts_at_zero=True)


def test_a_marker_ends_what_was_being_verified() -> None:
    """The answer is about a transaction that is over: the next one must be asked for anew."""
    states = ProducerStates(_PARTITION)
    verification = states.verifications.begin(_batch(), 0)
    _end(states, 7, 0)
    with pytest.raises(InvalidTxnStateError):
        check_verified(states, _batch(), verification, starts_at_zero=False)
    again = states.verifications.begin(_batch(), 0)
    assert again is not verification
    check_verified(states, _batch(), again, starts_at_zero=False)
    with pytest.raises(InvalidTxnStateError):
        check_verified(states, _batch(), verification, starts_at_zero=False)


def test_a_question_that_is_asked_anew_counts_from_then_on() -> None:
    states = ProducerStates(_PARTITION)
    verification = states.verifications.begin(_batch(), 0)
    _end(states, 7, 0)
    states.verifications.renew(7, verification)
    check_verified(states, _batch(), verification, starts_at_zero=True)
    _end(states, 7, 0)
    another = states.verifications.begin(_batch(), 0)
    states.verifications.renew(7, verification)
    assert not states.verifications.holds(7, verification)
    assert states.verifications.holds(7, another)


def test_a_transaction_that_ended_is_not_open_for_a_late_batch() -> None:
    states = ProducerStates(_PARTITION)
    _write(states, _batch())
    _end(states, 7, 0)
    with pytest.raises(InvalidTxnStateError):
        check_verified(states, _batch(1), None, starts_at_zero=False)


def test_a_wrong_epoch_does_not_stand_in_the_way_of_the_right_one() -> None:
    """Which one is right is known to the coordinator alone, and it refuses the others."""
    states = ProducerStates(_PARTITION)
    wrong = states.verifications.begin(_batch(epoch=9), 0)
    right = states.verifications.begin(_batch(epoch=1), 0)
    assert right is not wrong
    assert states.verifications.begin(_batch(epoch=1), 0) is right
    check_verified(states, _batch(epoch=1), right, starts_at_zero=True)
    _write(states, _batch(epoch=1))
    with pytest.raises(InvalidTxnStateError):
        check_verified(states, _batch(epoch=9), wrong, starts_at_zero=True)


def test_few_epochs_of_a_producer_are_remembered() -> None:
    states = ProducerStates(_PARTITION)
    for epoch in range(100):
        states.verifications.begin(_batch(epoch=epoch), 0)
    assert len(states.verifications) == 4


def test_a_batch_does_not_overtake_one_whose_verification_failed() -> None:
    states = ProducerStates(_PARTITION)
    verification = states.verifications.begin(_batch(5), 0)
    assert states.verifications.begin(_batch(6), 0) is verification
    with pytest.raises(OutOfOrderSequenceError):
        check_verified(states, _batch(6), verification, starts_at_zero=False)
    check_verified(states, _batch(5), verification, starts_at_zero=False)


def test_a_producer_with_an_epoch_for_each_transaction_starts_at_zero() -> None:
    states = ProducerStates(_PARTITION)
    verification = states.verifications.begin(_batch(5), 0)
    with pytest.raises(OutOfOrderSequenceError):
        check_verified(states, _batch(5), verification, starts_at_zero=True)
    check_verified(states, _batch(5), verification, starts_at_zero=False)


def test_verifications_that_came_to_nothing_are_forgotten_in_time() -> None:
    states = ProducerStates(_PARTITION, producer_id_expiration_ms=1000)
    states.verifications.begin(_batch(), 0)
    states.verifications.begin(TransactionalBatch(8, 0, 0), 500)
    states.remove_expired(1200)
    assert len(states.verifications) == 1
