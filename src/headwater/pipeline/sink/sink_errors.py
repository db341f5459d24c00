"""What can go wrong in the sink of Spark, each in one sentence that ends a task or a query."""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError


class SinkSchemaError(KafkaError):
    """Columns that cannot be written as records."""

    code = ErrorCode.INVALID_RECORD


class SinkRowError(KafkaError):
    """A row that cannot be written as a record."""

    code = ErrorCode.INVALID_RECORD


class WriteFailedError(KafkaError):
    """Records of a task were not written; Spark tries the task again, or fails the query."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, detail: str, cause: KafkaError) -> None:
        super().__init__(detail)
        self.code = cause.code


class NoTwoPhaseCommitError(KafkaError):
    """The cluster cannot keep a transaction open until Spark has decided about it."""

    code = ErrorCode.UNSUPPORTED_VERSION


class SupersededError(KafkaError):
    """Another run of the same query has gone further than this one, which must not write."""

    code = ErrorCode.PRODUCER_FENCED


class DecisionsUnreadableError(KafkaError):
    """It cannot be told what a query has decided."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR
