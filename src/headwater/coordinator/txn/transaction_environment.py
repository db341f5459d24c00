"""What the steps of transactions get from the broker around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.coordinator.live_settings import LiveSettings
from headwater.coordinator.timers import Timers
from headwater.coordinator.txn.transaction_metadata import PreparedTransaction


@dataclass(frozen=True, slots=True)
class TransactionEnvironment:
    settings: LiveSettings
    timers: Timers
    #: Writes the markers of a decided transaction, and tells the shard by `markers_written`.
    markers: Callable[[PreparedTransaction], None]
    #: The leader epoch of the shard's partition: a partition refuses markers of an older one.
    coordinator_epoch: int
