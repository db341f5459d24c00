"""What each error means for a producer's transactions, as Kafka's own client has it.

The same error may come from a coordinator, from the search for one, or in the answer to a produce
request, where some of them mean something else: a leader cannot know whether a producer was fenced
or whether just its transaction timed out, so that only the coordinator's word on it is final.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.errors import DeadlineError
from headwater.client.kafka_errors import OperationNotAttemptedError, ProducerFencedError


class Meaning(Enum):
    #: It passes.
    RETRY = "retry"
    #: The transaction has to be aborted, after which the producer may go on.
    ABORT = "abort"
    #: The producer cannot go on.
    FATAL = "fatal"


class TransactionAbortedError(OperationNotAttemptedError):
    """The transaction was aborted before this was sent."""

    advice = "Send it again in another transaction if it is still wanted."


class TransactionPendingError(DeadlineError):
    """A transaction was to be begun, prepared or ended, and it is not known yet whether it is."""

    advice = "It goes on: call the same method again to wait for its outcome."


_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})

#: Errors in a coordinator's answer after which an abort helps. Whatever is neither retriable nor
#: listed here is fatal.
_ABORTABLE: Final = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        # The group has moved on without the member whose offsets these are.
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        # What these offsets are is the caller's fault, and no reason to end the producer.
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
)

#: Errors in the answer to a produce request that end an idempotent or transactional producer.
_FATAL_FOR_BATCHES: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)

#: Refusals of a first InitProducerId after which it makes sense to call it again.
_MAY_BE_GRANTED: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


def is_passing(error: KafkaError) -> bool:
    """Whether a request may just be sent again; a cluster that is away may come back."""
    return error.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE


def meaning_for_coordination(error: KafkaError) -> Meaning:
    """Of an error that a coordinator answered, or that kept a request from reaching it."""
    if is_passing(error):
        return Meaning.RETRY
    return Meaning.ABORT if error.code in _ABORTABLE else Meaning.FATAL


def meaning_for_batch(error: KafkaError) -> Meaning:
    """Of an error that befell a batch of a transaction, other than one of its numbers."""
    if error.code in _FATAL_FOR_BATCHES:
        return Meaning.FATAL
    return Meaning.RETRY if is_passing(error) else Meaning.ABORT


def may_be_granted(error: KafkaError) -> bool:
    return error.code in _MAY_BE_GRANTED


def as_final(error: KafkaError, transactional_id: str | None) -> KafkaError:
    """Coordinators of older versions call a fenced producer's epoch invalid."""
    if error.code not in _FENCED:
        return error
    if transactional_id is None:
        return ProducerFencedError(
            "This producer is not usable any more: the cluster does not accept its epoch. Close "
            "it, and make a new one."
        )
    return ProducerFencedError(
        "This producer is fenced and not usable any more: another one has taken over the "
        f"transactional.id {transactional_id!r}, or a transaction was open for longer than "
        "transaction.timeout.ms. What it had not committed is aborted. Close this producer."
    )
