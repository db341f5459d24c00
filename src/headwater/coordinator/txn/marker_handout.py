"""Hands decided transactions to whoever writes their markers, once the decision is safe.

A marker makes an outcome visible, and nobody can take it back: so it may only be written when the
record of the decision cannot be lost any more. If that takes too long, those who asked hear of it,
but the record stays in the log, so the wait goes on here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headwater.base.errors import KafkaError
from headwater.coordinator.outcome import Outcome, nothing_follows
from headwater.coordinator.txn.transaction_environment import TransactionEnvironment
from headwater.coordinator.txn.transaction_metadata import (
    PreparedTransaction,
    TransactionMetadata,
)
from headwater.coordinator.txn.transaction_record import transaction_record
from headwater.coordinator.txn.transactions import Transactions

_RETRY_MS: Final = 1000


class MarkerHandout:
    def __init__(self, environment: TransactionEnvironment, transactions: Transactions) -> None:
        self._environment = environment
        self._transactions = transactions
        self._handed_out: dict[str, PreparedTransaction] = {}
        self._count = 0

    def on_loaded(self) -> None:
        """What the last coordinator left undone is done again: markers may be written twice."""
        for metadata in self._transactions:
            if metadata.state.is_prepared:
                self._wait_again(metadata, 0)

    def decide(
        self,
        decided: Sequence[TransactionMetadata],
        now_ms: int,
        on_safe: Callable[[], None] = nothing_follows,
        on_failed: Callable[[KafkaError], None] = nothing_follows,
    ) -> Outcome:
        """Write down outcomes of transactions; what follows, follows when they are safe."""
        written: list[TransactionMetadata] = []
        incomplete: list[TransactionMetadata] = []
        for metadata in decided:
            written.append(metadata)
            if metadata.partitions:
                incomplete.append(metadata)
            else:
                written.append(metadata.completed(now_ms=now_ms))

        def safe() -> None:
            for metadata in incomplete:
                self._hand_out(metadata)
            on_safe()

        def failed(error: KafkaError) -> None:
            for metadata in incomplete:
                self._wait_again(metadata, _RETRY_MS)
            on_failed(error)

        return Outcome([transaction_record(metadata) for metadata in written], safe, failed)

    def is_awaited(self, prepared: PreparedTransaction) -> bool:
        """Whether these markers were asked for, and are those of the present transaction."""
        return self._handed_out.get(prepared.transactional_id) == prepared

    def on_replayed(self, transactional_id: str) -> None:
        """The state of a transaction has changed."""
        metadata = self._transactions.find(transactional_id)
        if metadata is None or not metadata.state.is_prepared:
            self._handed_out.pop(transactional_id, None)

    def _hand_out(self, decided: TransactionMetadata) -> None:
        transactional_id = decided.transactional_id
        # What stands there now may be something else, and not safe: nothing was written then.
        if self._transactions.find(transactional_id) != decided:
            return
        if transactional_id in self._handed_out:
            return
        self._count += 1
        prepared = PreparedTransaction(
            transactional_id=transactional_id,
            producer=decided.producer,
            is_commit=decided.is_commit,
            coordinator_epoch=self._environment.coordinator_epoch,
            partitions=decided.partitions,
            number=self._count,
        )
        self._handed_out[transactional_id] = prepared
        self._environment.markers(prepared)

    def _wait_again(self, decided: TransactionMetadata, delay_ms: int) -> None:
        def wait(_now_ms: int) -> Outcome:
            return Outcome(
                on_safe=lambda: self._hand_out(decided),
                on_failed=lambda _: self._wait_again(decided, _RETRY_MS),
                follows_writes=True,
            )

        key = ("markers", decided.transactional_id)
        self._environment.timers.schedule(key, delay_ms, wait)
