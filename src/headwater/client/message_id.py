"""How delayed messages are named: by the place that their producer was told, or by its own id."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from headwater.base.ids import TopicPartition

_OFFSET_MAX: Final = 2**63 - 1
#: As many bytes as a broker takes for an id of a sender's.
SENDER_ID_BYTES_MAX: Final = 256
_TEXT: Final = re.compile(r"(.+)@([0-9]{1,19})", re.ASCII)


class MessageId(NamedTuple):
    """The one name that every delayed message has: `orders-0@1234`.

    It is where its producer was told that the record was written. Where it is delivered, it has
    another offset.
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


class SenderId(NamedTuple):
    """All messages of a topic, or of one of its partitions, to which their sender gave an id."""

    topic: str
    sender_id: bytes
    partition: int | None = None

    def __str__(self) -> str:
        place = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"sender:{self.sender_id.decode(errors='replace')} in {place}"


#: What operations on delayed messages take; a text is that of a `MessageId`.
MessageLike: TypeAlias = MessageId | SenderId | str


def sender_id_bytes(given: str | bytes) -> bytes:
    """An id of a sender's as it stands in a record; errors have a sentence."""
    if not isinstance(given, str | bytes):
        raise TypeError(f"A sender's id cannot be {given!r}: it must be text or bytes.")
    sender_id = given.encode() if isinstance(given, str) else given
    if not sender_id:
        raise ValueError("A sender's id cannot be empty.")
    if len(sender_id) > SENDER_ID_BYTES_MAX:
        raise ValueError(
            f"A sender's id of {len(sender_id)} bytes is too long: it has at most "
            f"{SENDER_ID_BYTES_MAX}."
        )
    return sender_id
