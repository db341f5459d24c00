"""What can go wrong in a log, as exceptions.

Two families. Where Kafka's protocol has a code for the failure, the class carries it, and a handler
answers a client with it unchanged. A file that does not hold what its format promises is a
`CorruptFileError`: no client hears of that, because whoever reads the file has a way to go on
without it (an index is rebuilt, a snapshot skipped, a checkpoint taken for absent). Each message is
one sentence that names the partition or the file.
"""

import errno
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_exhaustion(error: OSError) -> bool:
    """Whether the process ran out of descriptors or memory, which passes; the disk is fine."""
    return error.errno in _EXHAUSTED


class LogStorageError(KafkaError):
    """The directory of this log failed, or is offline since it did."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class ExhaustionError(LogStorageError):
    """The process had no descriptor or no memory left for an operation; its disk is fine."""


class OffsetOutOfRangeError(KafkaError):
    """An offset before the log's start or behind its end was asked for."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class RecordTooLargeError(KafkaError):
    """A record batch exceeds `max.message.bytes`."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordBatchTooLargeError(KafkaError):
    """An append does not fit into a whole segment of `segment.bytes`."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE


class TooMuchWaitsError(KafkaError):
    """More records wait for their delivery than `delay.pending.max.bytes` allows."""

    code = ErrorCode.POLICY_VIOLATION


class DelayedLaterError(KafkaError):
    """A delayed batch cannot be taken just now, and may be later.

    The protocol has no code for it. This is the one after which producers of every make try again
    with the same batch, until their own time is over.
    """

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class BreakerOpenError(DelayedLaterError):
    """Too many records of a retry topic are given up, and `retry.breaker.pause` has others wait."""


class WaitingUnknownError(DelayedLaterError):
    """As much may wait as is allowed, and the leader is still reading how much it is."""


class InvalidTimestampError(KafkaError):
    """A record's timestamp is further from the broker's clock than the topic allows.

    `record_numbers` tells which records of the batch are at fault, counted from 0.
    """

    code = ErrorCode.INVALID_TIMESTAMP

    def __init__(self, detail: str = "", *, record_numbers: tuple[int, ...] = ()) -> None:
        super().__init__(detail)
        self.record_numbers = record_numbers


class InconsistentTopicIdError(KafkaError):
    """The directory belongs to another topic that had the same name."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


# -- producers -----------------------------------------------------------------------------------


class OutOfOrderSequenceError(KafkaError):
    """A batch does not continue where its producer stopped: one before it is missing."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochError(KafkaError):
    """A newer instance of the producer has written to the partition."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnStateError(KafkaError):
    """A batch contradicts the state of its producer's transaction."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFencedError(KafkaError):
    """A transaction marker comes from a coordinator that another one has replaced."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


# -- files ---------------------------------------------------------------------------------------


class CorruptFileError(Exception):
    """A file does not hold what its format promises."""


class CorruptIndexError(CorruptFileError):
    """An index contradicts itself or its segment, and must be rebuilt from the log."""


class CorruptSnapshotError(CorruptFileError):
    """A producer snapshot is torn or damaged, and an older one must serve."""


class CorruptCheckpointError(CorruptFileError):
    """A checkpoint file is not in its text format; the message names the line."""


class CorruptMetadataError(CorruptFileError):
    """`meta.properties` or `partition.metadata` cannot be read."""


class InconsistentBrokerMetadataError(Exception):
    """A log directory belongs to another broker or to another cluster."""
