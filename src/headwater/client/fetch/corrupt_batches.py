"""Batches that cannot be read: named so that somebody can act, or stepped over, as was chosen.

A batch whose checksum is wrong, or whose records are not records, is as bad at the next attempt. A
consumer would meet it for ever, so it says which batch it is and where reading can go on. With
`corrupt.batch.policy=skip` it goes on there by itself, counts the batch and logs it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from operator import ge
from typing import Any, Final

from headwater.base.errors import CorruptMessageError, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingValues
from headwater.wire.records import InvalidRecordError, Record

_logger = logging.getLogger("headwater.client")

FAIL: Final = "fail"
SKIP: Final = "skip"


class CorruptBatchError(CorruptMessageError):
    """A batch cannot be read, by nobody: what is wrong with it is the cause of this error.

    It has the offsets `first_offset` to `last_offset`, as far as its header can be believed; seek
    to `next_offset` to go on after it.
    """

    advice = ""

    def __init__(
        self,
        topic_partition: TopicPartition,
        first_offset: int,
        next_offset: int,
        detail: str,
    ) -> None:
        super().__init__(detail)
        self.topic_partition = topic_partition
        self.first_offset = first_offset
        self.next_offset = next_offset

    @property
    def last_offset(self) -> int:
        return self.next_offset - 1

    @property
    def retriable(self) -> bool:
        return False

    def __reduce__(self) -> Any:
        place = (self.topic_partition, self.first_offset, self.next_offset)
        return type(self), (*place, self.detail)


class CorruptBatches:
    """What a client does about them. Of the thread that decodes."""

    def __init__(self, *, are_skipped: bool = False) -> None:
        self._are_skipped = are_skipped
        self.skipped_count = 0
        #: The first offset of the last one of each partition: it may be decoded more than once.
        self._last_skipped: dict[TopicPartition, int] = {}

    @classmethod
    def of_settings(cls, values: SettingValues) -> CorruptBatches:
        return cls(are_skipped=values.text("corrupt.batch.policy") == SKIP)

    def met(
        self,
        topic_partition: TopicPartition,
        first_offset: int,
        next_offset: int,
        cause: KafkaError,
    ) -> None:
        """One was met: returns if it is to be stepped over, and raises `CorruptBatchError` if not.

        `next_offset` is that of the first record that may stand behind it.
        """
        offsets = f"{first_offset} to {next_offset - 1}"
        if not self._are_skipped:
            raise CorruptBatchError(
                topic_partition,
                first_offset,
                next_offset,
                f"The batch with offsets {offsets} of {topic_partition} cannot be read: {cause} "
                f"Seek to offset {next_offset} to go on after it, or set "
                f"corrupt.batch.policy={SKIP} to leave out all such batches.",
            ) from cause
        if self._last_skipped.get(topic_partition) != first_offset:
            self._last_skipped[topic_partition] = first_offset
            self.skipped_count += 1
            _logger.warning(
                "The batch with offsets %s of %s cannot be read and is left out: %s",
                offsets,
                topic_partition,
                cause,
            )


def check_offsets_grow(records: Sequence[Record]) -> None:
    """Refuse a batch in which an offset comes twice: its records could not be told apart."""
    offsets = [record.offset for record in records]
    if any(map(ge, offsets, offsets[1:])):
        raise InvalidRecordError("The offsets of the records in a batch do not grow.")
