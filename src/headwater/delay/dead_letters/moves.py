"""How dead letters get to another topic: what moving them needs, and who can do it.

A move is a transaction: copies in the dead-letter topic and the cancellations of what was copied
commit together. Whoever can run transactions is given to a broker from outside, for that takes a
client, and a broker has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.wire.delayed.attempts import dead_letter_headers
from headwater.wire.delayed.copies import with_origin
from headwater.wire.delayed.delayed_batch import DelayedRecord
from headwater.wire.delayed.retry_topics import group_of
from headwater.wire.records import Header

_NOBODY: Final = "There is nobody who moves them."


class DeadLetter(NamedTuple):
    """A message on its way to the dead-letter topic."""

    #: The offset that names what waits in the source.
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def dead_letter(source: TopicPartition, message: DelayedRecord, group: str = "") -> DeadLetter:
    """The letter that a message of a retry topic becomes: as it came, and Kafka's own headers.

    Without a group the name of the topic tells it.
    """
    sent = message.record()
    headers = with_origin(sent.headers, str(source), message.id_offset)
    return DeadLetter(
        message.id_offset,
        sent.key,
        sent.value,
        dead_letter_headers(headers, group or group_of(source.topic)),
    )


#: Whether letters wait in the log up to an offset, the last one of their cancellations.
StillWait = Callable[[int], bool]


class MoveSession(Protocol):
    """Moves letters of one partition, until a session that was opened later takes over."""

    async def move(self, target: str, letters: Sequence[DeadLetter], still_wait: StillWait) -> None:
        """Copy letters to a topic and cancel them in the source: all, or none with an error.

        It commits only if `still_wait` says so once the cancellations are written. After an error
        the session is of no use: it may not be known what was done.
        """
        ...

    async def close(self) -> None: ...


class DeadLetterMoves(Protocol):
    """Opens sessions. The owner is the broker."""

    def refusal(self, target: str) -> str | None:
        """Why a topic cannot take dead letters just now, as a sentence; None if it can."""
        ...

    async def open(self, source: TopicPartition) -> MoveSession:
        """A session, before which nothing that an earlier one did is undecided."""
        ...


class NoMoves:
    """Of a partition that stands alone: its dead letters wait."""

    def refusal(self, target: str) -> str | None:
        return _NOBODY

    async def open(self, source: TopicPartition) -> MoveSession:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, _NOBODY)
