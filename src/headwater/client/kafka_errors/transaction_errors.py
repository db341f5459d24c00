"""Errors of idempotent and transactional producers."""

from headwater.base.errors import ErrorCode, KafkaError, RetriableError


class OutOfOrderSequenceNumberError(KafkaError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    advice = (
        "Records before these are missing. Close this producer, make a new one, and send again "
        "what was not acknowledged."
    )


class DuplicateSequenceNumberError(KafkaError):
    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    advice = "The records are in the log already."


class InvalidProducerEpochError(KafkaError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH
    advice = (
        "The transaction timed out, or a newer producer has the transactional.id. Abort; if that "
        "fails too, close this producer."
    )


class InvalidTxnStateError(KafkaError):
    code = ErrorCode.INVALID_TXN_STATE
    advice = (
        "Call init_transactions() once, and begin_transaction() before each transaction's first "
        "record."
    )


class InvalidProducerIdMappingError(KafkaError):
    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    advice = "The coordinator has forgotten the transactional.id. Make a new producer."


class InvalidTransactionTimeoutError(KafkaError):
    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT
    advice = "Lower transaction.timeout.ms, or raise the broker's transaction.max.timeout.ms."


class ConcurrentTransactionsError(RetriableError):
    code = ErrorCode.CONCURRENT_TRANSACTIONS
    advice = "The former transaction is still being finished. The client tries again by itself."


class TransactionCoordinatorFencedError(KafkaError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class UnknownProducerIdError(KafkaError):
    code = ErrorCode.UNKNOWN_PRODUCER_ID
    advice = "The records of this producer were deleted by retention. Close it and make a new one."


class ProducerFencedError(KafkaError):
    code = ErrorCode.PRODUCER_FENCED
    advice = "Only one producer at a time may use a transactional.id. Close this one."


class TransactionalIdNotFoundError(KafkaError):
    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class TransactionAbortableError(KafkaError):
    code = ErrorCode.TRANSACTION_ABORTABLE
    advice = "Call abort_transaction(), and do the transaction again."
