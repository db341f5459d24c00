"""Errors of records and offsets: what can be written, and what can be read."""

from headwater.base.errors import ErrorCode, KafkaError, RetriableError


class OffsetOutOfRangeError(KafkaError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE
    advice = (
        "Retention may have deleted the records: seek to an offset that is there, or let "
        "auto.offset.reset choose one."
    )


class InvalidFetchSizeError(KafkaError):
    code = ErrorCode.INVALID_FETCH_SIZE
    advice = "Raise fetch.max.bytes or max.partition.fetch.bytes."


class MessageTooLargeError(KafkaError):
    code = ErrorCode.MESSAGE_TOO_LARGE
    advice = (
        "Send less at once, or raise max.message.bytes of the topic and max.request.size of the "
        "producer."
    )


class RecordListTooLargeError(KafkaError):
    code = ErrorCode.RECORD_LIST_TOO_LARGE
    advice = "Lower the producer's batch.size, or raise the topic's segment.bytes."


class InvalidRequiredAcksError(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS
    advice = "acks can be all, 1 or 0."


class InvalidTimestampError(KafkaError):
    code = ErrorCode.INVALID_TIMESTAMP
    advice = (
        "The topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms bound it."
    )


class UnsupportedForMessageFormatError(KafkaError):
    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    advice = (
        "The broker stores the topic in an old format, which knows no transactions and no "
        "idempotence."
    )


class FetchSessionIdNotFoundError(RetriableError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    advice = "The client begins a new session by itself."


class InvalidFetchSessionEpochError(RetriableError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
    advice = "The client begins a new session by itself."


class FetchSessionTopicIdError(RetriableError):
    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    advice = "The client begins a new session by itself."


class FencedLeaderEpochError(RetriableError):
    code = ErrorCode.FENCED_LEADER_EPOCH
    advice = "The leader has moved. The client follows by itself."


class UnknownLeaderEpochError(RetriableError):
    code = ErrorCode.UNKNOWN_LEADER_EPOCH
    advice = "The broker has not heard of the new leader yet. The client tries again by itself."


class OffsetNotAvailableError(RetriableError):
    code = ErrorCode.OFFSET_NOT_AVAILABLE
    advice = "The leader is new. The client tries again by itself."


class OffsetMovedToTieredStorageError(KafkaError):
    code = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
