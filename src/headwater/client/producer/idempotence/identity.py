"""Who a producer is to the brokers: an id that the cluster gave it, and an epoch.

Of two producers with the same id the one with the older epoch is refused. An idempotent producer
raises its epoch by itself when it has to number its records anew; a transactional one is given each
epoch by its coordinator.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

#: A new producer id is needed after this one.
EPOCH_MAX: Final = 2**15 - 1
NONE: Final = -1


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int

    def with_next_epoch(self) -> ProducerIdentity | None:
        """The same producer, one epoch later; None if there is none."""
        if self.epoch == EPOCH_MAX:
            return None
        return ProducerIdentity(self.producer_id, self.epoch + 1)


#: Of who has none, or not yet.
NO_IDENTITY: Final = ProducerIdentity(NONE, NONE)


class PreparedTransactionState(NamedTuple):
    """Names a prepared transaction, for whoever decides later whether it is committed.

    Its text, `id:epoch`, is what an outside coordinator stores together with its own decision. That
    of "there is none" is empty.
    """

    producer_id: int = NONE
    epoch: int = NONE

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str()`; raises `ValueError` for anything else."""
        if not text:
            return cls()
        first, _, second = text.partition(":")
        try:
            state = cls(int(first), int(second))
        except ValueError:
            state = cls()
        if str(state) != text:
            raise ValueError(
                f"{text!r} does not name a prepared transaction: it should be a producer id and "
                "an epoch, as in '4711:3'."
            )
        return state

    @property
    def exists(self) -> bool:
        return self.producer_id != NONE

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}" if self.exists else ""
