"""A dead letter: a record of a dead-letter topic, and what its headers say of how it failed.

Letters of Headwater, of share groups, of Spring and of Connect are read alike. Headers are written
by others and may be missing, broken or false: what makes no sense is as if it were not there.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.message_id import MessageId
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.redrive.letters.families import (
    NOTHING_TOLD,
    Failure,
    Family,
    connect_failure,
    is_connects,
    is_ours,
    is_springs,
    our_failure,
    spring_failure,
)
from headwater.delivery.redrive.letters.header_values import number_of
from headwater.wire.delayed.headers import REDRIVES_HEADER
from headwater.wire.delayed.retry_topics import retry_topic


class Letter(NamedTuple):
    """Key, value and headers are those of `record`."""

    record: ConsumerRecord
    failure: Failure
    #: How often it was sent back from a dead-letter topic before.
    redrives: int

    @property
    def id(self) -> MessageId:
        """Where the letter lies, in the dead-letter topic."""
        return MessageId(self.record.topic, self.record.partition, self.record.offset)

    @property
    def family(self) -> Family:
        return self.failure.family

    @property
    def origin(self) -> MessageId | None:
        """The message's name on its whole way."""
        return self.failure.origin

    @property
    def home(self) -> MessageId | None:
        """Where it was read first; None if nobody told, and it is named by a place on its way."""
        origin = self.failure.origin
        if origin is None or origin.topic == self.record.topic:
            return None
        group = self.failure.group
        return None if group is not None and origin.topic == retry_topic(group) else origin

    @property
    def group(self) -> str | None:
        """The consumer group that could not handle it."""
        return self.failure.group

    @property
    def last_failure_ms(self) -> int | None:
        """When it failed last; if it does not say, when it was written to the dead-letter topic."""
        told_ms = self.failure.last_failure_ms
        if told_ms is not None:
            return told_ms
        return self.record.timestamp if self.record.timestamp >= 0 else None

    @property
    def error(self) -> str:
        """The class of the error in short, or its message where it has none; for counting."""
        failure = self.failure
        if failure.error_class:
            return failure.error_class.rpartition(".")[2] or failure.error_class
        return failure.error_message or "(no error told)"


def read_letter(record: ConsumerRecord) -> Letter:
    """The letter that a record is, whatever its headers hold."""
    # Of headers with one name the last one holds.
    last = dict(record.headers)
    if is_ours(last):
        failure = our_failure(last)
    elif is_springs(last):
        failure = spring_failure(dict(reversed(record.headers)), last)
    elif is_connects(last):
        failure = connect_failure(last)
    else:
        failure = NOTHING_TOLD
    return Letter(record, failure, number_of(last.get(REDRIVES_HEADER)) or 0)
