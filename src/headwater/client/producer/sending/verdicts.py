"""What becomes of a batch that failed: a judgement on the error, and on what the numbers say.

OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID are about numbers, and mean different things
depending on what else is under way in the partition; the book of numbers knows. Other errors are
either passing, and the batch is sent again as it is, or they are the end of the batch.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.producer.idempotence.partition_sequence import SequencedBatch
from headwater.client.producer.idempotence.sequence_book import Refusal, SequenceBook
from headwater.client.producer.transactions.coordinator_errors import (
    Meaning,
    is_passing,
    meaning_for_batch,
)


class Verdict(Enum):
    #: To be sent again as it is.
    RETRY = "retry"
    #: To be sent again under another identity and number, which it has got.
    RETRY_WITH_NEW_SEQUENCE = "retry with new sequence"
    #: It has failed.
    FAIL = "fail"
    #: It was written by an earlier attempt; where is not known.
    ACKNOWLEDGED = "acknowledged"


class Judgement(NamedTuple):
    verdict: Verdict
    #: What it means for the producer, where it means anything.
    meaning: Meaning = Meaning.RETRY


_RETRY: Final = Judgement(Verdict.RETRY)
_RENUMBER: Final = Judgement(Verdict.RETRY_WITH_NEW_SEQUENCE)
_FAIL: Final = Judgement(Verdict.FAIL)
_ACKNOWLEDGED: Final = Judgement(Verdict.ACKNOWLEDGED)


def judge(
    book: SequenceBook,
    batch: SequencedBatch,
    error: KafkaError,
    *,
    is_transactional: bool,
    is_doomed: bool,
) -> Judgement:
    """Judge a failed batch, and enter in the book what is now known of it.

    Doomed are the batches of a transaction that is going to be aborted: there is no use in sending
    them again.
    """
    was_renumbered = book.was_renumbered(batch)
    code = error.code
    if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        book.acknowledged(batch)
        return _ACKNOWLEDGED
    is_about_number = code in (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    )
    if was_renumbered and (is_about_number or code is ErrorCode.INVALID_PRODUCER_EPOCH):
        return _RETRY
    if is_about_number:
        return _judge_number(
            book, batch, code, is_transactional=is_transactional, is_doomed=is_doomed
        )
    if is_passing(error) and not is_doomed:
        book.doubted(batch)
        return _RETRY
    book.refused(batch)
    meaning = meaning_for_batch(error)
    if meaning is Meaning.FATAL or is_transactional:
        return Judgement(Verdict.FAIL, meaning)
    return _FAIL


def _judge_number(
    book: SequenceBook,
    batch: SequencedBatch,
    code: ErrorCode,
    *,
    is_transactional: bool,
    is_doomed: bool,
) -> Judgement:
    is_forgotten = code is ErrorCode.UNKNOWN_PRODUCER_ID
    refusal = book.forgotten(batch) if is_forgotten else book.refused_number(batch)
    if refusal is Refusal.WRITTEN:
        book.acknowledged(batch)
        return _ACKNOWLEDGED
    if refusal is Refusal.OUT_OF_TURN and not is_doomed:
        return _RETRY
    if is_transactional:
        book.refused(batch)
        return Judgement(Verdict.FAIL, Meaning.ABORT)
    if refusal is Refusal.LOST:
        book.refused(batch)
        return Judgement(Verdict.FAIL, Meaning.FATAL)
    return _RENUMBER
