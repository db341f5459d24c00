"""Whose clock a batch's timestamps come from."""

from enum import IntEnum


class TimestampType(IntEnum):
    """Attribute bit 3: the producer's own times, or the one time at which the leader appended."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
