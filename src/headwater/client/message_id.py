"""How delayed messages are named: by the place that their producer was told, or by its own id."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from headwater.base.message_id import MessageId

#: As many bytes as a broker takes for an id of a sender's.
SENDER_ID_BYTES_MAX: Final = 256


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
