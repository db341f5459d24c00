"""What can be wrong with the bytes of a batch.

Reading any bytes whatever raises one of these and nothing else. `CorruptRecordError` says that the
bytes are not what was written: cut short, a checksum that does not match, a stream that does not
decompress. `InvalidRecordError` says that they are whole but contradict themselves or break a rule
of the format. The distinction reaches producers, who may retry the first but not the second.
"""

from typing import Self

from headwater.base import errors as base_errors
from headwater.base.errors import (
    CorruptMessageError,
    ErrorCode,
    UnsupportedCompressionTypeError,
)


class CorruptRecordError(CorruptMessageError):
    """The bytes are damaged or incomplete."""


class InvalidRecordError(base_errors.InvalidRecordError):
    """The bytes arrived as they were sent, but no valid batch looks like this.

    `record_numbers` tells which records of the batch are at fault, counted from 0, where that is
    known: an answer to a producer names them.
    """

    advice = ""

    def __init__(self, detail: str = "", *, record_numbers: tuple[int, ...] = ()) -> None:
        super().__init__(detail)
        self.record_numbers = record_numbers


class DecompressedTooLargeError(InvalidRecordError):
    """A batch decompresses to more than the reader is willing to hold.

    Kafka's clients answer this code by splitting the batch, which is just what helps an honest
    producer whose records compress very well.
    """

    code = ErrorCode.MESSAGE_TOO_LARGE

    @classmethod
    def beyond(cls, max_bytes: int) -> Self:
        return cls(f"The records take more than the {max_bytes} bytes that are allowed here.")


class UnsupportedCompressionError(UnsupportedCompressionTypeError):
    """The attributes name a codec that does not exist."""

    advice = ""
