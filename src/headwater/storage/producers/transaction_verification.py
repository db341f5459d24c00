"""Which producers may begin a transaction in a partition: those whose coordinator said so.

A transaction that a coordinator does not know of is never ended, and holds back all who read
committed data. So before a transaction's first batch is written, its coordinator is asked, and the
question is remembered here as a `Verification`: Kafka's verification guard. What the answer is
worth can change while it is on its way. If a marker ended the transaction meanwhile, or any other
batch of the producer's transactions was written, the verification is forgotten, and whoever comes
back with it is refused: a late batch must not begin the next transaction unasked.

A verification that failed stays until something is written. It remembers the lowest sequence number
that was seen, because the batches behind it are on their way too: were one of them written first,
as the first that is known of its producer, the lower one could never follow.

The owner is the partition's producer states.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from headwater.storage.errors import InvalidTxnStateError, OutOfOrderSequenceError

if TYPE_CHECKING:
    from headwater.storage.producers.state import ProducerStates

#: Epochs of one producer that are remembered; there is no use for more than two.
_EPOCHS_MAX: Final = 4


class TransactionalBatch(NamedTuple):
    """What a batch says of the transaction that it is part of."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


class Verification:
    """A question to a transaction's coordinator; only the object proves that it was asked."""

    __slots__ = ("created_ms", "lowest_sequence", "producer_epoch")

    def __init__(self, batch: TransactionalBatch, now_ms: int) -> None:
        self.producer_epoch = batch.producer_epoch
        self.lowest_sequence = batch.base_sequence
        self.created_ms = now_ms


class Verifications:
    """At most one for each producer of a partition and epoch of it.

    An epoch is only what a client says: which of them is the producer's is for the coordinator to
    know, so a batch with a wrong one must not stand in the way of the right one.
    """

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[int, Verification]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_producer.values()))

    def begin(self, batch: TransactionalBatch, now_ms: int) -> Verification:
        """The verification that a batch needs: a new one, or that of the batches before it."""
        epochs = self._by_producer.setdefault(batch.producer_id, {})
        known = epochs.get(batch.producer_epoch)
        if known is None:
            if len(epochs) >= _EPOCHS_MAX:
                del epochs[next(iter(epochs))]
            known = epochs[batch.producer_epoch] = Verification(batch, now_ms)
        known.lowest_sequence = min(known.lowest_sequence, batch.base_sequence)
        return known

    def renew(self, producer_id: int, verification: Verification) -> None:
        """Its question is asked anew: what was written until now does not count against it."""
        epochs = self._by_producer.setdefault(producer_id, {})
        epochs.setdefault(verification.producer_epoch, verification)

    def holds(self, producer_id: int, verification: Verification | None) -> bool:
        """Whether nothing was written in the producer's transactions since it began."""
        if verification is None:
            return False
        epochs = self._by_producer.get(producer_id, {})
        return epochs.get(verification.producer_epoch) is verification

    def forget(self, producer_ids: Iterable[int]) -> None:
        for producer_id in producer_ids:
            self._by_producer.pop(producer_id, None)

    def remove_older(self, created_ms: int) -> None:
        """Forget those that began before a time, and came to nothing."""
        for producer_id, epochs in list(self._by_producer.items()):
            for epoch, each in list(epochs.items()):
                if each.created_ms < created_ms:
                    del epochs[epoch]
            if not epochs:
                del self._by_producer[producer_id]


class Question:
    """A verification as the one who asks has it: whether its answer still counts when it comes."""

    __slots__ = ("_batch", "_states", "verification")

    def __init__(
        self, states: ProducerStates, batch: TransactionalBatch, verification: Verification
    ) -> None:
        self._states = states
        self._batch = batch
        self.verification = verification

    @property
    def is_void(self) -> bool:
        """Whether something was written meanwhile that did not open the transaction."""
        producer_id, producer_epoch, _ = self._batch
        return not self._states.has_open_transaction(
            producer_id, producer_epoch
        ) and not self._states.verifications.holds(producer_id, self.verification)

    def renew(self) -> None:
        """Before it is asked again."""
        self._states.verifications.renew(self._batch.producer_id, self.verification)


def check_verified(
    states: ProducerStates,
    batch: TransactionalBatch,
    verification: Verification | None,
    *,
    starts_at_zero: bool,
) -> None:
    """Raise unless a batch goes on with an open transaction, or begins one that was verified.

    `starts_at_zero` is for producers whose epoch grows with each transaction: where nothing is
    known of one, its first batch has sequence number zero.
    """
    if states.has_open_transaction(batch.producer_id, batch.producer_epoch):
        return
    if verification is None or not states.verifications.holds(batch.producer_id, verification):
        raise InvalidTxnStateError(
            f"A batch of producer {batch.producer_id} with epoch {batch.producer_epoch} is part of "
            f"no transaction that is open in {states.partition}."
        )
    entry = states.entry(batch.producer_id)
    is_unknown = entry is None or not entry.batches
    if batch.base_sequence > verification.lowest_sequence or (
        starts_at_zero and is_unknown and batch.base_sequence != 0
    ):
        expected = 0 if starts_at_zero and is_unknown else verification.lowest_sequence
        raise OutOfOrderSequenceError(
            f"Producer {batch.producer_id} would begin its transaction in {states.partition} with "
            f"sequence number {batch.base_sequence}, and {expected} is to come first."
        )
