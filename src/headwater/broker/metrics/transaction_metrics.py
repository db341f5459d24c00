"""The transactions that this broker coordinates: how many are in each state, and the oldest one.

An open transaction keeps readers of committed records waiting, so its age is what to watch. One
that is older than its `transaction.timeout.ms` is about to be aborted; one of a two-phase
commit may stay open for as long as that takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import LINES_PER_PIECE, gauge, labels

if TYPE_CHECKING:
    from headwater.coordinator.txn.transaction_metadata import TransactionState

_MS_PER_S: Final = 1000


def transaction_metrics(broker: BrokerContext) -> Iterator[str]:
    """The families about transactions."""
    now_ms = broker.clock.wall_ms()
    counts: Counter[TransactionState] = Counter()
    oldest_ms = now_ms
    seen = 0
    for shard in broker.transactions.shards():
        for transaction in shard.transactions:
            counts[transaction.state] += 1
            if not transaction.state.is_idle:
                oldest_ms = min(oldest_ms, transaction.start_ms)
            seen += 1
            if seen % LINES_PER_PIECE == 0:
                # Nothing to show yet, but others may want a turn.
                yield ""
    yield from gauge(
        "headwater_transactions",
        "Transactional ids that this broker coordinates, by the state of their transactions.",
        [(labels({"state": state.label}), count) for state, count in sorted(counts.items())],
    )
    yield from gauge(
        "headwater_transaction_open_seconds_max",
        "The age of the oldest transaction that is open or whose end is being written, 0 if there "
        "is none.",
        [("", (now_ms - oldest_ms) / _MS_PER_S)],
    )
