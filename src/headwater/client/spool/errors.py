"""What can go wrong with a spool, each in one sentence that a person can act on."""

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.producer.errors import BufferExhaustedError


class SpoolError(KafkaError):
    """The spool cannot be used, or no longer."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class SpoolLockedError(SpoolError):
    """Another producer, here or in another process, uses the directory."""

    code = ErrorCode.INVALID_CONFIG


class SpoolVersionError(SpoolError):
    """A file in the directory has a format that this version does not know."""

    code = ErrorCode.INVALID_CONFIG


class SpoolFullError(BufferExhaustedError):
    """There is no room, and none appeared within the time that the caller gave."""


class SpoolRecordTooLargeError(SpoolError):
    """A record that would not even fit into an empty spool."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class SpoolDamagedError(SpoolError):
    """Records in the spool can no longer be read; what was left of their file is set aside."""

    code = ErrorCode.CORRUPT_MESSAGE
