"""What becomes of transactions and transactional ids that nobody cares for.

From time to time those that are open for longer than their timeout are aborted, and their producers
fenced; participants of a two-phase commit have no timeout. And ids that were not used for long are
forgotten: a tombstone takes the place of their record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from headwater.coordinator.outcome import Outcome
from headwater.coordinator.txn.marker_handout import MarkerHandout
from headwater.coordinator.txn.transaction_environment import TransactionEnvironment
from headwater.coordinator.txn.transaction_metadata import (
    EPOCH_PER_TRANSACTION,
    TransactionMetadata,
    TransactionState,
)
from headwater.coordinator.txn.transaction_record import transaction_tombstone
from headwater.coordinator.txn.transactions import Transactions

#: How many are dealt with at a time, so that their records fit into a batch; the rest follows.
_COUNT_MAX: Final = 100

_TIMEOUTS: Final = "timeouts"
_EXPIRY: Final = "expiry"


class TransactionUpkeep:
    def __init__(
        self,
        environment: TransactionEnvironment,
        transactions: Transactions,
        handout: MarkerHandout,
    ) -> None:
        self._settings = environment.settings
        self._timers = environment.timers
        self._transactions = transactions
        self._handout = handout

    def on_loaded(self) -> None:
        self._schedule_timeouts()
        self._schedule_expiry()

    def _abort_timed_out(self, now_ms: int) -> Outcome:
        self._schedule_timeouts()
        decided = [
            metadata.fenced(now_ms=now_ms).prepared(
                is_commit=False, client_version=EPOCH_PER_TRANSACTION, now_ms=now_ms
            )
            for metadata in islice(self._timed_out(now_ms), _COUNT_MAX)
        ]

        def go_on() -> None:
            if len(decided) == _COUNT_MAX:
                self._timers.schedule(_TIMEOUTS, 0, self._abort_timed_out)

        return self._handout.decide(decided, now_ms, go_on)

    def _timed_out(self, now_ms: int) -> Iterator[TransactionMetadata]:
        for metadata in self._transactions:
            if (
                metadata.state is TransactionState.ONGOING
                and not metadata.is_two_phase
                and metadata.start_ms + metadata.timeout_ms < now_ms
            ):
                yield metadata

    def _forget_expired(self, now_ms: int) -> Outcome:
        self._schedule_expiry()
        tombstones = [
            transaction_tombstone(transactional_id)
            for transactional_id in islice(self._expired(now_ms), _COUNT_MAX)
        ]

        def go_on() -> None:
            if len(tombstones) == _COUNT_MAX:
                self._timers.schedule(_EXPIRY, 0, self._forget_expired)

        return Outcome(tombstones, go_on)

    def _expired(self, now_ms: int) -> Iterator[str]:
        unused_since_ms = now_ms - self._settings.integer("transactional.id.expiration.ms")
        for metadata in self._transactions:
            if metadata.state.is_idle and metadata.last_update_ms <= unused_since_ms:
                yield metadata.transactional_id

    def _schedule_timeouts(self) -> None:
        interval_ms = self._settings.integer(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        )
        self._timers.schedule(_TIMEOUTS, interval_ms, self._abort_timed_out)

    def _schedule_expiry(self) -> None:
        interval_ms = self._settings.integer(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        )
        self._timers.schedule(_EXPIRY, interval_ms, self._forget_expired)
