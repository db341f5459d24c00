"""What comes of an operation on a coordinator's state: records to write, and what follows then.

An operation looks at the state and decides. It changes nothing that records can tell: those are
written first, and change the state when they are replayed, the same way as when the topic is loaded
after a failover. Whoever asked hears of it when the records are safe, so that no client relies on
something that a failover could take back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from headwater.base.checks import check
from headwater.base.errors import KafkaError
from headwater.coordinator.stored_record import StoredRecord

R = TypeVar("R")


class ProducerIdentity(NamedTuple):
    """A producer in whose transaction records are written."""

    producer_id: int
    producer_epoch: int


def nothing_follows(*_: object) -> None:
    """What there is to do when nothing is."""


@dataclass(slots=True)
class Outcome:
    """Records that belong together: all of them are written, in one batch, or none."""

    records: Sequence[StoredRecord] = ()
    #: Called once all that was written so far is safe; at once if there are no records.
    on_safe: Callable[[], None] = nothing_follows
    #: Called instead if the records could not be written, or may be lost.
    on_failed: Callable[[KafkaError], None] = nothing_follows
    #: Set if the records are part of a transaction and count only when it is committed.
    producer: ProducerIdentity | None = None
    #: Without records: wait all the same until those of earlier operations are safe.
    follows_writes: bool = False


@dataclass(slots=True)
class Change(Generic[R]):
    """The plain case: records, and an answer that is given when they are safe."""

    response: R
    records: Sequence[StoredRecord] = ()
    producer: ProducerIdentity | None = None


class Reply(Generic[R]):
    """An answer that somebody waits for, perhaps for long; it is given once.

    A state machine may hold it, for instance until all members of a group have joined.
    """

    __slots__ = ("_send", "is_sent")

    def __init__(self, send: Callable[[R | KafkaError], None]) -> None:
        self._send = send
        self.is_sent = False

    def send(self, answer: R) -> None:
        self._complete(answer)

    def fail(self, error: KafkaError) -> None:
        self._complete(error)

    def _complete(self, answer: R | KafkaError) -> None:
        check(not self.is_sent, "an answer was given twice")
        self.is_sent = True
        self._send(answer)


class HeldReply(Generic[R]):
    """Whatever `reply` is answered goes on only after `release`, or an error does instead."""

    def __init__(self, asked: Reply[R]) -> None:
        self.reply: Reply[R] = Reply(self._take)
        self._asked = asked
        self._answer: R | KafkaError | None = None
        self._is_held = True

    def release(self, instead: KafkaError | None = None) -> None:
        """`instead` replaces what was answered so far, and nothing that is still to come."""
        self._is_held = False
        if self._answer is not None:
            self._pass_on(instead or self._answer)

    def fail(self, error: KafkaError) -> None:
        """What was answered counts no more, unless it has gone out."""
        self._answer = error
        if not self._asked.is_sent:
            self.release()

    def _take(self, answer: R | KafkaError) -> None:
        self._answer = answer
        if not self._is_held:
            self._pass_on(answer)

    def _pass_on(self, answer: R | KafkaError) -> None:
        if isinstance(answer, KafkaError):
            self._asked.fail(answer)
        else:
            self._asked.send(answer)
