"""The isolation level of a reader: whether it sees transactions that did not commit."""

from enum import IntEnum


class IsolationLevel(IntEnum):
    """By its number in the protocol."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
