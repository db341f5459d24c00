"""The one name of a message, in delays, retries and dead letters: where its record was written."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition

_OFFSET_MAX: Final = 2**63 - 1
_TEXT: Final = re.compile(r"(.+)@([0-9]{1,19})", re.ASCII)


class MessageId(NamedTuple):
    """`orders-0@1234`: where its producer was told that the record was written.

    A delayed message has another offset where it is delivered, and one that failed is in another
    topic for a while; the name stays.
    """

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @classmethod
    def parse(cls, text: str) -> MessageId:
        """The inverse of `str()`; `ValueError`, with a sentence, if it is none."""
        match = _TEXT.fullmatch(text)
        try:
            if match is None or int(match[2]) > _OFFSET_MAX:
                raise ValueError
            place = TopicPartition.from_directory_name(match[1])
        except ValueError:
            raise ValueError(
                f"{text!r} is not the id of a message: it should be a topic, a dash, a partition, "
                "an @ and an offset, as in 'orders-0@1234'."
            ) from None
        return cls(*place, int(match[2]))
